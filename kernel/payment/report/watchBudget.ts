// Warns before the sponsor's budget runs out: at four fifths of a bound and when no further payment fits, once a day
// each, with the setting that raises it. It reports the remaining budget as a metric. At the start it reports how many
// payments the bounds cover, or that an unfunded sponsor pays for no payment. Bounds apply to all callers, to all
// keyless callers together, and to each keyed principal. No address is logged.
import { Duration, Effect, Option } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { Budget, type BudgetStatus, type Usage } from "../../budget/Budget.ts"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { Database } from "../../database/Database.ts"
import { DiskSpace } from "../../platform/DiskSpace.ts"
import { StartupBanner } from "../../StartupBanner.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import { measure } from "../../telemetry/Measure.ts"
import { money } from "../../telemetry/metrics.ts"
import { Schemes } from "../Scheme.ts"

/** Bytes of a settlement with its facts, reports and log entry, on the disk of an embedded database. */
const settlementBytes = 10_000
const every = Duration.seconds(10)
/** While idle, only other replicas spend. */
const everyUnattended = Duration.seconds(30)

interface Scope extends Usage {
  readonly name: string
  readonly setting: string
}

const scopesOf = ({ all, anonymous, keyed }: BudgetStatus): ReadonlyArray<Scope> => [
  { name: "all", setting: "limits.max_global_sponsored_stroops_per_day", ...all },
  { name: "anonymous", setting: "limits.max_global_sponsored_stroops_per_day, or give callers keys", ...anonymous },
  ...keyed.map(({ principal, ...usage }) => ({
    name: principal,
    setting: `limits.max_sponsored_stroops_per_day_by_key.${principal.replace("key:", "")}`,
    ...usage
  }))
]

/** Usage of a bound in percent: 100 when another payment may not fit. */
const levelOf = ({ maxStroops, usedStroops }: Usage, paymentStroops: bigint): 0 | 80 | 100 =>
  usedStroops + paymentStroops > maxStroops ? 100 : usedStroops * 5n >= maxStroops * 4n ? 80 : 0

/** A line if the embedded database's disk has room for fewer payments than the bounds cover. */
const narrowDisk = Effect.fnUntraced(function* (database: Database["Service"], covered: bigint) {
  const reading = database.kind === "embedded" ? yield* yield* DiskSpace : undefined
  if (reading === undefined) return []
  const room = Math.max(0, Math.floor((reading.freeBytes - database.diskReserveBytes) / settlementBytes))
  return BigInt(room) < covered
    ? [`the disk has room for some ${room} payments; free some space in ${reading.folder}`]
    : []
})

export const watchBudget = Effect.gen(function* () {
  const budget = yield* Budget
  const clock = yield* LedgerClock
  const limits = yield* Limits
  const network = yield* Network
  const schemes = yield* Schemes
  const greeting = yield* StartupBanner
  const { totalStroopsMax: usualStroops } = network.feeCeilings("")
  const paymentStroops = () =>
    schemes
      .all()
      .map(({ scheme }) => network.feeCeilings(scheme).totalStroopsMax)
      .reduce((most, one) => (one > most ? one : most), usualStroops)
  const narrow = narrowDisk(yield* Database, limits.sponsoredPerDayStroopsMax / usualStroops)
  const sponsor = yield* Sponsor
  const covered = () =>
    `at least ${limits.sponsoredPerDayStroopsMax / usualStroops} payments a day are sponsored, ` +
    `${limits.sponsoredPerPrincipalPerDayStroopsMax / usualStroops} per key (tollkeeper budget)`
  yield* greeting.add(
    Effect.gen(function* () {
      // While nothing can be recorded (a full disk), we promise nothing.
      const unwritable = yield* sponsor.unrecordable
      const why = Option.isSome(unwritable) ? unwritable : yield* sponsor.unfunded
      const where = Option.match(why, { onNone: covered, onSome: (why) => `no payment is sponsored: ${why}` })
      return { label: "fees", where: [where, ...(Option.isSome(why) ? [] : yield* narrow)] }
    })
  )
  const reported = new Map<string, { readonly day: string; readonly level: number }>()
  const warn = Effect.fnUntraced(function* (day: string, scope: Scope) {
    const level = levelOf(scope, paymentStroops())
    const before = reported.get(scope.name)
    reported.set(scope.name, { day, level: before?.day === day ? Math.max(before.level, level) : level })
    if (level === 0 || (before?.day === day && before.level >= level)) return
    const what = level === 100 ? "is used up: payments are refused" : "is four fifths used"
    yield* Effect.logWarning(`the sponsor's budget of ${scope.name} for ${day} ${what}; raise ${scope.setting}`).pipe(
      Effect.annotateLogs({
        scope: scope.name,
        level,
        usedStroops: String(scope.usedStroops),
        maxStroops: String(scope.maxStroops)
      })
    )
  })
  const lastReported = new Map<string, Scope>()
  const report = Effect.fnUntraced(function* (scope: Scope) {
    lastReported.set(scope.name, scope)
    const left = scope.maxStroops > scope.usedStroops ? scope.maxStroops - scope.usedStroops : 0n
    yield* measure(money.budgetLeft, Number(left), { scope: scope.name })
    yield* measure(money.budgetMax, Number(scope.maxStroops), { scope: scope.name })
    yield* measure(money.budgetPaymentsLeft, Number(left / paymentStroops()), { scope: scope.name })
  })
  const turn = Effect.gen(function* () {
    const status = yield* budget.status
    const scopes = scopesOf(status)
    for (const scope of scopes) {
      yield* report(scope)
      yield* warn(status.day, scope)
    }
    // Principals without usage today are not reported: a new day gives each the whole bound.
    for (const [name, scope] of lastReported)
      if (!scopes.some((one) => one.name === name)) yield* report({ ...scope, usedStroops: 0n })
  })
  const watch = yield* reconciler({
    id: "budget-watch",
    every: Effect.map(clock.isAttended, (isAttended) => (isAttended ? every : everyUnattended)),
    turn
  })
  // Verify decides by this reading, and other replicas spend too.
  yield* clock.subscribe(watch.wake)
})
