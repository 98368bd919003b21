// The example's agent against sellers of both kinds, over a separate tool server process and a ledger that is asked for
// every balance: the amounts spent, the amounts received and the receipts are the same to the atom, and each receipt's
// transaction is on the ledger.
import { deepStrictEqual, ok, strictEqual } from "node:assert"
import { type Bought, openMarket, runAgent } from "../../examples/agent.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

const usdcUnits = 10_000_000n

/** True if the ledger has this transaction and it succeeded. */
const succeeded = async ({ rpc }: World, hash: string): Promise<boolean> =>
  ((await rpc("getTransaction", { hash })) as { readonly status: string }).status === "SUCCESS"

export const agentCases = async (world: World, { check, figure }: Part): Promise<void> => {
  const { balance, facilitator, ledger } = world
  const [agent, customer, owner] = [await world.account(1), await world.account(1), await world.account(0)]
  const payTo = owner.publicKey()
  const market = await openMarket({ facilitator, ledger, payTo }, customer.secret())
  const [pagePrice, toolPrice] = market.prices
  const run = async (budget: bigint) => {
    const lines: Array<string> = []
    const before = [await balance(agent.publicKey()), await balance(payTo)] as const
    const options = { facilitator, ledger, secret: agent.secret(), goal: "weather", budget }
    const bought = await runAgent({ ...options, say: (line) => void lines.push(line) })
    const after = [await balance(agent.publicKey()), await balance(payTo)] as const
    return { bought, lines, spent: before[0] - after[0], earned: after[1] - before[1] }
  }
  try {
    let bought: ReadonlyArray<Bought> = []
    await check("an agent with a budget buys the cheapest page and the tool", async () => {
      strictEqual(await balance(agent.publicKey()), usdcUnits)
      const first = await run(pagePrice + toolPrice)
      bought = first.bought
      deepStrictEqual(
        bought.map(({ receipt }) => [receipt.settledAmount, receipt.payTo, receipt.status]),
        market.prices.map((price) => [String(price), payTo, "settled"]),
        first.lines.join("\n")
      )
      deepStrictEqual([first.spent, first.earned], [pagePrice + toolPrice, pagePrice + toolPrice])
    })
    await check("each receipt names a transaction of its own that the ledger has", async () => {
      const hashes = bought.map(({ receipt }) => receipt.transaction)
      strictEqual(new Set(hashes).size, 2)
      for (const hash of hashes) ok(await succeeded(world, hash), hash)
    })
    await check("what was bought is what the sellers sell", () => {
      const [page, tool] = bought.map(({ content }) => content as any)
      strictEqual(page.status, 200)
      ok(page.json !== undefined)
      deepStrictEqual(tool.structuredContent, { city: "Riga", celsius: [17, 18] })
    })
    await check("a budget that is one atom short buys the page alone", async () => {
      const { bought, earned, lines, spent } = await run(pagePrice + toolPrice - 1n)
      deepStrictEqual(
        bought.map(({ receipt }) => receipt.settledAmount),
        [String(pagePrice)]
      )
      deepStrictEqual([spent, earned], [pagePrice, pagePrice])
      strictEqual(lines.filter((line) => line.startsWith("Not bought   BUDGET_EXCEEDED")).length, 1)
    })
    await check("a budget of nothing buys nothing", async () => {
      const { bought, earned, spent } = await run(0n)
      deepStrictEqual([bought.length, spent, earned], [0, 0n, 0n])
    })
    figure("atoms paid", String(2n * pagePrice + toolPrice))
  } finally {
    for (const { close } of market.sellers) await close()
  }
}
