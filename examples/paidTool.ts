// What makes a tool of an MCP server a paid one, apart from what the tool does. A call without a payment is answered
// with PaymentRequired, in `structuredContent` and as the same JSON in the text; with one in its metadata the
// facilitator is asked to verify, the tool does its work, the facilitator settles, and the result carries the
// settlement. One payment buys one call: sent again with it, as after a lost answer, it has the same again, and with
// another call nothing. It holds no key and opens no ledger. No official package on npm has this for MCP; the server,
// its transport and its sessions are the official SDK's.
import { createMcpHandler, fromJsonSchema, type McpServer, type ServerContext } from "@modelcontextprotocol/server"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { decode, facilitatorClient, jsonWork, listen, type Seller, type SellerOptions } from "./seller-http.ts"
import { memoryStore, soldOnce } from "./soldOnce.mjs"

export interface PaidTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** Both copies of one body. */
const result = (body: object, more: object = {}) => ({
  structuredContent: { ...body },
  content: [{ type: "text" as const, text: JSON.stringify(body) }],
  ...more
})

/** What a sale needs: the seller's terms and facilitator, where the server answers, and what was sold. */
type Sale = SellerOptions & { readonly url: string; readonly sell: ReturnType<typeof soldOnce>["sell"] }

/** The handler of a tool that is paid for; `work` is what is paid for. */
const paid = <A>({ url, sell, ...options }: Sale, tool: PaidTool, work: (args: A) => object) => {
  const terms = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
  const client = facilitatorClient(options)
  const info = { input: { type: "mcp", toolName: tool.name, ...tool } }
  const schema = { type: "object", properties: { input: { type: "object" } }, required: ["input"] }
  const required = (error: string, more: object = {}) => {
    const resource = { url, description: tool.description, mimeType: "application/json" }
    const asked = { x402Version: 2, error, resource, accepts: [terms], extensions: { catalog: { info, schema } } }
    return result(asked, { isError: true, ...more })
  }
  return async (args: A, { mcpReq }: ServerContext) => {
    const payment = mcpReq._meta?.["x402/payment"]
    if (payment === undefined) return required("payment required")
    const request = JSON.stringify([tool.name, args])
    const sale = await sell({ client, payment, requirements: terms, request, work: () => jsonWork(work(args)) })
    const meta = sale.receipt === undefined ? {} : { _meta: { "x402/payment-response": sale.receipt } }
    return sale.released ? result(decode(sale.work.body) as object, meta) : required(sale.reason, meta)
  }
}

/** Adds a tool that is paid for to a server. */
export const sellTool = <A>(server: McpServer, sale: Sale, tool: PaidTool, work: (args: A) => object): McpServer => {
  const inputSchema = fromJsonSchema<A>(tool.inputSchema as never)
  server.registerTool(tool.name, { description: tool.description, inputSchema }, paid(sale, tool, work))
  return server
}

/** Serves at `/mcp`, in both eras of MCP and without sessions, from a server made anew for each request. */
export const serveMcp = async (options: SellerOptions, serverAt: (sale: Sale) => McpServer): Promise<Seller> => {
  let url = ""
  const { sell } = soldOnce({ store: options.store ?? memoryStore() })
  const handler = createMcpHandler(() => serverAt({ ...options, url, sell }))
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
  return { ...seller, url }
}
