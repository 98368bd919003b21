// `tollkeeper tools-budget`: what agents' payments hold, and an operator's word on those that the ledger no longer
// decides. It works on the store alone: on PostgreSQL beside the running tool servers, on a file only while none runs
// on its folder.
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { hostname } from "node:os"
import { resolve as absolute } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { Settings } from "../kernel/config/Settings.ts"
import { MigrationsFolder } from "../kernel/database/Migrations.ts"
import { Host } from "../kernel/platform/Host.ts"
import { administration } from "../plugins/mcp-tools/plugin.ts"
import * as FolderLock from "./platform/folderLock.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import { loadProfile } from "./profile.ts"
import { databaseAt } from "./serve.ts"

const flags = {
  profile: Flag.String("profile").pipe(
    Flag.withDescription("The tool server's profile, or the path of a YAML file"),
    Flag.withDefault("tools")
  ),
  state: Flag.String("state").pipe(
    Flag.withDescription("Folder of the tool server's state"),
    Flag.withDefault(".tollkeeper")
  ),
  set: Flag.String("set").pipe(
    Flag.withDescription("Override one setting: path=value, the value being YAML"),
    Flag.atLeast(0)
  )
}

/** What the store needs, by the profile. */
const placeOf = (place: { readonly profile: string; readonly state: string; readonly set: ReadonlyArray<string> }) =>
  Layer.unwrap(
    Effect.map(loadProfile(place.profile, place.set, process.env), (profile) =>
      Layer.mergeAll(
        Settings.layer(profile),
        NodeCrypto.layer,
        FolderLock.layer,
        databaseAt(profile.secret("DATABASE_URL"), place.state),
        Layer.succeed(Host, { name: hostname(), stateFolder: absolute(place.state) }),
        Layer.succeed(MigrationsFolder, { path: fileURLToPath(new URL("../migrations/", import.meta.url)) })
      )
    )
  ).pipe(Layer.provideMerge(NodeServices.layer))

const list = Command.make("list", flags, (place) =>
  Effect.gen(function* () {
    const holds = yield* administration.listHolds
    for (const { agent, amount, asset, authorization, createdAtMillis, id, state } of holds) {
      const until = authorization === undefined ? "nothing signed" : `until ledger ${authorization.expirationLedger}`
      yield* Console.log(
        [id, state.padEnd(8), new Date(createdAtMillis).toISOString(), agent, `${amount} of ${asset}`, until].join("  ")
      )
    }
    yield* Console.log(`${holds.length} held`)
  }).pipe(Effect.provide(placeOf(place)))
).pipe(Command.withDescription("List the payments whose outcome is open"))

const resolve = Command.make(
  "resolve",
  {
    ...flags,
    id: Argument.String("id").pipe(Argument.withDescription("The payment identifier")),
    outcome: Argument.Literals("outcome", ["spent", "released"]).pipe(
      Argument.withDescription("What became of it, as you know it from the ledger")
    )
  },
  ({ id, outcome, ...place }) =>
    Effect.gen(function* () {
      if (!(yield* administration.resolveHold(id, outcome)))
        return yield* Effect.fail({
          _tag: "ResolveRefused",
          message: `${id} is not held, or nothing of it was signed`
        } as const)
      yield* Console.log(`${id} is ${outcome}`)
    }).pipe(Effect.provide(placeOf(place)))
).pipe(Command.withDescription("Decide a payment that the ledger no longer decides"))

export const budgetCommand = Command.make("tools-budget").pipe(
  Command.withDescription("What agents' payments hold, for operators"),
  Command.withSubcommands([list, resolve])
)
