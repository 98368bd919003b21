// An agent with a goal and a budget: through `tollkeeper tools` it searches the catalog, compares the offers, quotes a
// payment, pays for one HTTP resource and one MCP tool, and prints its receipts. It needs no model; `choose` is the
// place for one. The tool server holds the key and the budget. When run directly, the program sets up its environment
// on the local ledger that `npm start` runs: an account for the agent, three sellers, and a customer before it, since a
// listing begins with a payment.
//
//   node examples/agent.ts "weather in Riga" --budget 20000
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Keypair } from "@stellar/stellar-sdk"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { buy, signPayment } from "./buyer.ts"
import { findFacilitator } from "./findFacilitator.ts"
import { readFlags } from "./readFlags.ts"
import { type Seller, startSeller } from "./seller-http.ts"
import { startMcpSeller } from "./seller-mcp.ts"

const usdc = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
const root = fileURLToPath(new URL("..", import.meta.url))

export interface AgentOptions {
  readonly facilitator: string
  readonly ledger: string
  /** Seed of the account that the tool server pays from. */
  readonly secret: string
  readonly goal: string
  /** Atomic units that the agent may spend in a day. */
  readonly budget: bigint
  readonly say: (line: string) => void
}

export interface Bought {
  readonly receipt: any
  readonly content: unknown
}

interface Offer {
  readonly ref: string
  readonly versionHash: string
  readonly type: "http" | "mcp"
  readonly url: string
  readonly price: bigint
  readonly description: string
}

/** The choice, where a model can be plugged in: for each kind, the cheapest offer first, then the next ones. */
const choose = (offers: ReadonlyArray<Offer>): ReadonlyArray<ReadonlyArray<Offer>> =>
  (["http", "mcp"] as const).map((type) =>
    offers.filter((offer) => offer.type === type).sort((a, b) => Number(a.price - b.price))
  )

/** Maximum number of tried offers of one kind. */
const triesMax = 8

/** A payment that may have been made ends the choice: the next offer would be a second one. */
const mayHavePaid = ({ code }: { readonly code: string }) => code === "SETTLEMENT_UNKNOWN"

/** A resource's price in the agent's asset; prices in other assets are not comparable. */
const offerOf = ({ resource, wrapper }: any): ReadonlyArray<Offer> =>
  resource.accepts
    .filter(({ asset, scheme }: any) => asset === usdc && scheme === "exact")
    .slice(0, 1)
    .map(({ amount }: any) => ({
      ref: wrapper.ref,
      versionHash: wrapper.versionHash,
      type: resource.type,
      url: resource.resource,
      price: BigInt(amount),
      description: resource.description ?? ""
    }))

/** Starts the tool server as its own process, which has the key. */
const startTools = async ({ budget, facilitator, ledger, secret }: AgentOptions): Promise<Client> => {
  const settings = [
    "plugins=[mcp-tools, mcp-tools-pay]",
    `facilitator.base_url=${facilitator}`,
    "allow_insecure_local=true",
    "signer.mode=env-secret",
    "budget.store=memory",
    `budget.max_per_day=${budget}`,
    "http_payments.enabled=true",
    `networks.ledger:testnet.rpc_urls=["${ledger}"]`,
    `networks.ledger:testnet.assets=[{contract: ${usdc}, symbol: USDC, decimals: 7}]`
  ]
  const state = mkdtempSync(join(tmpdir(), "tollkeeper-agent-"))
  const set = settings.flatMap((setting) => ["--set", setting])
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["--disable-warning=ExperimentalWarning", join(root, "runtime/cli.mjs"), "tools", "--state", state, ...set],
    env: { TOOLS_PAYER_SECRET: secret },
    stderr: "ignore"
  })
  const client = new Client({ name: "example-agent", version: "1.0.0" })
  await client.connect(transport)
  return client
}

/** Calls a tool; an error has a code. */
const call = async (tools: Client, name: string, args: Record<string, unknown>): Promise<any> => {
  const { isError, structuredContent } = await tools.callTool({ name, arguments: args })
  return isError === true ? { failure: structuredContent } : structuredContent
}

/**
 * Listings for the goal: by search, or all listings if a facilitator has no search. `isGuess`: the results are only the
 * nearest, no reason to pay.
 */
const search = async (tools: Client, goal: string) => {
  const found = await call(tools, "x402_search_resources", { query: goal, limit: 20 })
  const page = found.failure === undefined ? found : await call(tools, "x402_search_resources", {})
  return { offers: (page.resources ?? []).flatMap(offerOf) as ReadonlyArray<Offer>, isGuess: page.nearestOnly === true }
}

/** Tries one offer; ends when it was bought, or may have been. */
const buyOne = async (
  tools: Client,
  { price, ref, type, url, versionHash }: Offer,
  say: (line: string) => void
): Promise<{ readonly purchase?: Bought; readonly isOver: boolean }> => {
  const explained = await call(tools, "x402_explain_payment", { ref, expectedVersionHash: versionHash })
  say(`Chosen       ${url}: ${price}, and the policy says ${explained.decision ?? explained.failure.code}`)
  if (explained.decision !== "allow") return { isOver: false }
  const common = { ref, expectedVersionHash: versionHash, maxAtomicAmount: String(price) }
  const { failure, receipt, ...content } =
    type === "http"
      ? await call(tools, "x402_fetch_resource", { ...common, query: { city: "Riga" } })
      : await call(tools, "x402_call_resource", { ...common, arguments: { city: "Riga", days: 2 } })
  if (failure !== undefined) {
    say(`Not bought   ${failure.code}: ${failure.message}`)
    return { isOver: mayHavePaid(failure) }
  }
  say(`Bought       ${JSON.stringify(content.json ?? content.structuredContent)}`)
  say(`Receipt      ${receipt.settledAmount} to ${receipt.payTo}, transaction ${receipt.transaction}`)
  return { purchase: { receipt, content }, isOver: true }
}

/** Runs the agent; succeeds with its purchases. */
export const runAgent = async (options: AgentOptions): Promise<ReadonlyArray<Bought>> => {
  const { budget, goal, say } = options
  const tools = await startTools(options)
  try {
    say(`Goal         ${goal}, for at most ${budget} atomic units`)
    const { isGuess, offers } = await search(tools, goal)
    for (const { description, price, type, url } of offers)
      say(`${isGuess ? "Nearest" : "Found  "}      ${type}  ${price}  ${url}  ${description}`)
    if (isGuess) say("Not bought   nothing that is listed is known to answer this")
    const bought: Array<Bought> = []
    for (const kind of isGuess ? [] : choose(offers)) {
      for (const offer of kind.slice(0, triesMax)) {
        const { purchase, isOver } = await buyOne(tools, offer, say)
        if (purchase !== undefined) bought.push(purchase)
        if (isOver) break
      }
    }
    return bought
  } finally {
    await tools.close()
  }
}

/** Pays a tool once, like any client, so that the facilitator observes it. */
export const callOnce = async (url: string, secret: string, rpcUrl: string): Promise<void> => {
  const client = new Client({ name: "customer", version: "1.0.0" })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
  const request = { name: "forecast", arguments: { city: "Riga" } }
  const { structuredContent: asked } = (await client.callTool(request)) as any
  const [accepted] = asked.accepts
  const transaction = await signPayment(accepted, { secret, rpcUrl, maxAmount: BigInt(accepted.amount) })
  const payment = {
    x402Version: 2,
    payload: { transaction },
    resource: asked.resource,
    accepted,
    extensions: asked.extensions
  }
  await client.callTool({ ...request, _meta: { "x402/payment": payment } })
  await client.close()
}

/** Waits until the catalog has all of them; it lists asynchronously. */
export const listed = async (facilitator: string, sellers: ReadonlyArray<Seller>): Promise<void> => {
  for (let attempt = 0; attempt < 500; attempt++) {
    const { items } = (await (await fetch(`${facilitator}/discovery/resources?limit=200`)).json()) as any
    if (sellers.every(({ url }) => items.some((item: any) => item.resource.startsWith(url)))) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error("the catalog does not list what was sold")
}

export interface Market {
  readonly sellers: ReadonlyArray<Seller>
  /** Price of the cheaper page and of the tool, atomic units. */
  readonly prices: readonly [bigint, bigint]
}

/** Three sellers of weather, and a customer of each. */
export const openMarket = async (
  { facilitator, ledger, payTo }: Pick<AgentOptions, "facilitator" | "ledger"> & { readonly payTo: string },
  customer: string
): Promise<Market> => {
  const common = { facilitator, payTo, asset: usdc }
  const sellers = [
    await startSeller({ ...common, amount: "9000" }),
    await startSeller({ ...common, amount: "4000" }),
    await startMcpSeller({ ...common, amount: "6000" })
  ]
  const [dear, cheap, tool] = sellers
  for (const { url } of [dear!, cheap!])
    await buy(`${url}/weather?city=Riga`, { secret: customer, rpcUrl: ledger, maxAmount: 10_000n })
  await callOnce(tool!.url, customer, ledger)
  await listed(facilitator, sellers)
  return { sellers, prices: [4_000n, 6_000n] }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const usage = `agent [GOAL] [--budget UNITS]: finds, compares, pays and prints its receipts
  GOAL            what it searches for; default "weather in Riga"
  --budget UNITS  atomic units of USDC that it may spend in a day; default 20000`
  const { flags, refuse, words } = readFlags(usage, { budget: { type: "string" } }, { words: 1 })
  if (!/^\d+$/.test(flags.budget ?? "0")) refuse("--budget takes a whole number of atomic units, as 20000")
  const budget = BigInt(flags.budget ?? "20000")
  const [goal = "weather in Riga"] = words
  const remedy = 'no facilitator answers on this machine; start one with "npm start" in another terminal'
  const { facilitator, ledger = refuse(remedy) } = (await findFacilitator()) ?? refuse(remedy)
  const account = async (units: number): Promise<Keypair> => {
    const keypair = Keypair.random()
    await fetch(`${ledger}/friendbot?addr=${keypair.publicKey()}&usdc=${units}`)
    return keypair
  }
  const [agent, customer, owner] = [await account(1), await account(1), await account(0)]
  const { sellers } = await openMarket({ facilitator, ledger, payTo: owner.publicKey() }, customer.secret())
  const bought = await runAgent({ facilitator, ledger, secret: agent.secret(), goal, budget, say: console.log })
  for (const { close } of sellers) await close()
  process.exitCode = bought.length === 2 ? 0 : 1
}
