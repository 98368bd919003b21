// Settle's answer after an error of a dependency, or after its timeout: busy, since nothing was decided. If nothing can
// be recorded, the answer names that cause, like verify's; it does not try a write to find out.
import { Effect, Option } from "effect"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import type { SettleAnswer } from "../Answer.ts"
import { busy, busyFor } from "../answers.ts"

/** Pure. */
export const unavailable = (unrecordable: Option.Option<string>, payer?: string): SettleAnswer =>
  Option.match(unrecordable, { onNone: () => busy(payer), onSome: (why) => busyFor(why, payer) })

/** The current answer. */
export const makeUnavailable = Effect.map(
  Sponsor,
  ({ knownUnrecordable }) =>
    (payer?: string): Effect.Effect<SettleAnswer> =>
      Effect.map(knownUnrecordable, (why) => unavailable(why, payer))
)
