// `tollkeeper approvals`: agents' payments that wait for approval, an operator's decision, and the log of decisions. It
// works on the store, in parallel with the running tool server.
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { administration } from "../../plugins/mcp-tools-pay/plugin.ts"
import { visibleText } from "../visibleText.ts"
import { answer, jsonFlag, kept, placeFlags, reasonFlag, startedAt, whyFlag } from "./CommandTarget.ts"

/** Untrusted text as an inert quotation. */
const quoted = (text: string) => `"${text.replaceAll('"', "'")}"`

const list = Command.make("list", { ...placeFlags("tools"), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const approvals = yield* (yield* administration).listApprovals
    const lines = approvals.flatMap(
      ({ agent, amount, asset, askedAtMillis, bought, id, origin, payTo, rule, state }) => {
        const price = bought === undefined ? `${amount} of ${asset}` : `${bought.price} (${amount} of ${asset})`
        const more = [
          ["buys", bought && `${quoted(bought.title)}: ${quoted(bought.action)}`],
          ["arguments", bought?.arguments],
          ["pays", `${price} to ${payTo}, ${origin ?? "a symbolic name"}`],
          ["moves", bought?.moves],
          ["budget", bought?.budget]
        ] as const
        return [
          [id, state, new Date(askedAtMillis).toISOString(), agent, rule].join("  "),
          ...more.flatMap(([label, text]) => (text === undefined ? [] : [`  ${label.padEnd(10)}${text}`]))
        ]
      }
    )
    const waiting = approvals.filter(({ state }) => state === "pending").length
    yield* answer(json, approvals, [...lines, `${waiting} waiting`])
  }).pipe(Effect.provide(startedAt(place)))
).pipe(Command.withDescription("List payments that wait for approval"))

const decide = (name: "approve" | "deny", state: "approved" | "denied", description: string) =>
  Command.make(
    name,
    {
      ...placeFlags("tools"),
      json: jsonFlag,
      reason: state === "approved" ? reasonFlag : whyFlag,
      id: Argument.String("id").pipe(Argument.withDescription("Id of the request, from `list`"))
    },
    ({ id, json, reason, ...place }) =>
      Effect.gen(function* () {
        const { decideApproval } = yield* administration
        yield* kept(place.state, { action: name, subject: id, reason })(
          Effect.filterOrFail(
            decideApproval(id, state),
            (isDecided) => isDecided,
            () => ({ _tag: "DecisionRefused", message: `no pending approval has the id ${id}` }) as const
          )
        )
        yield* answer(json, { id, state }, [`${id} is ${state}`])
      }).pipe(Effect.provide(startedAt(place)))
  ).pipe(Command.withDescription(description))

const log = Command.make("log", placeFlags("tools"), (place) =>
  Effect.gen(function* () {
    const text = (yield* (yield* administration).decisions).trimEnd()
    if (text !== "") yield* Console.log(visibleText(text))
  }).pipe(Effect.provide(startedAt(place)))
).pipe(Command.withDescription("Print every decision on a payment, one JSON object a line"))

export const approvals = Command.make("approvals").pipe(
  Command.withDescription("Approve or deny agents' payments, for operators"),
  Command.withSubcommands([
    list,
    decide("approve", "approved", "Approve one payment, once"),
    decide("deny", "denied", "Deny a payment"),
    log
  ])
)
