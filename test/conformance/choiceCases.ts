// Tests whether one-line results are enough to choose by: an agent with one rule (the required words, a proven owner,
// the lowest price) buys each of its tasks from the full results of a search and from `detail: "short"`, over one
// catalog of sixty listings. It only reads the text that a model receives. If a line is cut before a required word, it
// asks `x402_get_resource` for that listing. A public tokenizer counts the text.
import { ok, strictEqual } from "node:assert"
import type { Keypair } from "@stellar/stellar-sdk"
import { signPayment } from "../../examples/buyer.ts"
import { facilitatorClient } from "../../examples/seller-http.ts"
import type { Json } from "../plugins/mcp-tools/support.ts"
import { isProven, type Market, offers, openMarket, type Task, tasks } from "./choiceMarket.ts"
import type { Part } from "./report.ts"
import { startTools, type Tools } from "./sellerCases.ts"
import type { World } from "./world.ts"

const tokenizer = new URL("../tools/node_modules/gpt-tokenizer/esm/encoding/o200k_base.js", import.meta.url)
const { countTokens } = (await import(tokenizer.href)) as { readonly countTokens: (text: string) => number }

type Detail = "full" | "short"

interface Candidate {
  readonly ref: string
  readonly text: string
  /** The rest of the text is available. */
  readonly isCut: boolean
  readonly isProven: boolean
  /** In the asset's units. */
  readonly price: number
}

/** Results per search. */
const limit = 8
/** Maximum number of listings that it reads in full after one search. */
const readMax = 4
const pricePattern = /\| (\d+(?:\.\d+)?) USDC \|/
const units = 10_000_000

const fromLine = (line: string): Candidate => ({
  ref: / ref (\S+)$/.exec(line)?.[1] ?? "",
  text: line.split(" | ")[0]!,
  isCut: line.split(" | ")[0]!.includes("…"),
  isProven: line.includes("| owner proven"),
  price: Number(pricePattern.exec(line)?.[1] ?? Infinity)
})

const fromResource = ({ resource, wrapper }: Json): Candidate => ({
  ref: wrapper.ref,
  text: [resource.serviceName, resource.toolName, resource.description].filter(Boolean).join(": "),
  isCut: false,
  isProven: resource.ownership === "proven",
  price: Number(resource.accepts[0].amount) / units
})

const has = ({ text }: Candidate, words: ReadonlyArray<string>): boolean => {
  const own = new Set(text.toLowerCase().match(/[a-z]{3,}/g) ?? [])
  return words.every((word) => own.has(word))
}

const shareOf = ({ text }: Candidate, words: ReadonlyArray<string>): number =>
  words.filter((word) => text.toLowerCase().includes(word)).length / words.length

/** The agent's choice: the cheapest proven one with every word. */
const choose = (candidates: ReadonlyArray<Candidate>, words: ReadonlyArray<string>): Candidate | undefined =>
  candidates
    .filter((one) => one.isProven && has(one, words))
    .toSorted((one, other) => one.price - other.price)
    .at(0)

interface Done {
  readonly sold: string
  readonly tokens: number
}

const buy = async (tools: Tools, { query, words }: Task, detail: Detail): Promise<Done> => {
  let tokens = 0
  const ask = async (name: string, args: Json): Promise<Json> => {
    const body = await tools.call(name, args)
    tokens += countTokens(JSON.stringify(body))
    return body
  }
  const found = await ask("x402_search_resources", { query, limit, detail })
  let candidates: ReadonlyArray<Candidate> =
    detail === "short" ? (found["lines"] ?? []).map(fromLine) : (found["resources"] ?? []).map(fromResource)
  if (choose(candidates, words) === undefined) {
    const cut = candidates
      .filter((one) => one.isProven && one.isCut)
      .toSorted((one, other) => shareOf(other, words) - shareOf(one, words) || one.price - other.price)
    const whole = new Map<string, Candidate>()
    for (const { ref } of cut.slice(0, readMax)) whole.set(ref, fromResource(await ask("x402_get_resource", { ref })))
    candidates = candidates.map((one) => whole.get(one.ref) ?? one)
  }
  const chosen = choose(candidates, words)
  if (chosen === undefined) return { sold: "nothing", tokens }
  const maxAtomicAmount = String(Math.round(chosen.price * units))
  const bought = await ask("x402_fetch_resource", { ref: chosen.ref, maxAtomicAmount, query: { of: detail + query } })
  return { sold: bought["json"]?.sold ?? `nothing: ${bought["code"]} ${bought["message"]}`, tokens }
}

/** Runs work on each item, with limited concurrency; keeps the order of results. */
const each = async <A, B>(all: ReadonlyArray<A>, concurrency: number, work: (one: A) => Promise<B>) => {
  const results: Array<B> = []
  let next = 0
  const worker = async () => {
    for (let at = next++; at < all.length; at = next++) results[at] = await work(all[at]!)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}

/** A listing begins with a payment; then the origins are probed and prove their ownership. */
const list = async ({ facilitator, ledger }: World, customer: Keypair, { listings }: Market): Promise<number> => {
  const client = facilitatorClient({ facilitator })
  await each(listings, 4, async ({ accepted, payload }) => {
    const options = { secret: customer.secret(), rpcUrl: ledger, maxAmount: 10_000n }
    const transaction = await signPayment(accepted as never, options)
    const paymentPayload = { x402Version: 2, payload: { transaction }, accepted, ...payload }
    const { errorReason, success } = await client.settle(paymentPayload, accepted)
    ok(success === true, `a listing's payment was not settled: ${errorReason}`)
  })
  const wanted = offers.filter(isProven).length
  const until = performance.now() + 240_000
  for (;;) {
    const page = (await (await fetch(`${facilitator}/discovery/resources?limit=200`)).json()) as Json
    const proven = page["items"].filter(({ ownership }: Json) => ownership === "proven").length
    if (page["items"].length >= listings.length && proven >= wanted) return page["items"].length
    ok(performance.now() < until, `${page["items"].length} listed, ${proven} proven of ${wanted}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

export const choiceCases = async (world: World, { check, figure }: Part): Promise<void> => {
  const [agent, customer, owner] = [await world.account(1), await world.account(1), await world.account(0)]
  const market = await openMarket(world.facilitator, owner.publicKey())
  const tools = await startTools(world, agent)
  const mistakes: Record<Detail, ReadonlyArray<string>> = { full: [], short: [] }
  const tokens: Record<Detail, number> = { full: 0, short: 0 }
  try {
    await check(`${offers.length} listings of seven origins, six of which are proven`, async () => {
      strictEqual(await list(world, customer, market), offers.length)
    })
    for (const detail of ["full", "short"] as const)
      await check(`${tasks.length} tasks, each found and paid by ${detail} results`, async () => {
        const before = await world.balance(agent.publicKey())
        const done = await each(tasks, 4, (task) => buy(tools, task, detail))
        const spent = before - (await world.balance(agent.publicKey()))
        const amountOf = (sold: string) => offers.find(({ id }) => id === sold)?.amount ?? 0
        strictEqual(spent, BigInt(done.reduce((sum, { sold }) => sum + amountOf(sold), 0)))
        tokens[detail] = Math.round(done.reduce((sum, one) => sum + one.tokens, 0) / tasks.length)
        mistakes[detail] = tasks.flatMap(({ expected, query }, at) =>
          done[at]!.sold === expected ? [] : [`${query}: ${done[at]!.sold}, not ${expected}`]
        )
        // If the agent were mostly wrong, the test would show nothing.
        ok(mistakes[detail].length * 10 <= tasks.length, mistakes[detail].join("\n"))
      })
    await check("short results lead to no more mistakes than full ones, for fewer tokens", () => {
      ok(mistakes.short.length <= mistakes.full.length, mistakes.short.join("\n"))
      ok(tokens.short < tokens.full, `${tokens.short} and ${tokens.full} tokens a task`)
    })
    figure("mistakes, full and short", `${mistakes.full.length} and ${mistakes.short.length} of ${tasks.length}`)
    figure("tokens a task, full and short", `${tokens.full} and ${tokens.short}`)
  } finally {
    await tools.close()
    market.close()
  }
}
