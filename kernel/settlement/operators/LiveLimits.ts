// Limits that change without a restart: fee budgets, rates, and the number of open settlements. An operator's value is
// a row that every replica reads every two seconds and applies to `Limits`; without a row the setting applies. The
// replica that receives the request applies it immediately.
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { suggestionSuffix } from "../../config/didYouMean.ts"
import { Limits, type LimitValues } from "../../config/Limits.ts"
import { Database } from "../../database/Database.ts"
import type { Keys } from "../../http/Keys.ts"

const pollEvery = "2 seconds"

/** By the names of the settings; a `perKey` limit may have a value for one principal. */
const names = {
  max_sponsored_stroops_per_key_per_day: { min: 0n, max: 10n ** 18n, perKey: true },
  max_global_sponsored_stroops_per_day: { min: 0n, max: 10n ** 18n, perKey: false },
  max_pending_settlements: { min: 1n, max: 1_000_000n, perKey: false },
  verify_per_second: { min: 0n, max: 100_000n, perKey: false },
  settle_per_second: { min: 0n, max: 100_000n, perKey: false }
} as const

type LimitName = keyof typeof names
export const limitNames = Object.keys(names) as ReadonlyArray<LimitName>

export interface LimitShown {
  readonly name: LimitName
  /** `key:label` of a key's own limit; null for the limit of all. */
  readonly principal: string | null
  readonly value: bigint
  /** Set by an operator, not by the settings. */
  readonly isSet: boolean
}

class LimitRefused extends Schema.TaggedError<LimitRefused>()("LimitRefused", { message: Schema.String }) {}

interface Row {
  readonly name: string
  readonly principal: string
  readonly value: bigint
}

const liveOf = (base: LimitValues, rows: ReadonlyArray<Row>): Partial<LimitValues> => {
  const of = (name: LimitName) => rows.find((row) => row.name === name && row.principal === "")?.value
  const number = (name: LimitName, configured: number) => Number(of(name) ?? configured)
  const byKey = rows.flatMap(({ principal, value }) => (principal === "" ? [] : [[principal, value] as const]))
  return {
    sponsoredPerPrincipalPerDayStroopsMax:
      of("max_sponsored_stroops_per_key_per_day") ?? base.sponsoredPerPrincipalPerDayStroopsMax,
    sponsoredPerDayStroopsMax: of("max_global_sponsored_stroops_per_day") ?? base.sponsoredPerDayStroopsMax,
    sponsoredByKeyPerDayStroopsMax: new Map([...(base.sponsoredByKeyPerDayStroopsMax ?? []), ...byKey]),
    pendingSettlementsMax: number("max_pending_settlements", base.pendingSettlementsMax),
    verifyPerSecond: number("verify_per_second", base.verifyPerSecond),
    settlePerSecond: number("settle_per_second", base.settlePerSecond)
  }
}

const shownOf = (limits: LimitValues, rows: ReadonlyArray<Row>): ReadonlyArray<LimitShown> => {
  const isSet = (name: LimitName, principal: string) =>
    rows.some((row) => row.name === name && row.principal === principal)
  const values = {
    max_sponsored_stroops_per_key_per_day: limits.sponsoredPerPrincipalPerDayStroopsMax,
    max_global_sponsored_stroops_per_day: limits.sponsoredPerDayStroopsMax,
    max_pending_settlements: BigInt(limits.pendingSettlementsMax),
    verify_per_second: BigInt(limits.verifyPerSecond),
    settle_per_second: BigInt(limits.settlePerSecond)
  } satisfies Record<LimitName, bigint>
  const own = "max_sponsored_stroops_per_key_per_day"
  return [
    ...limitNames.map((name) => ({ name, principal: null, value: values[name], isSet: isSet(name, "") })),
    ...[...(limits.sponsoredByKeyPerDayStroopsMax ?? [])].map(([principal, value]): LimitShown => ({
      name: own,
      principal,
      value,
      isSet: isSet(own, principal)
    }))
  ]
}

interface LimitChange {
  readonly name: string
  /** The label of the limit's key; absent for everyone. */
  readonly key?: string | undefined
  /** Absent: the setting applies again. */
  readonly value: bigint | undefined
}

const check = ({ key, name, value }: LimitChange): Effect.Effect<void, LimitRefused> => {
  const refuse = (message: string) => new LimitRefused({ message })
  const found = limitNames.find((one) => one === name)
  if (found === undefined) return refuse(`no limit is called ${name}; adjustable limits: ${limitNames.join(", ")}`)
  const { max, min, perKey } = names[found]
  if (key !== undefined && !perKey) return refuse(`${name} has no value for one key`)
  if (key !== undefined && !/^[a-z][a-z0-9-]{0,31}$/.test(key)) return refuse("a key is named by its label")
  return value !== undefined && (value < min || value > max) ? refuse(`${name} is from ${min} to ${max}`) : Effect.void
}

/** Why a limit of one key would apply to none: no caller's key here has its label, listed or revoked. */
export const labelIssue = (keys: Keys["Service"], { key, value }: LimitChange): string | undefined => {
  const labels = keys.named().flatMap(({ principal, role }) => (role === "caller" ? [principal] : []))
  if (key === undefined || value === undefined || labels.includes(key)) return undefined
  return `no key of a caller has the label ${key}${suggestionSuffix(key, labels)}`
}

export class LiveLimits extends Context.Service<
  LiveLimits,
  {
    readonly list: Effect.Effect<ReadonlyArray<LimitShown>, SqlError.SqlError>
    /** Stores a value, or removes it, and applies it here; the other replicas follow within two seconds. */
    readonly set: (
      change: LimitChange
    ) => Effect.Effect<{ readonly before: string; readonly after: string }, LimitRefused | SqlError.SqlError>
  }
>()("tollkeeper/settlement/LiveLimits") {
  static readonly layer = Layer.effect(
    LiveLimits,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const base: LimitValues = { ...limits }
      const rows = sql<Row>`select name, principal, value from kernel_limits order by name, principal`
      const refresh = Effect.tap(rows, (stored) => Effect.sync(() => Object.assign(limits, liveOf(base, stored))))
      const list = Effect.map(refresh, (stored) => shownOf(limits, stored))
      const valueOf = ({ key, name }: LimitChange) =>
        Effect.map(list, (shownLimits) => {
          const of = (principal: string | null) =>
            shownLimits.find((one) => one.name === name && one.principal === principal)?.value
          return String((key === undefined ? undefined : of(`key:${key}`)) ?? of(null))
        })
      // An embedded database has one process: only its own start and changes need a read.
      yield* reconciler({
        id: "limits",
        every: (yield* Database).kind === "server" ? pollEvery : "1 hour",
        turn: Effect.asVoid(refresh)
      })
      return LiveLimits.of({
        list,
        set: Effect.fn("LiveLimits.set")(function* (change) {
          yield* check(change)
          const before = yield* valueOf(change)
          const { key, name, value } = change
          const principal = key === undefined ? "" : `key:${key}`
          yield* value === undefined
            ? sql`delete from kernel_limits where name = ${name} and principal = ${principal}`
            : sql`insert into kernel_limits (name, principal, value) values (${name}, ${principal}, ${value}::int8)
                on conflict (name, principal) do update
                set value = excluded.value, changed_at = clock_timestamp()`
          return { before, after: yield* valueOf(change) }
        })
      })
    })
  )
}
