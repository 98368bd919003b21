import { assert, describe, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { buy } from "../../../examples/buyer.ts"
import { startMeteredSeller } from "../../../examples/seller-metered.ts"
import { UptoStellarClient } from "../../../examples/upto.ts"
import { settlementWasm } from "../../../plugins/x402-upto/contract.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { startUpto } from "./world.ts"

describe("the example's metered seller and its buyer", () => {
  it.live(
    "the example buyer pays for some words, too many, and none",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto()
        const { payTo, payer } = yield* facilitator.parties(10_000n)
        const seller = yield* Effect.acquireRelease(
          Effect.promise(() =>
            startMeteredSeller({ facilitator: facilitator.url, payTo, asset: testnetUsdc, max: 100n, perWord: 10n })
          ),
          (started) => Effect.promise(() => started.close())
        )
        const purchase = (words: number, maxAmount = 100n) =>
          Effect.promise(() =>
            buy(`${seller.url}/story?words=${words}`, {
              secret: payer.secret(),
              rpcUrl: facilitator.ledgerUrl,
              maxAmount
            })
          )
        let paid = 0n
        for (const [words, amount] of [
          [3, 30n],
          [16, 100n],
          [0, 0n]
        ] as const) {
          const { receipt, response } = yield* purchase(words)
          assert.strictEqual(response.status, 200)
          assert.deepStrictEqual([receipt.success, receipt.amount], [true, String(amount)])
          const page: any = yield* Effect.promise(() => response.json())
          assert.strictEqual(BigInt(page.words) * 10n, amount)
          paid += amount
          assert.strictEqual(yield* facilitator.balance(payTo), paid)
        }
        const tooDear = yield* Effect.flip(
          Effect.tryPromise(() =>
            buy(`${seller.url}/story?words=1`, {
              secret: payer.secret(),
              rpcUrl: facilitator.ledgerUrl,
              maxAmount: 99n
            })
          )
        )
        assert.match(String(tooDear.cause), /nothing that this buyer would pay/)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "the example buyer signs for no unknown contract code",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto()
        const { payTo, payer } = yield* facilitator.parties()
        const { requirements } = yield* facilitator.upto({ payer, payTo })
        const client = (wasmHash?: string) =>
          new UptoStellarClient({
            secret: Keypair.random().secret(),
            rpcUrl: facilitator.ledgerUrl,
            ...(wasmHash === undefined ? {} : { wasmHash })
          })
        const signed = yield* Effect.promise(() => client().createPaymentPayload(2, requirements))
        assert.isString(signed.payload.transaction)
        assert.isAbove(settlementWasm().length, 1_000)
        const refused = yield* Effect.flip(
          Effect.tryPromise(() => client("0".repeat(64)).createPaymentPayload(2, requirements))
        )
        assert.match(String(refused.cause), /other code/)
      }).pipe(Effect.scoped) as Effect.Effect<void>
  )
})
