// `tollkeeper approvals`: the payments of agents that wait for a person, an operator's word on them, and the log of
// what was decided. It works on the state folder alone, beside the running tool server.
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { administration } from "../../plugins/mcp-tools-pay/plugin.ts"
import { groundAt, placeFlags } from "./place.ts"

const list = Command.make("list", placeFlags("tools"), (place) =>
  Effect.gen(function* () {
    const standing = yield* administration.listApprovals
    for (const { agent, amount, asset, askedAtMillis, id, origin, payTo, rule, state } of standing) {
      const what = `${amount} of ${asset} to ${payTo}, ${origin ?? "a symbolic name"}`
      yield* Console.log([id, state, new Date(askedAtMillis).toISOString(), agent, rule, what].join("  "))
    }
    yield* Console.log(`${standing.filter(({ state }) => state === "pending").length} waiting`)
  }).pipe(Effect.provide(groundAt(place)))
).pipe(Command.withDescription("List the payments that wait for a person"))

const decide = (name: "approve" | "deny", state: "approved" | "denied", description: string) =>
  Command.make(
    name,
    {
      ...placeFlags("tools"),
      id: Argument.String("id").pipe(Argument.withDescription("Of the request, as list shows it"))
    },
    ({ id, ...place }) =>
      Effect.gen(function* () {
        if (!(yield* administration.decideApproval(id, state)))
          return yield* Effect.fail({ _tag: "DecisionRefused", message: `nothing waits as ${id}` } as const)
        yield* Console.log(`${id} is ${state}`)
      }).pipe(Effect.provide(groundAt(place)))
  ).pipe(Command.withDescription(description))

const log = Command.make("log", placeFlags("tools"), (place) =>
  Effect.gen(function* () {
    const text = (yield* administration.decisions).trimEnd()
    if (text !== "") yield* Console.log(text)
  }).pipe(Effect.provide(groundAt(place)))
).pipe(Command.withDescription("Print every decision on a payment, one JSON object a line"))

export const approvals = Command.make("approvals").pipe(
  Command.withDescription("Agents' payments that wait for a person, for operators"),
  Command.withSubcommands([
    list,
    decide("approve", "approved", "Let one payment pass, once"),
    decide("deny", "denied", "Refuse a payment"),
    log
  ])
)
