// How long ended settlements are kept. Thirty days at least: an identifier belongs to its payment that long, and an
// owner may query its state. Open settlements are kept, regardless of their age.
import { Context, Effect, Layer } from "effect"
import { integer, section } from "./Setting.ts"
import { Settings } from "./Settings.ts"

const daysMin = 30
const daysMax = 36_500

export const retentionSection = section("retention", "How long ended records are kept.", {
  settlement_days: integer(
    { default: 400, min: daysMin, max: daysMax, unit: "days" },
    "Settled, failed and expired settlements with envelopes and identifiers, days of the sponsor's budget, and the " +
      "sponsor's own transactions."
  ),
  fact_days: integer(
    { default: 400, min: daysMin, max: daysMax, unit: "days" },
    "Facts of the journal that every consumer has read; analytics cannot be rebuilt from deleted facts."
  ),
  move_days: integer(
    { default: 3_650, min: daysMin, max: daysMax, unit: "days" },
    "Operator actions with their operator and reason, once their result is known."
  )
})

export class Retention extends Context.Service<
  Retention,
  {
    readonly settlementMillis: number
    readonly factMillis: number
    readonly moveMillis: number
  }
>()("tollkeeper/config/Retention") {
  static readonly layer = Layer.effect(
    Retention,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(retentionSection)
      return Retention.of({
        settlementMillis: values.settlement_days * 86_400_000,
        factMillis: values.fact_days * 86_400_000,
        moveMillis: values.move_days * 86_400_000
      })
    })
  )
}
