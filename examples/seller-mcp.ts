// A seller of one MCP tool, on the official SDK and in the neutral dialect: what it sells, and for how much. How a tool
// asks for its payment and is paid is `paidTool.ts`, the same for any tool.
//
//   PAY_TO=G… node examples/seller-mcp.ts
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server"
import { fileURLToPath } from "node:url"
import { paid, serveMcp } from "./paidTool.ts"
import type { Seller, SellerOptions } from "./seller-http.ts"

const inputSchema = {
  type: "object" as const,
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 7 } },
  required: ["city"]
}
const tool = { name: "forecast", description: "The weather of the next days, by city", inputSchema }
interface Asked {
  readonly city: string
  readonly days?: number
}

/** What the tool is paid for. */
const forecast = ({ city, days = 3 }: Asked) => ({ city, celsius: Array.from({ length: days }, (_, day) => 17 + day) })

/** Starts the seller at `/mcp`; it keeps no sessions. */
export const startMcpSeller = (options: SellerOptions): Promise<Seller> =>
  serveMcp(options.port ?? 0, (url) => {
    const server = new McpServer({ name: "forecasts", version: "1.0.0" })
    const about = { description: tool.description, inputSchema: fromJsonSchema<Asked>(inputSchema as never) }
    server.registerTool(tool.name, about, paid(options, url, tool, forecast))
    return server
  })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { AMOUNT = "10000", ASSET, FACILITATOR_URL = "http://127.0.0.1:4022", PAY_TO: payTo } = process.env
  const asset = ASSET ?? "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
  if (payTo === undefined) throw new Error("set PAY_TO to the account that is to be paid")
  const { url } = await startMcpSeller({ facilitator: FACILITATOR_URL, payTo, asset, amount: AMOUNT })
  console.log(`Selling the tool ${tool.name} at ${url} to whoever pays ${payTo}`)
}
