// A seller of one MCP tool, on the official SDK and in the neutral dialect. A call without a payment is answered with
// PaymentRequired, in `structuredContent` and as the same JSON in the text; with one in its metadata the facilitator is
// asked to verify, the tool does its work, the facilitator settles, and the result carries the settlement. It holds no
// key and opens no ledger.
//
//   PAY_TO=G… node examples/seller-mcp.ts
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { listen, type Seller, type SellerOptions, settleUntilKnown } from "./seller-http.ts"

const inputSchema = {
  type: "object" as const,
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 7 } },
  required: ["city"]
}
const tool = { name: "forecast", description: "The weather of the next days, by city", inputSchema }

/** What the tool is paid for. */
const work = ({ city, days = 3 }: { readonly city: string; readonly days?: number }) => ({
  city,
  celsius: Array.from({ length: days }, (_, day) => 17 + day)
})

/** Both copies of one body. */
const result = (body: object, more: object = {}) => ({
  structuredContent: { ...body },
  content: [{ type: "text" as const, text: JSON.stringify(body) }],
  ...more
})

/** Starts the seller at `/mcp`; it keeps no sessions. */
export const startMcpSeller = async (options: SellerOptions): Promise<Seller> => {
  const terms = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
  let url = ""
  const required = (error: string, more: object = {}) =>
    result(
      {
        x402Version: 2,
        error,
        resource: { url, description: tool.description, mimeType: "application/json" },
        accepts: [terms],
        extensions: {
          catalog: {
            info: { input: { type: "mcp", toolName: tool.name, description: tool.description, inputSchema } },
            schema: { type: "object", properties: { input: { type: "object" } }, required: ["input"] }
          }
        }
      },
      { isError: true, ...more }
    )
  const ask = async (route: "verify" | "settle", paymentPayload: unknown): Promise<any> => {
    const response = await fetch(`${options.facilitator}/${route}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` })
      },
      body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: terms })
    })
    return response.json()
  }

  const makeServer = () => {
    const server = new Server({ name: "forecasts", version: "1.0.0" }, { capabilities: { tools: {} } })
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool] }))
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      const payment = params._meta?.["x402/payment"]
      if (payment === undefined) return required("payment required")
      const verified = await ask("verify", payment)
      // What was settled before is not valid again; to settle it again gives its receipt and moves nothing.
      if (!verified.isValid && !(await ask("settle", payment)).success) return required(verified.invalidReason)
      const done = work(params.arguments as { city: string; days?: number })
      const receipt = await settleUntilKnown(() => ask("settle", payment))
      const meta = { _meta: { "x402/payment-response": receipt } }
      return receipt.success ? result(done, meta) : required(receipt.errorReason, meta)
    })
    return server
  }

  const http = createServer((request, response) => {
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    makeServer()
      .connect(transport as Transport)
      .then(() => transport.handleRequest(request, response))
      .catch(() => (response.headersSent ? response.destroy() : response.writeHead(500).end()))
  })
  const seller = await listen(http, options.port ?? 0)
  url = `${seller.url}/mcp`
  return { ...seller, url }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const payTo = process.env["PAY_TO"]
  if (payTo === undefined) throw new Error("set PAY_TO to the account that is to be paid")
  const seller = await startMcpSeller({
    facilitator: process.env["FACILITATOR_URL"] ?? "http://127.0.0.1:4022",
    payTo,
    asset: process.env["ASSET"] ?? "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    amount: process.env["AMOUNT"] ?? "10000",
    port: Number(process.env["PORT"] ?? 0)
  })
  console.log(`Selling the tool ${tool.name} at ${seller.url} to whoever pays ${payTo}`)
}
