// `tollkeeper channels`: the state of the channel accounts, and their required number. Listing and resizing use only
// the database, and running replicas follow within seconds; opening them starts everything except the listener.
import { Console, Context, Deferred, Effect, Layer, Schedule } from "effect"
import { Argument, Command } from "effect/cli"
import type { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { ChannelCount } from "../../kernel/settlement/channels/ChannelCount.ts"
import { type ChannelListed, ChannelActions } from "../../kernel/settlement/channels/ChannelActions.ts"
import { ChannelPool } from "../../kernel/settlement/channels/ChannelPool.ts"
import { planned } from "../../kernel/settlement/channels/ChannelRows.ts"
import { OpensChannels } from "../../kernel/settlement/PubnetGate.ts"
import { databaseAt, requireNamedDatabase, serve } from "../serve.ts"
import {
  answer,
  jsonFlag,
  kernelTables,
  noted,
  type CommandTarget,
  placeFlags,
  profileAt,
  databaseStatus,
  reasonFlag
} from "./CommandTarget.ts"

/** Runs an effect with the channels of the target's network. */
const withChannels = <A, E>(
  place: CommandTarget,
  use: (parts: {
    readonly moves: ChannelActions["Service"]
    readonly network: Network["Service"]
  }) => Effect.Effect<A, E, SqlClient.SqlClient>
) =>
  Effect.gen(function* () {
    return yield* use({ network: yield* Network, moves: yield* ChannelActions })
  }).pipe(
    Effect.provide(
      ChannelActions.layer.pipe(
        Layer.provideMerge(databaseStatus(Network.layer.pipe(Layer.provideMerge(kernelTables(place)))))
      )
    )
  )

/** Channels without keys in any running facilitator stay in the table, and are marked. */
const lineOf = ({ address, claimed, leased, number, sequence, settlement, state }: ChannelListed): string => {
  const use = settlement === null ? (leased ? "leased" : "idle") : `held by ${settlement}`
  const whose = claimed || state === "retired" ? [] : ["no running facilitator uses it"]
  const word = state === planned ? "planned" : state
  const parts = [String(number).padStart(4), address, word.padEnd(8), `sequence ${sequence ?? "unknown"}`, use]
  return [...parts, ...whose].join("  ")
}

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  withChannels(place, ({ moves, network }) =>
    Effect.gen(function* () {
      const channels = yield* moves.list
      const ready = channels.filter(({ claimed, state }) => claimed && state === "ready").length
      const required = yield* moves.required
      yield* answer(json, { channels, ready, required: required ?? network.channelCount }, [
        ...channels.map(lineOf),
        `${ready} of ${channels.length} ready; required: ${required ?? `${network.channelCount}, as configured`}`
      ])
    })
  )
).pipe(Command.withDescription("List the channels: address, state, sequence number and current use"))

const resize = Command.make(
  "resize",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    count: Argument.Int("count").pipe(Argument.withDescription("Number of channels"))
  },
  ({ count, json, reason, ...place }) =>
    withChannels(place, ({ moves, network }) =>
      Effect.gen(function* () {
        if (count < 1 || count > network.channelCountMax) {
          return yield* Effect.fail({
            _tag: "ResizeRefused",
            message: `from 1 to ${network.channelCountMax} channels (networks.${network.id}.channel_count_max)`
          } as const)
        }
        yield* noted({ action: "resize-channels", subject: String(count), reason })(moves.resize(count), (before) => ({
          before: String(before ?? network.channelCount),
          after: String(count)
        }))
        yield* answer(json, { required: count }, [
          `${count} channels are required; the facilitators create the missing ones, ` +
            "and merge the others back once they are free"
        ])
      })
    )
).pipe(Command.withDescription("Grow or shrink the channels of all replicas, without a restart"))

const polls = Schedule.spaced("500 millis")
const openTimeout = "10 minutes"

/** Waits until the required number of channels is ready, printing progress; as JSON, only the end. */
const untilOpen = Effect.fnUntraced(function* (services: Context.Context<never>, json: boolean) {
  const pool = Context.getUnsafe(services, ChannelPool as never) as ChannelPool["Service"]
  const count = Context.getUnsafe(services, ChannelCount as never) as ChannelCount["Service"]
  const required = yield* Effect.orDie(count.read)
  let reported = -1
  const poll = Effect.gen(function* () {
    const { ready } = yield* Effect.orDie(pool.counts)
    if (ready !== reported && !json) yield* Console.log(`${ready} of ${required} channels are ready`)
    reported = ready
    return ready
  })
  const ready = yield* Effect.repeat(poll, { schedule: polls, until: (ready) => ready >= required })
  if (json) yield* answer(json, { ready, required }, [])
})

const open = Command.make("open", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const profile = yield* profileAt(place)
    yield* requireNamedDatabase(profile)
    const done = yield* Deferred.make<void>()
    const running = serve({
      profile,
      stateFolder: place.state,
      database: databaseAt(profile, place.state),
      listens: false,
      onReady: (_, services) => Effect.andThen(untilOpen(services, json), Deferred.succeed(done, undefined))
    }).pipe(Effect.provideService(OpensChannels, true))
    yield* Effect.raceFirst(running, Deferred.await(done)).pipe(
      Effect.timeoutOrElse({
        duration: openTimeout,
        orElse: () =>
          Effect.fail({
            _tag: "ChannelsNotOpened",
            message: `not all channels were open after ${openTimeout}; the log says why; run the command again`
          } as const)
      })
    )
  })
).pipe(
  Command.withDescription("Create and fund the channels from the sponsor, without serving requests; pubnet needs it")
)

export const channels = Command.make("channels").pipe(
  Command.withDescription("Manage the channel accounts"),
  Command.withSubcommands([list, resize, open])
)
