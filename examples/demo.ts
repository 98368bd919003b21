// `npm run demo`: a small market for agents on the local ledger that `npm start` runs: nine paid pages of one seller,
// and a paid MCP tool. A customer buys each of them once, since a listing begins with a payment. It sells until it is
// stopped; every answer repeats what it was asked for, as a stand-in for real goods.
import { Keypair } from "@stellar/stellar-sdk"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { callOnce, listed } from "./agent.ts"
import { buy } from "./buyer.ts"
import { findFacilitator } from "./findFacilitator.ts"
import { readFlags } from "./readFlags.ts"
import { facilitatorAt } from "./seller/outcome.mjs"
import { memoryStore, soldOnce } from "./seller/soldOnce.mjs"
import { jsonWork, listen, type Seller, servePage } from "./seller-http.ts"
import { startMcpSeller } from "./seller-mcp.ts"

const usdc = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
const string = { type: "string" }
const integer = { type: "integer" }

export interface Good {
  readonly path: string
  readonly description: string
  readonly inputs: Readonly<Record<string, object>>
  readonly optional?: ReadonlyArray<string>
  /** Inputs of the customer's purchase. */
  readonly example: Readonly<Record<string, string | number>>
}

/** A client counts it in ledgers of five seconds, and the local ledger closes faster. */
const maxTimeoutSeconds = 300

/** Price of each page and of the tool, atomic units. */
export const [pagePrice, toolPrice] = [3_000n, 6_000n]

export const goods: ReadonlyArray<Good> = [
  {
    path: "/tides",
    description: "Tide tables of a harbour",
    inputs: { harbour: string },
    example: { harbour: "Bremen" }
  },
  {
    path: "/rates",
    description: "Exchange rate between two currencies",
    inputs: { from: string, to: string },
    example: { from: "CHF", to: "EUR" }
  },
  {
    path: "/stars",
    description: "Stars visible tonight",
    inputs: { hours: integer },
    example: { hours: 1 }
  },
  {
    path: "/translate",
    description: "Translates a word",
    inputs: { word: string, into: { enum: ["lv", "de"] } },
    example: { word: "bread", into: "de" }
  },
  {
    path: "/chess",
    description: "Best chess move for a position",
    inputs: { fen: string },
    example: { fen: "8/8/8/8/8/8/8/k6K" }
  },
  {
    path: "/trains",
    description: "Departures of trains",
    inputs: { station: string, max: integer },
    optional: ["max"],
    example: { station: "Tartu", max: 1 }
  },
  {
    path: "/recipes",
    description: "Recipe for an ingredient",
    inputs: { ingredient: string },
    example: { ingredient: "leek" }
  },
  { path: "/postcodes/:code", description: "Place of a postcode", inputs: {}, example: { code: "5001" } },
  {
    path: "/firms",
    description: "Annual report of a company",
    inputs: { company: string, year: integer },
    optional: ["year"],
    example: { company: "Initech", year: 2_024 }
  }
]

/** The declaration of a page for the catalog. */
const declarationOf = ({ example, inputs, optional = [], path }: Good) => {
  const isTemplate = path.includes("/:")
  const query = isTemplate ? {} : { queryParams: example }
  const required = Object.keys(inputs).filter((name) => !optional.includes(name))
  const properties = {
    type: { type: "string", const: "http" },
    method: { type: "string", enum: ["GET"] },
    ...(isTemplate
      ? { pathParams: { type: "object" } }
      : { queryParams: { type: "object", properties: inputs, required } })
  }
  return {
    info: { input: { type: "http", method: "GET", ...query }, output: { type: "json", example } },
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        input: { type: "object", properties, required: ["type", "method"], additionalProperties: false },
        output: { type: "object" }
      },
      required: ["input"]
    },
    ...(isTemplate ? { routeTemplate: path } : {})
  }
}

export interface DemoOptions {
  readonly facilitator: string
  readonly payTo: string
  /** Default 0, a free port. */
  readonly port?: number
}

/** The seller of all pages. */
const startPages = ({ facilitator, payTo, port = 0 }: DemoOptions): Promise<Seller> => {
  const { sell } = soldOnce({ store: memoryStore() })
  const client = facilitatorAt(facilitator)
  const terms = {
    scheme: "exact",
    network: "ledger:testnet",
    asset: usdc,
    amount: String(pagePrice),
    payTo,
    maxTimeoutSeconds,
    extra: { areFeesSponsored: true }
  }
  const pages = goods.map((good) => ({
    good,
    pattern: new URLPattern({ pathname: good.path }),
    required: (url: string, error: string) => ({
      x402Version: 2,
      error,
      resource: { url, description: good.description, mimeType: "application/json" },
      accepts: [terms],
      extensions: { catalog: declarationOf(good) }
    })
  }))
  const server = createServer((request, response) => {
    const url = new URL(request.url!, "http://seller")
    const page = request.method === "GET" ? pages.find(({ pattern }) => pattern.test(url)) : undefined
    if (page === undefined) return void response.writeHead(404).end()
    const { good, pattern, required } = page
    const inputs = { ...pattern.exec(url)?.pathname.groups, ...Object.fromEntries(url.searchParams) }
    const work = () => jsonWork({ about: good.description, inputs })
    servePage({ client, required, sell, terms, work }, request, response).catch((error) => {
      console.error(error)
      response.destroy()
    })
  })
  return listen(server, port)
}

/** The address of a good for its inputs. */
const addressOf = (base: string, { example, path }: Good): string => {
  const url = new URL(
    path.replace(/:(\w+)/, (_, name) => String(example[name])),
    base
  )
  if (!path.includes("/:"))
    for (const [name, value] of Object.entries(example)) url.searchParams.set(name, String(value))
  return url.href
}

/** Opens the market: each good is sold once to the customer (a seed), and listed. */
export const openDemo = async (
  options: DemoOptions & { readonly ledger: string },
  customer: string
): Promise<Seller> => {
  const pages = await startPages(options)
  const { facilitator, ledger, payTo } = options
  const tool = await startMcpSeller({ facilitator, payTo, asset: usdc, amount: String(toolPrice), maxTimeoutSeconds })
  for (const good of goods)
    await buy(addressOf(pages.url, good), { secret: customer, rpcUrl: ledger, maxAmount: pagePrice })
  await callOnce(tool.url, customer, ledger)
  await listed(facilitator, [
    ...goods.map(({ path }) => ({ ...pages, url: `${pages.url}${path.split("/:")[0]}` })),
    tool
  ])
  return {
    url: pages.url,
    close: async () => {
      await pages.close()
      await tool.close()
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const usage = `demo [--port PORT]: a market of ten goods for agents, until it is stopped
  --port PORT  port of the paid pages; default 4622`
  const { flags, refuse } = readFlags(usage, { port: { type: "string" } })
  const remedy = 'no facilitator answers on this machine; start one with "npm start" in another terminal'
  const { facilitator, ledger = refuse(remedy) } = (await findFacilitator()) ?? refuse(remedy)
  const [customer, owner] = [Keypair.random(), Keypair.random()]
  for (const [account, units] of [[customer, 1_000_000] as const, [owner, 0] as const])
    await fetch(`${ledger}/friendbot?addr=${account.publicKey()}&usdc=${units}`)
  const options = { facilitator, ledger, payTo: owner.publicKey(), port: Number(flags.port ?? 4_622) }
  const { url } = await openDemo(options, customer.secret())
  for (const { description, path } of goods) console.log(`Selling  ${pagePrice}  ${url}${path}  ${description}`)
  console.log(`Selling  ${toolPrice}  an MCP tool  The weather of the next days, by city`)
  console.log("Ready: let an agent search for any of them. Ctrl+C ends the market.")
}
