import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { openMarket, runAgent } from "../../../examples/agent.ts"
import { ingest } from "../../relevance/ingest.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { fieldListings } from "../catalog/search/fieldListings.ts"

const inUsdc = fieldListings.map((one) => ({
  ...one,
  options: one.options.map((option) => ({ ...option, asset: testnetUsdc }))
}))

it.live(
  "the example agent finds offers, buys the cheapest and gets exact receipts",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const [agent, customer, owner] = [
        yield* facilitator.account(),
        yield* facilitator.account(),
        yield* facilitator.account()
      ]
      const place = { facilitator: facilitator.url, ledger: facilitator.ledgerUrl }
      const market = yield* Effect.acquireRelease(
        Effect.promise(() => openMarket({ ...place, payTo: owner.publicKey() }, customer.secret())),
        ({ sellers }) => Effect.promise(() => Promise.all(sellers.map(({ close }) => close())))
      )
      const run = (budget: bigint, lines: Array<string>, goal = "weather") =>
        Effect.promise(() =>
          runAgent({
            ...place,
            secret: agent.secret(),
            goal,
            budget,
            say: (line) => void lines.push(line)
          })
        )
      const balances = Effect.all([facilitator.balance(agent.publicKey()), facilitator.balance(owner.publicKey())])
      const before = yield* balances
      const lines: Array<string> = []
      const bought = yield* run(10_000n, lines)
      const after = yield* balances
      assert.deepStrictEqual(
        bought.map(({ receipt }) => [receipt.settledAmount, receipt.payTo, receipt.status]),
        market.prices.map((price) => [String(price), owner.publicKey(), "settled"]),
        lines.join("\n")
      )
      assert.deepStrictEqual([before[0] - after[0], after[1] - before[1]], [10_000n, 10_000n])
      assert.strictEqual(lines.filter((line) => line.startsWith("Found")).length, 3)

      // With less than the tool's additional cost, it buys only the page.
      const less: Array<string> = []
      assert.deepStrictEqual(
        (yield* run(9_999n, less)).map(({ receipt }) => receipt.settledAmount),
        ["4000"]
      )
      assert.strictEqual(less.filter((line) => line.startsWith("Not bought   BUDGET_EXCEEDED")).length, 1)

      // A merely nearest hit for a goal is not paid for.
      yield* facilitator.publishedBy(ingest(facilitator.sql, inUsdc))
      const chess = facilitator.ask("/discovery/search?query=chess%20moves")
      yield* eventually(chess, ({ json }) => json.resources.length > 0 && json.nearestOnly === undefined)
      const guessed: Array<string> = []
      assert.deepStrictEqual(yield* run(10_000n, guessed, "which mushroom is safe"), [])
      assert.strictEqual(guessed.filter((line) => line.startsWith("Nearest")).length > 0, true, guessed.join("\n"))
      assert.strictEqual(guessed.at(-1), "Not bought   nothing that is listed is known to answer this")
    }),
  240_000
)

it.live(
  "the example agent buys on later runs too, while earlier sellers are dead",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const place = { facilitator: facilitator.url, ledger: facilitator.ledgerUrl }
      const runs: Array<number> = []
      for (let run = 1; run <= 3; run++) {
        const [agent, customer, owner] = [
          yield* facilitator.account(),
          yield* facilitator.account(),
          yield* facilitator.account()
        ]
        const { sellers } = yield* Effect.promise(() =>
          openMarket({ ...place, payTo: owner.publicKey() }, customer.secret())
        )
        const bought = yield* Effect.promise(() =>
          runAgent({ ...place, secret: agent.secret(), goal: "weather in Riga", budget: 20_000n, say: () => undefined })
        )
        yield* Effect.promise(() => Promise.all(sellers.map(({ close }) => close())))
        runs.push(bought.length)
      }
      assert.deepStrictEqual(runs, [2, 2, 2])
    }),
  240_000
)
