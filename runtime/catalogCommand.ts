// `tollkeeper catalog`: an operator's moves, and why a URL is or is not listed, over the database alone. The embedded
// database belongs to one process at a time, so a facilitator that runs on it must be stopped first; with a server none
// must.
import { Console, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { SqlClient } from "effect/sql"
import process from "node:process"
import { Settings } from "../kernel/config/Settings.ts"
import { Database } from "../kernel/database/Database.ts"
import { Facts } from "../kernel/Facts.ts"
import { Crypto } from "../kernel/platform/Crypto.ts"
import { Supervisor } from "../kernel/Supervisor.ts"
import { administration } from "../plugins/catalog/plugin.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
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
  set: Flag.String("set").pipe(Flag.withDescription("Override one setting: path=value"), Flag.atLeast(0)),
  url: Argument.String("url").pipe(Argument.withDescription("URL of the resource")),
  tool: Flag.String("tool").pipe(Flag.withDescription("Name of the tool, for an MCP resource"), Flag.optional)
}

interface Place {
  readonly profile: string
  readonly state: string
  readonly set: ReadonlyArray<string>
}

/** The database of a profile, its tables as they are: nothing is migrated. */
const overDatabase = <A, E>(place: Place, work: Effect.Effect<A, E, Crypto | Facts | SqlClient.SqlClient>) =>
  Effect.gen(function* () {
    const profile = yield* loadProfile(place.profile, place.set, process.env)
    const database = Facts.layer.pipe(
      Layer.provideMerge(Database.layer),
      Layer.provide(databaseAt(profile.secret("DATABASE_URL"), place.state)),
      Layer.provide(Settings.layer(profile)),
      Layer.provide(Supervisor.layer),
      Layer.provideMerge(NodeCrypto.layer)
    )
    return yield* Effect.provide(work, database)
  })

const move = (name: "remove" | "quarantine" | "restore", description: string) =>
  Command.make(
    name,
    {
      ...flags,
      note: Flag.String("note").pipe(Flag.withDescription("For other operators; never public"), Flag.withDefault(""))
    },
    Effect.fn(function* ({ note, tool, url, ...place }) {
      const request = Option.match(tool, {
        onNone: () => ({ type: "http" as const, toolName: "" }),
        onSome: (toolName) => ({ type: "mcp" as const, toolName })
      })
      const moved = yield* overDatabase(
        place,
        Effect.gen(function* () {
          return yield* administration.moveResource(
            { ...request, url, move: name, note, by: "cli" },
            yield* Facts,
            yield* Crypto
          )
        })
      )
      if (Option.isNone(moved))
        return yield* Effect.fail({ _tag: "NotListed", message: `there is no listing of ${url}` } as const)
      yield* Console.log(`${moved.value.resource}: ${moved.value.from} → ${moved.value.to}`)
    })
  ).pipe(Command.withDescription(description))

const observations = Command.make(
  "observations",
  flags,
  Effect.fn(function* ({ tool: _, url, ...place }) {
    const explained = yield* overDatabase(
      place,
      Effect.gen(function* () {
        return yield* administration.explainListing({ url, limit: 50, offset: 0 }, yield* Crypto)
      })
    )
    yield* Console.log(JSON.stringify(explained, null, 2))
  })
).pipe(Command.withDescription("Why a URL is or is not listed: observations, decisions and where its listings stand"))

export const catalogCommand = Command.make("catalog").pipe(
  Command.withDescription("The catalog: moves of an operator, and what was observed of a URL"),
  Command.withSubcommands([
    observations,
    move("remove", "Take a listing out until it is restored"),
    move("quarantine", "Hide a listing until it is restored"),
    move("restore", "Show a listing again")
  ])
)
