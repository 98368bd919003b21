// `tollkeeper channels`: the channel accounts as they stand, and how many there shall be. It works on the database
// alone; running replicas follow within seconds.
import { Console, Effect, Layer } from "effect"
import { Argument, Command } from "effect/cli"
import { Network } from "../../kernel/config/Network.ts"
import { type ChannelListed, ChannelMoves } from "../../kernel/settlement/channels/ChannelMoves.ts"
import { planned } from "../../kernel/settlement/channels/ChannelRows.ts"
import { kernelTables, type Place, placeFlags } from "./place.ts"

/** Runs something with the channels of the place's network. */
const withChannels = <A, E>(
  place: Place,
  use: (parts: { readonly moves: ChannelMoves["Service"]; readonly network: Network["Service"] }) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    return yield* use({ network: yield* Network, moves: yield* ChannelMoves })
  }).pipe(
    Effect.provide(ChannelMoves.layer.pipe(Layer.provideMerge(Network.layer), Layer.provideMerge(kernelTables(place))))
  )

/** Channels that no running facilitator has keys for stay in the table, and are told apart. */
const lineOf = ({ address, claimed, leased, number, sequence, settlement, state }: ChannelListed): string => {
  const use = settlement === null ? (leased ? "leased" : "idle") : `held by ${settlement}`
  const whose = claimed || state === "retired" ? [] : ["no running facilitator uses it"]
  const word = state === planned ? "planned" : state
  const parts = [String(number).padStart(4), address, word.padEnd(8), `sequence ${sequence ?? "unknown"}`, use]
  return [...parts, ...whose].join("  ")
}

const list = Command.make("list", placeFlags(), (place) =>
  withChannels(place, ({ moves, network }) =>
    Effect.gen(function* () {
      const channels = yield* moves.list
      for (const channel of channels) yield* Console.log(lineOf(channel))
      const ready = channels.filter(({ claimed, state }) => claimed && state === "ready").length
      const required = yield* moves.required
      yield* Console.log(
        `${ready} of ${channels.length} ready; required: ${required ?? `${network.channelCount}, as configured`}`
      )
    })
  )
).pipe(Command.withDescription("List the channels: address, state, sequence number and who uses them"))

const resize = Command.make(
  "resize",
  {
    ...placeFlags(),
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
          `${count} channels are required; the facilitators create what is missing, ` +
            "and merge the others back once nothing holds them"
        )
      })
    )
).pipe(Command.withDescription("Grow or shrink the channels of all replicas, without a restart"))

export const channels = Command.make("channels").pipe(
  Command.withDescription("The channel accounts, for operators"),
  Command.withSubcommands([list, resize])
)
