// A seller of one page by `batch-settlement` without the official packages: it calls the scheme class as their resource
// server does, in the same order. A voucher is verified, charged and answered in this process; only deposits and
// refunds go to the facilitator.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { decode, encode, saleKey } from "../seller/outcome.mjs"
import { facilitatorClient, listen, type Seller } from "../seller-http.ts"
import type { BatchStellarServer } from "./BatchStellarServer.ts"
import { channelClient } from "./channelClient.ts"
import { supportedKind } from "./remoteChannels.ts"

export interface BatchSellerOptions {
  readonly server: BatchStellarServer
  readonly facilitator: string
  readonly network: string
  readonly asset: string
  /** Price of the page, atomic units. */
  readonly price: bigint
  readonly apiKey?: string
  /** Lifetime of a deposit's signature in seconds, default 60. */
  readonly maxTimeoutSeconds?: number
}

/** Starts the seller; its one page is `/page`. Rejects when the facilitator does not offer the scheme. */
export const startBatchSeller = async (options: BatchSellerOptions): Promise<Seller> => {
  const { asset, facilitator, maxTimeoutSeconds = 60, network, price, server } = options
  const kind = await supportedKind(options)
  if (kind === undefined) throw new Error(`${facilitator} does not offer ${server.scheme} on ${network}`)
  const terms = await server.enhancePaymentRequirements(
    { scheme: server.scheme, network, asset, amount: String(price), payTo: server.receiver, maxTimeoutSeconds },
    kind
  )
  const { settle, verify } = channelClient(server, facilitatorClient(options))

  const urlOf = (request: IncomingMessage) => new URL(request.url!, `http://${request.headers.host}`).href

  const refuse = async (request: IncomingMessage, response: ServerResponse, error: string, paymentPayload?: any) => {
    const accepts = [structuredClone(terms)]
    await server.enrichPaymentRequiredResponse({ paymentPayload, requirements: accepts, error })
    const resource = { url: urlOf(request), mimeType: "application/json" }
    const body = { x402Version: 2, error, resource, accepts }
    response
      .writeHead(402, {
        "content-type": "application/json",
        "cache-control": "no-store",
        "payment-required": encode(body)
      })
      .end(JSON.stringify(body))
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const header = request.headers["payment-signature"]
    if (typeof header !== "string") return refuse(request, response, "payment required")
    const paymentPayload: any = decode(header)
    if (paymentPayload === undefined) return refuse(request, response, "PAYMENT-SIGNATURE is not base64 of JSON")
    // Only this request can repeat a deposit with a lost answer.
    const key = saleKey({ method: request.method!, url: urlOf(request) }, Buffer.from(header, "base64"))
    const result: any = await verify(paymentPayload, terms, key)
    if (result.isValid !== true) return refuse(request, response, result.invalidReason, paymentPayload)
    const receipt: any = await settle(paymentPayload, terms, key)
    if (receipt.success !== true) {
      // The outcome is unknown: the same payment continues, and a new 402 would ask for a second one.
      if (receipt.errorReason === "settlement_pending")
        return void response
          .writeHead(503, {
            "content-type": "application/json",
            "retry-after": "1",
            "payment-response": encode(receipt)
          })
          .end(JSON.stringify({ error: receipt.errorReason }))
      return refuse(request, response, receipt.errorReason, paymentPayload)
    }
    const isRefund = paymentPayload.payload?.type === "refund"
    response
      .writeHead(200, {
        "content-type": "application/json",
        "cache-control": "private, no-store",
        "payment-response": encode(receipt)
      })
      .end(JSON.stringify(isRefund ? { message: "the refund is settled" } : { page: "paid by a voucher" }))
  }

  const listener = createServer((request, response) => {
    serve(request, response).catch(() => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
  })
  return listen(listener, 0)
}
