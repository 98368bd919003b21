// `tollkeeper analytics`: rebuilds analytics from the journal. It only needs the database.
import { Effect } from "effect"
import { Command } from "effect/cli"
import { answer, jsonFlag, noted, placeFlags, tablesOf, whyFlag } from "./CommandTarget.ts"

/** Loaded when it is used: every other command works without it. */
export const analyticsPlugin = Effect.promise(() => import("../../plugins/analytics/plugin.ts"))

const rebuild = Command.make(
  "rebuild",
  { ...placeFlags(), json: jsonFlag, reason: whyFlag },
  ({ json, reason, ...place }) =>
    Effect.gen(function* () {
      const { administration } = yield* analyticsPlugin
      yield* noted({ action: "rebuild", subject: "analytics", reason })(administration.rebuild)
      const words = "analytics is empty; the running facilitator, or the next one, rereads the journal"
      yield* answer(json, { emptied: true }, [words])
    }).pipe(Effect.provide(tablesOf(place, "analytics")))
).pipe(Command.withDescription("Empty the analytics records and rebuild them from the journal of facts"))

export const analytics = Command.make("analytics").pipe(
  Command.withDescription("Manage the records of analytics"),
  Command.withSubcommands([rebuild])
)
