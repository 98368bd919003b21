// `tollkeeper limits`: limits that change without a restart, on all replicas within seconds.
import { Context, Effect, Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Limits } from "../../kernel/config/Limits.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { labelIssue, type LimitShown, LiveLimits } from "../../kernel/settlement/operators/LiveLimits.ts"
import {
  answer,
  type CommandTarget,
  databaseStatus,
  jsonFlag,
  kernelTables,
  noted,
  placeFlags,
  reasonFlag,
  Within
} from "./CommandTarget.ts"

const limitsAt = (place: CommandTarget) =>
  databaseStatus(LiveLimits.layer.pipe(Layer.provideMerge(Limits.layer), Layer.provideMerge(kernelTables(place))))

const lineOf = ({ isSet, name, principal, value }: LimitShown): string =>
  `${name}${principal === null ? "" : ` of ${principal}`}  ${value}${isSet ? "  set by an operator" : ""}`

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const found = yield* (yield* LiveLimits).list
    yield* answer(json, found, found.map(lineOf))
  }).pipe(Effect.provide(limitsAt(place)))
).pipe(Command.withDescription("List the limits that can be changed, and their values"))

class NoNumber extends Schema.TaggedError<NoNumber>()("NoNumber", { message: Schema.String }) {}

/** Its limit would apply to no payment. */
class NoSuchKey extends Schema.TaggedError<NoSuchKey>()("NoSuchKey", { message: Schema.String }) {}

const set = Command.make(
  "set",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    key: Flag.String("key").pipe(
      Flag.withDescription("Label of the key to which it applies; default all"),
      Flag.optional
    ),
    name: Argument.String("name").pipe(Argument.withDescription("Name of the limit, as `limits list` has it")),
    value: Argument.String("value").pipe(
      Argument.withDescription("The new value, an integer in its unit; `default` for the setting's")
    )
  },
  ({ json, key, name, reason, value, ...place }) =>
    Effect.gen(function* () {
      if (value !== "default" && !/^\d{1,18}$/.test(value))
        return yield* new NoNumber({ message: `${value} is neither an integer nor \`default\`` })
      const label = Option.getOrUndefined(key)
      const change = { name, key: label, value: value === "default" ? undefined : BigInt(value) }
      const within = yield* Within
      const keys = within === undefined ? Option.none() : Context.getOption(within.services, Keys)
      const issue = Option.isSome(keys) ? labelIssue(keys.value, change) : undefined
      if (issue !== undefined) return yield* new NoSuchKey({ message: issue })
      const subject = label === undefined ? name : `${name} of key:${label}`
      const changed = yield* noted({ action: "limit", subject, reason })((yield* LiveLimits).set(change), (of) => of)
      yield* answer(json, { name, key: label ?? null, ...changed }, [
        `${subject}: ${changed.before} → ${changed.after}; every replica follows within five seconds`
      ])
    }).pipe(Effect.provide(limitsAt(place)))
).pipe(Command.withDescription("Change a limit on all replicas, without a restart"))

export const limits = Command.make("limits").pipe(
  Command.withDescription("Budgets and rates that change without a restart"),
  Command.withSubcommands([list, set])
)
