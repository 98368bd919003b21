// A seller of one MCP tool, on the official SDK and in the neutral dialect: its tool, and how to start it. The payment
// is `paidTool.ts`, the same for any tool.
//
//   PAY_TO=G… node examples/seller-mcp.ts
//
// With AUTHORIZER_SECRET (S…, a key of channels, no account) it sells by `batch-settlement` and claims every five
// minutes; its records are in memory.
import { McpServer } from "@modelcontextprotocol/server"
import { fileURLToPath } from "node:url"
import { BatchClaims } from "./batch/BatchClaims.ts"
import { BatchStellarServer, keyAuthorizer } from "./batch/BatchStellarServer.ts"
import { sellTool, serveMcp, type ToolSellerOptions } from "./paidTool.ts"
import { type Seller, sellerOptions } from "./seller-http.ts"

const properties = { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 7 } }
const inputSchema = { type: "object", properties, required: ["city"] }
const tool = { name: "forecast", description: "The weather of the next days, by city", inputSchema }

/** The paid work. */
const forecast = ({ city, days = 3 }: { readonly city: string; readonly days?: number }) => ({
  city,
  celsius: Array.from({ length: days }, (_, day) => 17 + day)
})

/** Starts the seller at `/mcp`; it keeps no sessions. */
export const startMcpSeller = (options: ToolSellerOptions): Promise<Seller> =>
  serveMcp(options, (sale) => sellTool(new McpServer({ name: "forecasts", version: "1.0.0" }), sale, tool, forecast))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { AUTHORIZER_SECRET: secret } = process.env
  const options = sellerOptions()
  const { asset: token, network = "ledger:testnet", payTo: receiver } = options
  const channels =
    secret === undefined ? undefined : new BatchStellarServer({ receiver, authorizer: keyAuthorizer(secret) })
  const { url } = await startMcpSeller({ ...options, ...(channels === undefined ? {} : { channels }) })
  if (channels !== undefined)
    new BatchClaims({ ...options, server: channels, network, token }).start(300, (error) => console.error(error))
  console.log(`Selling the tool ${tool.name} at ${url}; payments go to ${options.payTo}`)
}
