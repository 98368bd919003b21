// `tollkeeper channels`: the channel accounts as they stand, and how many there shall be. It works on the database
// alone: on a server beside the running replicas, which follow within seconds, on the embedded one only while no
// facilitator runs on its folder.
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { Network } from "../kernel/config/Network.ts"
import { Settings } from "../kernel/config/Settings.ts"
import { Database } from "../kernel/database/Database.ts"
import * as Migrations from "../kernel/database/Migrations.ts"
import { channelMoves } from "../kernel/settlement/channels/ChannelCount.ts"
import { Supervisor } from "../kernel/Supervisor.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import { loadProfile } from "./profile.ts"
import { databaseAt } from "./serve.ts"

const flags = {
  profile: Flag.String("profile").pipe(
    Flag.withDescription("A shipped profile (local, hosted, self-hosted) or the path of a YAML file"),
    Flag.withDefault("local")
  ),
  state: Flag.String("state").pipe(
    Flag.withDescription("Folder of this process's state"),
    Flag.withDefault(".tollkeeper")
  ),
  set: Flag.String("set").pipe(
    Flag.withDescription("Override one setting: path=value, the value being YAML"),
    Flag.atLeast(0)
  )
}

interface Place {
  readonly profile: string
  readonly state: string
  readonly set: ReadonlyArray<string>
}

/** Runs something with the channels of the place's network. */
const withChannels = <A, E>(
  place: Place,
  use: (parts: {
    readonly moves: ReturnType<typeof channelMoves>
    readonly network: Network["Service"]
  }) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const profile = yield* loadProfile(place.profile, place.set, process.env)
    const parts = Layer.effectDiscard(Migrations.run("kernel")).pipe(
      Layer.provideMerge(Layer.merge(Database.layer, Network.layer)),
      Layer.provide(Settings.layer(profile)),
      Layer.provide(
        Layer.mergeAll(
          Supervisor.layer,
          NodeCrypto.layer,
          databaseAt(profile.secret("DATABASE_URL"), place.state),
          Layer.succeed(Migrations.MigrationsFolder, {
            path: fileURLToPath(new URL("../migrations/", import.meta.url))
          })
        )
      ),
      Layer.provide(NodeServices.layer)
    )
    const work = Effect.gen(function* () {
      const network = yield* Network
      return yield* use({ network, moves: channelMoves(yield* SqlClient.SqlClient, network.id) })
    })
    return yield* Effect.scoped(Effect.provide(work, parts))
  })

const list = Command.make("list", flags, (place) =>
  withChannels(place, ({ moves, network }) =>
    Effect.gen(function* () {
      const channels = yield* moves.list
      for (const { address, leased, number, sequence, settlement, state } of channels) {
        const use = settlement === null ? (leased ? "leased" : "idle") : `held by ${settlement}`
        yield* Console.log(
          [String(number).padStart(4), address, state.padEnd(8), `sequence ${sequence ?? "unknown"}`, use].join("  ")
        )
      }
      const ready = channels.filter(({ state }) => state === "ready").length
      const wanted = yield* moves.wanted
      yield* Console.log(
        `${ready} of ${channels.length} ready; wanted: ${wanted ?? `${network.channelCount}, as configured`}`
      )
    })
  )
).pipe(Command.withDescription("List the channels: address, state, sequence number and who uses them"))

const resize = Command.make(
  "resize",
  {
    ...flags,
    count: Argument.Int("count").pipe(Argument.withDescription("How many channels there shall be"))
  },
  ({ count, ...place }) =>
    withChannels(place, ({ moves, network }) =>
      Effect.gen(function* () {
        if (count < 1 || count > network.channelCountMax) {
          return yield* Effect.fail({
            _tag: "ResizeRefused",
            message: `from 1 to ${network.channelCountMax} channels (networks.${network.id}.channel_count_max)`
          } as const)
        }
        yield* moves.resize(count)
        yield* Console.log(
          `${count} channels are wanted; the facilitators create what is missing, and merge the others back once nothing holds them`
        )
      })
    )
).pipe(Command.withDescription("Grow or shrink the channels of all replicas, without a restart"))

export const channelsCommand = Command.make("channels").pipe(
  Command.withDescription("The channel accounts, for operators"),
  Command.withSubcommands([list, resize])
)
