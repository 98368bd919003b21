// Payment for a tool of an MCP server, independent of the tool's work. A call without a payment is answered with
// PaymentRequired, in `structuredContent` and as the same JSON in the text; with one in its metadata the server has the
// facilitator verify it, does the work, has it settled, and returns the settlement with the result. One payment buys
// one call: repeated with it, as after a lost answer, that call returns the same result, and another call is refused.
// It holds no key and opens no ledger. With `channels` it sells by `batch-settlement` instead of `exact`. No official
// package on npm has this for MCP; the server, its transport and its sessions are the official SDK's.
import { createMcpHandler, fromJsonSchema, type McpServer, type ServerContext } from "@modelcontextprotocol/server"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Readable } from "node:stream"
import type { BatchStellarServer } from "./batch/BatchStellarServer.ts"
import { channelClient } from "./batch/channelClient.ts"
import { supportedKind } from "./batch/remoteChannels.ts"
import { jsonWork, listen, type Sell, type Seller, type SellerOptions } from "./seller-http.ts"
import { type Client, decode, facilitatorAt } from "./seller/outcome.mjs"
import { answerWithheld, canonical, isPayment } from "./seller/sales.mjs"
import { memoryStore, soldOnce } from "./seller/soldOnce.mjs"

export interface PaidTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** A body in both places. */
const result = (body: object, more: object = {}) => ({
  structuredContent: { ...body },
  content: [{ type: "text" as const, text: JSON.stringify(body) }],
  ...more
})

export interface ToolSellerOptions extends SellerOptions {
  /** Sells by `batch-settlement`, with these channels. */
  readonly channels?: BatchStellarServer
}

/** Configuration of a sale: the seller's terms and facilitator, the server's address, and the store of sales. */
interface Sale {
  readonly url: string
  readonly sell: Sell
  readonly client: Client
  readonly terms: any
  readonly channels: BatchStellarServer | undefined
}

const termsOf = async (options: ToolSellerOptions): Promise<any> => {
  const { channels, facilitator } = options
  const terms = {
    scheme: channels?.scheme ?? "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
  if (channels === undefined) return terms
  const kind = await supportedKind({ ...options, network: terms.network })
  if (kind === undefined) throw new Error(`${facilitator} does not offer ${terms.scheme} on ${terms.network}`)
  return channels.enhancePaymentRequirements(terms, kind)
}

/** The handler of a paid tool; `work` is the tool's work. */
const paid = <A>({ channels, client, sell, terms, url }: Sale, tool: PaidTool, work: (args: A) => object) => {
  const info = { input: { type: "mcp", toolName: tool.name, ...tool } }
  const schema = { type: "object", properties: { input: { type: "object" } }, required: ["input"] }
  const required = async (error: string, more: object = {}, paymentPayload?: unknown) => {
    const resource = { url, description: tool.description, mimeType: "application/json" }
    const accepts = [structuredClone(terms)]
    await channels?.enrichPaymentRequiredResponse({ paymentPayload, requirements: accepts, error })
    const asked = { x402Version: 2, error, resource, accepts, extensions: { catalog: { info, schema } } }
    return result(asked, { isError: true, ...more })
  }
  return async (args: A, { mcpReq }: ServerContext) => {
    const payment: any = mcpReq._meta?.["x402/payment"]
    if (payment === undefined) return required("payment required")
    if (!isPayment(payment)) return required("x402/payment is not a payment")
    const request = { method: "tools/call", url: `${url}#${tool.name}`, body: canonical(args) }
    const isRefund = channels !== undefined && payment.payload.type === "refund"
    const done = () => jsonWork(isRefund ? { message: "the refund is settled" } : work(args))
    const sale = await sell({ client, payment, requirements: terms, request, work: done })
    const meta = sale.receipt === undefined ? {} : { _meta: { "x402/payment-response": sale.receipt } }
    if (sale.released) return result(decode(sale.work.body) as object, meta)
    const withheld = answerWithheld(sale, payment)
    // Without `accepts`: a client must not sign a second payment for a call that may be paid.
    return withheld === undefined
      ? required(sale.reason, meta, payment)
      : result(withheld.body, { isError: true, ...meta })
  }
}

/** Adds a paid tool to a server. */
export const sellTool = <A>(server: McpServer, sale: Sale, tool: PaidTool, work: (args: A) => object): McpServer => {
  const inputSchema = fromJsonSchema<A>(tool.inputSchema as never)
  server.registerTool(tool.name, { description: tool.description, inputSchema }, paid(sale, tool, work))
  return server
}

/** Serves at `/mcp`, in both eras of MCP and without sessions, with a new server for each request. */
export const serveMcp = async (options: ToolSellerOptions, serverAt: (sale: Sale) => McpServer): Promise<Seller> => {
  let url = ""
  const { counters, sell } = soldOnce({ ...options, store: options.store ?? memoryStore() })
  const { channels } = options
  const facilitator = facilitatorAt(options.facilitator, options.apiKey)
  const client = channels === undefined ? facilitator : channelClient(channels, facilitator)
  const terms = await termsOf(options)
  const handler = createMcpHandler(() => serverAt({ channels, client, sell, terms, url }))
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { headers, method = "GET" } = incoming
    const body = method === "POST" ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {}
    const answer = await handler.fetch(new Request(url, { method, headers: headers as never, ...body }))
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body === null) outgoing.end()
    else Readable.fromWeb(answer.body as never).pipe(outgoing)
  }
  const http = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(500).end()))
  })
  const seller = await listen(http, options.port ?? 0)
  url = `${seller.url}/mcp`
  return { ...seller, url, counters }
}
