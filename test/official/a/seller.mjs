// The seller of set A: every official package at 2.9.0.
import { HTTPFacilitatorClient } from "@x402/core/server"
import { paymentMiddleware, x402ResourceServer } from "@x402/express"
import {
  bazaarResourceServerExtension,
  declareDiscoveryExtension,
  declarePaymentIdentifierExtension,
  paymentIdentifierResourceServerExtension
} from "@x402/extensions"
import { ExactStellarScheme } from "@x402/stellar/exact/server"
import express from "express"
import { runSeller } from "../seller.mjs"

await runSeller({
  HTTPFacilitatorClient,
  x402ResourceServer,
  paymentMiddleware,
  bazaarResourceServerExtension,
  declareDiscoveryExtension,
  declarePaymentIdentifierExtension,
  paymentIdentifierResourceServerExtension,
  StellarScheme: ExactStellarScheme,
  express
})
