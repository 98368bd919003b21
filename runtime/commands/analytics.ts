// `tollkeeper analytics`: has analytics made again from the journal, over the database alone.
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { administration } from "../../plugins/analytics/plugin.ts"
import { databaseOf, placeFlags } from "./place.ts"

const rebuild = Command.make("rebuild", placeFlags(), (place) =>
  Effect.gen(function* () {
    yield* administration.rebuild
    yield* Console.log("analytics is empty; a facilitator that runs, or the next one, reads the journal again")
  }).pipe(Effect.provide(databaseOf(place)))
).pipe(Command.withDescription("Empty the records of analytics and have them made again from the journal of facts"))

export const analytics = Command.make("analytics").pipe(
  Command.withDescription("The records that analytics keeps"),
  Command.withSubcommands([rebuild])
)
