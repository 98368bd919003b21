// The seller of set C: official packages at 2.27.0. The resource server of this line asks a scheme for two properties
// that the published Stellar scheme (2.9.0) does not have yet; the subclass adds them and nothing else.
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

class StellarScheme extends ExactStellarScheme {
  defaultAssetTransferMethod = "default"
  paymentFlows = { default: { supported: ["authorization", "upfront"], default: "authorization" } }
}

await runSeller({
  HTTPFacilitatorClient,
  x402ResourceServer,
  paymentMiddleware,
  bazaarResourceServerExtension,
  declareDiscoveryExtension,
  declarePaymentIdentifierExtension,
  paymentIdentifierResourceServerExtension,
  StellarScheme,
  hasUpfront: true,
  express
})
