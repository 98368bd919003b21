// Settle's answer after an error of a dependency, or when its time is over: busy, since nothing was decided. Where
// nothing can be recorded, the answer names that cause, as verify's does; no write is tried for it.
import { Effect, Option } from "effect"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import type { SettleAnswer } from "../Answer.ts"
import { busy, busyFor } from "../answers.ts"

/** Pure. */
export const unavailable = (unrecordable: Option.Option<string>, payer?: string): SettleAnswer =>
  Option.match(unrecordable, { onNone: () => busy(payer), onSome: (why) => busyFor(why, payer) })

/** The answer as of now. */
export const makeUnavailable = Effect.map(
  Sponsor,
  ({ knownUnrecordable }) =>
    (payer?: string): Effect.Effect<SettleAnswer> =>
      Effect.map(knownUnrecordable, (why) => unavailable(why, payer))
)
