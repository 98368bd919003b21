// The checks of a deposit that `POST /prepare` lays out, in their order: the channel's terms, the asset's largest
// payment, the authorization's lifetime, the channel's balance.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { startBatch } from "./world.ts"

const assets = `[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7, max_payment: 4000}]`
const reason = (word: string) => `invalid_batch_settlement_ledger_${word}`

it.live("an unsigned deposit is refused above the asset's largest payment, after its terms", () =>
  Effect.gen(function* () {
    const facilitator = yield* startBatch({ closeMillis: 1_000, set: [`networks.ledger:testnet.assets=${assets}`] })
    const { batch } = facilitator
    const seller = yield* facilitator.seller
    const buyer = yield* facilitator.account(9_000n)
    const { config } = batch.channel(buyer, seller.payTo, seller.authorizer)
    const { paymentRequirements: terms } = batch.body({ config }, {}, 100n)
    const ask = (choices: object, changes: object = {}, payer = buyer.publicKey()) =>
      Effect.map(
        facilitator.ask("/prepare", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            x402Version: 2,
            paymentRequirements: { ...terms, ...changes },
            payer,
            choices: { salt: config.salt, ...choices }
          })
        }),
        ({ json }): string => json.error ?? json.payload.type
      )
    const short = { maxTimeoutSeconds: 1 }
    const cases: ReadonlyArray<readonly [object, object, string]> = [
      [{ amount: "4000" }, {}, "deposit"],
      [{ amount: "4001" }, {}, reason("deposit_amount")],
      [{ amount: "4001" }, { extra: { ...terms.extra, withdrawDelay: 60 } }, reason("withdraw_delay_out_of_range")],
      [{ amount: "4001" }, short, reason("deposit_amount")],
      [{ amount: "4000", charged: "3901" }, short, reason("payload_authorization_valid_before")],
      [{ amount: "4000", charged: "3901" }, {}, reason("cumulative_exceeds_balance")],
      [{ amount: "4000", charged: "3900" }, {}, "deposit"]
    ]
    for (const [choices, changes, expected] of cases)
      assert.strictEqual(yield* ask(choices, changes), expected, JSON.stringify([choices, changes]))
    // The channel's balance counts besides the deposit. This payer has nothing left to deposit.
    const opened = yield* facilitator.open(seller, 1_000n)
    const { payer, salt } = opened.config
    assert.strictEqual(yield* ask({ salt, amount: "4000", charged: "4900" }, {}, payer), "payment_would_fail")
    const above = yield* ask({ salt, amount: "4000", charged: "4901" }, {}, payer)
    assert.strictEqual(above, reason("cumulative_exceeds_balance"))
  }).pipe(Effect.scoped)
)
