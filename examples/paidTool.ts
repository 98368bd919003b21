// What makes a tool of an MCP server a paid one, apart from what the tool does. A call without a payment is answered
// with PaymentRequired, in `structuredContent` and as the same JSON in the text; with one in its metadata the
// facilitator is asked to verify, the tool does its work, the facilitator settles, and the result carries the
// settlement. It holds no key and opens no ledger. No official package has this for MCP; the server, its transport and
// its sessions are the official SDK's.
import { createMcpHandler, type McpServer, type ServerContext } from "@modelcontextprotocol/server"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { listen, type Seller, type SellerOptions, settleUntilKnown } from "./seller-http.ts"

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

const ask = async (options: SellerOptions, route: "verify" | "settle", body: unknown): Promise<any> => {
  const response = await fetch(`${options.facilitator}/${route}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` })
    },
    body: JSON.stringify(body)
  })
  return response.json()
}

/** The handler of a tool that is paid for; `url` is where the server answers, `work` what is paid for. */
export const paid = <A>(options: SellerOptions, url: string, tool: PaidTool, work: (args: A) => object) => {
  const terms = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
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
    const body = { x402Version: 2, paymentPayload: payment, paymentRequirements: terms }
    const verified = await ask(options, "verify", body)
    // What was settled before is not valid again; to settle it again gives its receipt and moves nothing.
    if (!verified.isValid && !(await ask(options, "settle", body)).success) return required(verified.invalidReason)
    const done = work(args)
    const receipt = await settleUntilKnown(() => ask(options, "settle", body))
    const meta = { _meta: { "x402/payment-response": receipt } }
    return receipt.success ? result(done, meta) : required(receipt.errorReason, meta)
  }
}

/** Serves at `/mcp`, in both eras of MCP and without sessions, from a server made anew for each request. */
export const serveMcp = async (port: number, serverAt: (url: string) => McpServer): Promise<Seller> => {
  let url = ""
  const handler = createMcpHandler(() => serverAt(url))
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
  const seller = await listen(http, port)
  url = `${seller.url}/mcp`
  return { ...seller, url }
}
