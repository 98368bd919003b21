// `tollkeeper tools-budget`: lists the holds of agents' payments, and records an operator's decision if the ledger can
// no longer decide. It runs within the tool server over the state folder; standalone it works on the store.
import { Effect, Layer } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { administration, type Ended } from "../../plugins/mcp-tools-pay/plugin.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import * as NodeOutbound from "../platform/nodeOutbound.ts"
import {
  answer,
  databaseStatus,
  defaulting,
  jsonFlag,
  kept,
  placeFlags,
  reasonFlag,
  startedAt
} from "./CommandTarget.ts"

const list = Command.make("list", { ...placeFlags("tools"), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const holds = yield* (yield* administration).listHolds
    const lines = holds.map(({ agent, amount, asset, authorization, createdAtMillis, id, state }) => {
      const until = authorization === undefined ? "nothing signed" : `until ledger ${authorization.expirationLedger}`
      const begun = new Date(createdAtMillis).toISOString()
      return [id, state.padEnd(8), begun, agent, `${amount} of ${asset}`, until].join("  ")
    })
    yield* answer(json, holds, [...lines, `${holds.length} held`])
  }).pipe(Effect.provide(databaseStatus(startedAt(place))))
).pipe(Command.withDescription("List the payments without an outcome"))

const resolve = Command.make(
  "resolve",
  {
    ...placeFlags("tools"),
    json: jsonFlag,
    reason: reasonFlag,
    id: Argument.String("id").pipe(Argument.withDescription("The payment identifier")),
    outcome: Argument.Literals("outcome", ["spent", "released", "settled"]).pipe(
      Argument.withDescription("Its outcome according to the ledger; settled: spent, and its content is written off")
    )
  },
  ({ id, json, outcome, reason, ...place }) =>
    Effect.gen(function* () {
      const { resolveHold } = yield* administration
      yield* kept(place.state, { action: `resolve as ${outcome}`, subject: id, reason })(
        Effect.filterOrFail(
          resolveHold(id, outcome),
          (isResolved) => isResolved,
          () => ({ _tag: "ResolveRefused", message: `${id} is not held, or it was not signed` }) as const
        )
      )
      yield* answer(json, { id, outcome }, [`${id} is ${outcome}`])
    }).pipe(Effect.provide(databaseStatus(startedAt(place))))
).pipe(Command.withDescription("Record the outcome of a payment that the ledger can no longer decide"))

const listChannels = Command.make("list", { ...placeFlags("tools"), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const found = yield* (yield* administration).listChannels
    const lines = found.map(({ agent, channelId, config, contract, signedFor }) => {
      const terms = `withdraws after ${config.withdrawDelay} s, salt ${config.salt}`
      return [channelId, agent, `${signedFor} of ${config.token} to ${config.receiver}`, contract, terms].join("  ")
    })
    yield* answer(json, found, [...lines, `${found.length} channels`])
  }).pipe(Effect.provide(databaseStatus(startedAt(place))))
).pipe(Command.withDescription("List the agents' payment channels that may hold a deposit, with their terms"))

const sentenceOf = ({ amount, channelId, endsAt, outcome }: Ended): string => {
  switch (outcome) {
    case "refunded":
    case "withdrawn":
      return `${channelId} is ${outcome}: ${amount} atomic units are back with the payer`
    case "nothing left":
      return `${channelId} holds nothing of the payer's`
    default:
      return (
        `${channelId}: ${outcome}; run the command again after ${endsAt} for ${amount} atomic units, ` +
        "less what the seller claims"
      )
  }
}

/** Runs in its own process, also while a tool server runs. Like that server, it needs the payer's key. */
const ending = (way: "refund" | "withdraw", words: string) =>
  Command.make(
    way,
    {
      ...placeFlags("tools"),
      json: jsonFlag,
      keyEnv: Flag.String("api-key-env").pipe(
        defaulting("Environment variable with the facilitator's API key", "FACILITATOR_API_KEY")
      ),
      id: Argument.String("id").pipe(Argument.withDescription("The channel's id"))
    },
    ({ id, json, keyEnv, ...place }) =>
      Effect.gen(function* () {
        const { endChannel } = yield* administration
        const ended = yield* endChannel(id, way, keyEnv)
        yield* answer(json, ended, [sentenceOf(ended)])
      }).pipe(
        Effect.provide(
          Layer.mergeAll(NodeOutbound.layer, NodeHttpCalls.layer).pipe(Layer.provideMerge(startedAt(place)))
        )
      )
  ).pipe(Command.withDescription(words))

const channels = Command.make("channels").pipe(
  Command.withDescription("Agents' payment channels that may hold a deposit"),
  Command.withSubcommands([
    listChannels,
    ending("refund", "Ask a channel's seller to refund what is left"),
    ending("withdraw", "Take back what is left without the seller: starts the withdrawal, and ends it after its delay")
  ])
)

export const toolsBudget = Command.make("tools-budget").pipe(
  Command.withDescription("Manage the amounts held by agents' payments"),
  Command.withSubcommands([list, channels, resolve])
)
