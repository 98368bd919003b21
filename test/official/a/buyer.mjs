// The buyers of set A, from the official packages of this folder.
import { appendPaymentIdentifierToExtensions } from "@x402/extensions"
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch"
import { createEd25519Signer } from "@x402/stellar"
import { ExactStellarScheme } from "@x402/stellar/exact/client"
import { runBuyer } from "../buyer.mjs"

await runBuyer({
  appendPaymentIdentifierToExtensions,
  wrapFetchWithPayment,
  x402Client,
  x402HTTPClient,
  createEd25519Signer,
  StellarScheme: ExactStellarScheme
})
