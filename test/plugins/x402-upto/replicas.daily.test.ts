// Two replicas over one database concurrently get one upto payment for different amounts: one of them is settled.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Layer } from "effect"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { max, startUpto } from "./world.ts"

it.live.each(databaseKinds)(
  "two replicas asked for different amounts settle exactly one, on %s",
  (kind) =>
    Effect.gen(function* () {
      const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
      const database = Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
      const environment = { SPONSOR_SECRET: Keypair.random().secret() }
      const one = yield* startUpto({ database, environment })
      const two = yield* startFacilitator({
        database,
        environment,
        ledgerUrl: one.ledgerUrl,
        set: ["plugins=[x402-exact,x402-upto]", `networks.ledger:testnet.upto_contract=${one.contract}`]
      })
      const offered = (yield* two.ask("/supported")).json.kinds
      expect(offered.filter(({ scheme }: { scheme: string }) => scheme === "upto").length).toBeGreaterThan(0)
      for (let round = 0; round < 4; round++) {
        const { payTo, payer } = yield* one.parties(5_000n)
        const payment = yield* one.upto({ payer, payTo })
        const over = yield* two.settle(payment.settleBody(max + 1n))
        expect([over.json.success, over.json.errorReason]).toEqual([false, expect.stringMatching(/amount|maximum/)])
        const amounts = [max, 0n, 1n, 250n, 250n, max - 1n, max, 0n]
        const answers = yield* Effect.all(
          amounts.map((amount, i) => (i % 2 === 0 ? one : two).settle(payment.settleBody(amount))),
          { concurrency: "unbounded" }
        )
        const settled = answers.flatMap(({ json }, i) => (json.success ? [[amounts[i], json.amount]] : []))
        expect(settled.length).toBeLessThanOrEqual(1)
        const [record] = yield* one.sql<{ state: string; amount: string; of: number }>`
          select state, amount::text as amount, count(*) over ()::int as of from kernel_settlements
          where payer = ${payer.publicKey()}`
        expect(record).toMatchObject({ state: "settled", of: 1 })
        const moved = BigInt(record!.amount)
        for (const [asked, reported] of settled) expect([asked, reported]).toEqual([moved, String(moved)])
        // Any later request, for whatever amount and at either replica, moves nothing.
        for (const amount of [max - moved, max, 0n])
          expect((yield* two.settle(payment.settleBody(amount))).json.success).toBe(false)
        expect([yield* one.balance(payTo), yield* one.balance(payer.publicKey())]).toEqual([moved, 5_000n - moved])
      }
    }).pipe(Effect.scoped),
  240_000
)
