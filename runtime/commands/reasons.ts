// `tollkeeper reasons`: explains the reasons of refused payments and unlisted resources, with their status and remedy.
// It opens nothing.
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { neutralReason } from "../../kernel/Dialect.ts"
import { coreReasons, type RefusalRow } from "../../kernel/payment/Refusal.ts"
import { type ExplainedReason, explainReason } from "../../kernel/payment/reasons.ts"
import { reasons as batch } from "../../plugins/x402-batch/plugin.ts"
import { reasons as catalog } from "../../plugins/catalog/plugin.ts"
import { reasons as exact } from "../../plugins/x402-exact/plugin.ts"
import { reasons as upto } from "../../plugins/x402-upto/plugin.ts"
import { answer, jsonFlag } from "./CommandTarget.ts"

const rows: ReadonlyArray<RefusalRow> = [...coreReasons, ...exact, ...upto, ...batch, ...catalog]

/** A shipped reason in either spelling; undefined for another word. */
export const explainedOf = (reason: string): ExplainedReason | undefined => {
  const row = rows.find((one) => one.reason === neutralReason(reason))
  return row === undefined ? undefined : explainReason(row)
}

class UnknownReason extends Schema.TaggedError<UnknownReason>()("UnknownReason", { message: Schema.String }) {}

const lineOf = ({ reason, remedy, sentence, status }: ExplainedReason): string =>
  `${reason}  ${status}  ${sentence} ${remedy}`

export const reasons = Command.make(
  "reasons",
  {
    json: jsonFlag,
    reason: Argument.String("reason").pipe(
      Argument.withDescription("One reason, in either spelling; default all"),
      Argument.withDefault("")
    )
  },
  Effect.fn(function* ({ json, reason }) {
    const one = explainedOf(reason)
    if (reason !== "" && one === undefined)
      return yield* new UnknownReason({ message: `no reason is called ${reason}; \`tollkeeper reasons\` lists them` })
    const found = one === undefined ? rows.map(explainReason) : [one]
    yield* answer(json, found, found.map(lineOf))
  })
).pipe(Command.withDescription("Explain the reasons for refused payments and unlisted resources, with remedies"))
