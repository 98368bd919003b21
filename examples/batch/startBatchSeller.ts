// A seller of one page by `batch-settlement` without the official packages: it calls the scheme class as their resource
// server does, in the same order. A voucher is verified, charged and answered in this process; only deposits and
// refunds go to the facilitator.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { saleKey } from "../seller/outcome.mjs"
import { decode, encode, facilitatorClient, listen, type Seller } from "../seller-http.ts"
import type { BatchStellarServer } from "./BatchStellarServer.ts"

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
  const headers: Record<string, string> =
    options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }
  const { kinds }: any = await (await fetch(`${facilitator}/supported`, { headers })).json()
  const kind = kinds.find((one: any) => one.scheme === server.scheme && one.network === network)
  if (kind === undefined) throw new Error(`${facilitator} does not offer ${server.scheme} on ${network}`)
  const terms = await server.enhancePaymentRequirements(
    { scheme: server.scheme, network, asset, amount: String(price), payTo: server.receiver, maxTimeoutSeconds },
    kind
  )
  const { settle, verify } = facilitatorClient(options)

  const urlOf = (request: IncomingMessage) => new URL(request.url!, `http://${request.headers.host}`).href

  const refuse = async (request: IncomingMessage, response: ServerResponse, error: string, paymentPayload?: any) => {
    const accepts = [structuredClone(terms)]
    await server.enrichPaymentRequiredResponse({ paymentPayload, requirements: accepts, error })
    const resource = { url: urlOf(request), mimeType: "application/json" }
    const body = { x402Version: 2, error, resource, accepts }
    response
      .writeHead(402, { "content-type": "application/json", "payment-required": encode(body) })
      .end(JSON.stringify(body))
  }

  /** The settlement's answer: the charge of a voucher, or the facilitator's receipt. */
  const settled = async (context: any, key: string): Promise<any> => {
    const charged = await server.schemeHooks.onBeforeSettle(context)
    if (charged?.skip === true) return charged.result
    if (charged?.abort === true) return { success: false, errorReason: charged.reason }
    const added = await server.enrichSettlementPayload(context)
    const paymentPayload = { ...context.paymentPayload, payload: { ...context.paymentPayload.payload, ...added } }
    const receipt: any = await settle(paymentPayload, terms, key)
    await server.schemeHooks.onAfterSettle({ ...context, result: receipt })
    const more = await server.enrichSettlementResponse(context)
    if (more === undefined || receipt.success !== true) return receipt
    const channelState = { ...receipt.extra?.channelState, ...more.channelState }
    return { ...receipt, extra: { ...receipt.extra, ...more, channelState } }
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const header = request.headers["payment-signature"]
    if (typeof header !== "string") return refuse(request, response, "payment required")
    const paymentPayload: any = decode(header)
    if (paymentPayload === undefined) return refuse(request, response, "PAYMENT-SIGNATURE is not base64 of JSON")
    const context = { paymentPayload, requirements: terms }
    // Only this request can repeat a deposit with a lost answer.
    const key = saleKey({ method: request.method!, url: urlOf(request) }, Buffer.from(header, "base64"))
    const before = await server.schemeHooks.onBeforeVerify(context)
    if (before?.abort === true) return refuse(request, response, before.reason, paymentPayload)
    const result: any = before?.skip === true ? before.result : await verify(paymentPayload, terms, key)
    if (result.isValid !== true) return refuse(request, response, result.invalidReason, paymentPayload)
    const after = await server.schemeHooks.onAfterVerify({ ...context, result })
    if (after?.abort === true) return refuse(request, response, after.reason, paymentPayload)
    const receipt = await settled(context, key)
    if (receipt.success !== true) {
      await server.schemeHooks.onSettleFailure(context)
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
    response
      .writeHead(200, { "content-type": "application/json", "payment-response": encode(receipt) })
      .end(JSON.stringify(after?.skipHandler === true ? after.response.body : { page: "paid by a voucher" }))
  }

  const listener = createServer((request, response) => {
    serve(request, response).catch(() => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
  })
  return listen(listener, 0)
}
