// `tollkeeper tools-budget`: the amounts that agents' payments hold, and an operator's decision on holds that the
// ledger can no longer decide. It runs within the tool server over the state folder; standalone it works on the store.
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { administration } from "../../plugins/mcp-tools-pay/plugin.ts"
import { answer, startedAt, jsonFlag, placeFlags, databaseStatus } from "./CommandTarget.ts"

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
    id: Argument.String("id").pipe(Argument.withDescription("The payment identifier")),
    outcome: Argument.Literals("outcome", ["spent", "released", "settled"]).pipe(
      Argument.withDescription("Its outcome according to the ledger; settled: spent, and its content is written off")
    )
  },
  ({ id, json, outcome, ...place }) =>
    Effect.gen(function* () {
      if (!(yield* (yield* administration).resolveHold(id, outcome)))
        return yield* Effect.fail({
          _tag: "ResolveRefused",
          message: `${id} is not held, or it was not signed`
        } as const)
      yield* answer(json, { id, outcome }, [`${id} is ${outcome}`])
    }).pipe(Effect.provide(databaseStatus(startedAt(place))))
).pipe(Command.withDescription("Record the outcome of a payment that the ledger can no longer decide"))

const channels = Command.make("channels", { ...placeFlags("tools"), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const found = yield* (yield* administration).listChannels
    const lines = found.map(({ agent, channelId, config, contract, signedFor }) => {
      const terms = `withdraws after ${config.withdrawDelay} s, salt ${config.salt}`
      return [channelId, agent, `${signedFor} of ${config.token} to ${config.receiver}`, contract, terms].join("  ")
    })
    yield* answer(json, found, [...lines, `${found.length} channels`])
  }).pipe(Effect.provide(databaseStatus(startedAt(place))))
).pipe(Command.withDescription("List the agents' payment channels that may hold a deposit, with their terms"))

export const toolsBudget = Command.make("tools-budget").pipe(
  Command.withDescription("Manage the amounts held by agents' payments"),
  Command.withSubcommands([list, channels, resolve])
)
