// Runs the hooks that add to `extensions` in the body of a success, after the outcome is recorded and the answer
// decided. Each has 25 ms, and the total size is bounded, since the body travels in one of the seller's headers. A
// member that fails, is late, too large or not JSON is left out of the answer. A hook that was late is not called again
// for a second: so it delays one answer, and not each. An event of the outcome (stream, webhook) has the same members.
// Its hooks run without a deadline, because no caller waits for it.
import { Effect, Option } from "effect"
import type { SettlementRecord } from "../settlement/store/Settlements.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { withDeadline } from "../effect/withDeadline.ts"
import { endedType } from "../settlement/store/facts.ts"
import { Extensions, type SettledAnswer, type SettledHook } from "./Extension.ts"

/** How long a success waits for one hook. */
export const hookMillisMax = 25
/** How long a hook that was late is left out. */
const restMillis = 1_000
/**
 * Maximum characters of `extensions` as JSON: with the rest of the body it stays below 4 KiB in base64, which proxies
 * accept in a header.
 */
export const extensionsLengthMax = 2_400

/** Members that fit, in order. */
type Members = Record<string, unknown>

/**
 * Also None for a value that does not serialize to JSON. We serialize it here, once, so that a surprise in it cannot
 * break the answer.
 */
const writtenBy = (hook: SettledHook, answer: SettledAnswer): Effect.Effect<Option.Option<string>> =>
  Effect.suspend(() => hook.add(answer)).pipe(
    Effect.map((added) => Option.flatMap(added, (value) => Option.fromUndefinedOr(JSON.stringify(value)))),
    Effect.catchCause((cause) =>
      Effect.as(Effect.logError(`the hook ${hook.key} of a settled answer failed`, cause), Option.none<string>())
    )
  )

/** Adds a member if it fits; returns the new length. */
const addMember = (members: Members, length: number, { key }: SettledHook, written: string): number => {
  const longer = length + key.length + 4 + written.length
  if (longer > extensionsLengthMax) return length
  members[key] = JSON.parse(written)
  return longer
}

/** The `extensions` of this record's event, or undefined. Never fails; waits for its hooks. */
export const eventExtensions = Effect.fnUntraced(function* (
  { settledHooks }: Extensions["Service"],
  type: string,
  record: SettlementRecord
) {
  if (type !== endedType("settled") || record.state !== "settled") return {}
  const members: Members = {}
  let length = 2
  for (const hook of settledHooks()) {
    const written = yield* writtenBy(hook, { record })
    if (Option.isSome(written)) length = addMember(members, length, hook, written.value)
  }
  return Object.keys(members).length === 0 ? {} : { extensions: members }
})

/** The members of `extensions` for a success; undefined without members. Never fails. */
export const makeSettledExtensions = Effect.gen(function* () {
  const extensions = yield* Extensions
  const scope = yield* Effect.scope
  const restsUntil = new WeakMap<SettledHook, number>()

  const late = (hook: SettledHook) =>
    Effect.flatMap(monotonicMillis, (now) => {
      restsUntil.set(hook, now + restMillis)
      return Effect.as(Effect.logWarning(`the hook ${hook.key} of a settled answer was late`), Option.none<string>())
    })

  const run = Effect.fnUntraced(function* (hooks: ReadonlyArray<SettledHook>, answer: SettledAnswer) {
    const members: Members = {}
    let length = 2
    for (const hook of hooks) {
      const rest = restsUntil.get(hook)
      if (rest !== undefined && (yield* monotonicMillis) < rest) continue
      const written = yield* withDeadline(writtenBy(hook, answer), {
        timeout: hookMillisMax,
        scope,
        onTimeout: late(hook)
      })
      if (Option.isNone(written)) continue
      length = addMember(members, length, hook, written.value)
    }
    return members
  })

  return (answer: SettledAnswer): Effect.Effect<Readonly<Members> | undefined> => {
    const hooks = extensions.settledHooks()
    return hooks.length === 0
      ? Effect.undefined
      : Effect.map(run(hooks, answer), (members) => (Object.keys(members).length === 0 ? undefined : members))
  }
})
