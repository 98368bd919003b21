// `tollkeeper analytics`: has analytics made again from the journal, over the database alone. The embedded database
// belongs to one process at a time, so a facilitator that runs on it must be stopped first; with a server none must.
import { Console, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import process from "node:process"
import { Settings } from "../kernel/config/Settings.ts"
import { Database } from "../kernel/database/Database.ts"
import { Facts } from "../kernel/Facts.ts"
import { Supervisor } from "../kernel/Supervisor.ts"
import { administration } from "../plugins/analytics/plugin.ts"
import { loadProfile } from "./profile.ts"
import { databaseAt } from "./serve.ts"

const flags = {
  profile: Flag.String("profile").pipe(
    Flag.withDescription("A shipped profile or the path of a YAML file"),
    Flag.withDefault("local")
  ),
  state: Flag.String("state").pipe(
    Flag.withDescription("Folder of the facilitator's state"),
    Flag.withDefault(".tollkeeper")
  ),
  set: Flag.String("set").pipe(Flag.withDescription("Override one setting: path=value"), Flag.atLeast(0))
}

const rebuild = Command.make(
  "rebuild",
  flags,
  Effect.fn(function* (place) {
    const profile = yield* loadProfile(place.profile, place.set, process.env)
    const database = Facts.layer.pipe(
      Layer.provideMerge(Database.layer),
      Layer.provide(databaseAt(profile.secret("DATABASE_URL"), place.state)),
      Layer.provide(Settings.layer(profile)),
      Layer.provide(Supervisor.layer)
    )
    yield* Effect.flatMap(Facts, administration.rebuild).pipe(Effect.provide(database))
    yield* Console.log("analytics is empty; a facilitator that runs, or the next one, reads the journal again")
  })
).pipe(Command.withDescription("Empty the records of analytics and have them made again from the journal of facts"))

export const analyticsCommand = Command.make("analytics").pipe(
  Command.withDescription("The records that analytics keeps"),
  Command.withSubcommands([rebuild])
)
