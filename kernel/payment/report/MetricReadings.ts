// Refreshes the gauges of state on demand: on a scrape of /metrics, or an exporter's interval. Counters and histograms
// are measured when the event happens. At most two statements, bounded in time; ledger, sponsor and reconcilers are
// read from memory. While the database does not answer, the previous values stay, and a metric reports that.
import { Context, Duration, Effect, Layer, Option } from "effect"
import { readCaches } from "../../cache/LruCache.ts"
import { Supervisor } from "../../actor/Supervisor.ts"
import { Network } from "../../config/Network.ts"
import { Database } from "../../database/Database.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { ProcessUsage } from "../../platform/ProcessUsage.ts"
import { ChannelPool } from "../../settlement/channels/ChannelPool.ts"
import { OperatorReports } from "../../settlement/operators/OperatorReports.ts"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import { spendable } from "../../settlement/sponsor/sponsorProblem.ts"
import { measure } from "../../telemetry/Measure.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { caches, host, ledger, money, reconciling, settling, storage, traffic } from "../../telemetry/metrics.ts"
import { Schemes } from "../Scheme.ts"

/** Timeout of the database reads. */
const patience = Duration.seconds(2)
/** Maximum number of principals with a separate label; later ones share one label. */
const principalsMax = 50

/** The ledger clock's gauges, from memory. */
const readLedger = Effect.fnUntraced(function* (clock: LedgerClock["Service"]) {
  const { ageSeconds, isFresh, skewSeconds, time } = yield* clock.status
  yield* measure(ledger.available, isFresh ? 1 : 0)
  yield* measure(ledger.inclusionFee, Number((yield* clock.fees).asked))
  if (skewSeconds !== undefined) yield* measure(ledger.clockSkewSeconds, skewSeconds)
  if (time === undefined) return
  yield* measure(ledger.sequence, time.sequence)
  yield* measure(ledger.ageSeconds, ageSeconds)
})

/** Whether settlements can be paid for, and the last reading of the sponsor; only missing values are read again. */
const readSponsor = Effect.gen(function* () {
  const sponsor = yield* Sponsor
  const network = yield* Network
  const schemes = yield* Schemes
  const dearest = () =>
    ["", ...schemes.all().map(({ scheme }) => scheme)]
      .map((scheme) => network.feeCeilings(scheme).totalStroopsMax)
      .reduce((most, one) => (one > most ? one : most))
  return Effect.gen(function* () {
    for (const { scheme } of schemes.all())
      yield* measure(settling.available, Option.isNone(yield* sponsor.problem(scheme)) ? 1 : 0, { scheme })
    const status = Option.getOrUndefined(yield* sponsor.status)
    if (status === undefined) return
    const left = spendable(status)
    yield* measure(money.sponsorBalance, Number(status.account?.balanceStroops ?? 0n))
    yield* measure(money.sponsorSpendable, Number(left))
    yield* measure(money.sponsorPaymentsLeft, left > 0n ? Number(left / dearest()) : 0)
    yield* measure(settling.channelsUsable, status.channelsUsable)
    yield* measure(settling.channelBalanceLeast, Number(status.channelStroopsLeast ?? 0n))
  })
})

const readDatabase = Effect.gen(function* () {
  const channels = yield* ChannelPool
  const reports = yield* OperatorReports
  const read = Effect.gen(function* () {
    const { free, ready } = yield* channels.counts
    const { oldestOpenSeconds, oldestUnresolvedSeconds, open, unresolved } = yield* reports.unended
    yield* measure(settling.channelsReady, ready)
    yield* measure(settling.channelsFree, free)
    yield* measure(settling.open, open)
    yield* measure(settling.oldestOpenSeconds, oldestOpenSeconds)
    yield* measure(settling.unresolved, unresolved)
    yield* measure(settling.oldestUnresolvedSeconds, oldestUnresolvedSeconds)
    yield* measure(storage.available, 1)
  })
  return read.pipe(
    Effect.timeout(patience),
    Effect.catch((error) =>
      Effect.andThen(
        measure(storage.available, 0),
        Effect.logDebug("settlements and channels could not be read for the metrics", error)
      )
    )
  )
})

const readConnections = Effect.map(Database, ({ pool }) =>
  Effect.suspend(() => {
    const { inUse, max, waiting } = pool()
    return Effect.all([
      measure(storage.connectionsMax, max),
      measure(storage.connectionsInUse, inUse),
      measure(storage.connectionsWaiting, waiting)
    ])
  })
)

/** Waiters by principal, without addresses: one label for all keyless callers, one for keys beyond the first fifty. */
const readQueue = Effect.gen(function* () {
  const { waiting } = yield* ChannelPool
  const labels = new Set(["anonymous", "other"])
  const labelOf = (source: string) => {
    const label = source.startsWith("key:") ? source.slice("key:".length) : "anonymous"
    if (labels.has(label) || labels.size >= principalsMax + 2) return labels.has(label) ? label : "other"
    labels.add(label)
    return label
  }
  return Effect.suspend(() => {
    const counts = new Map<string, number>()
    for (const [source, count] of waiting()) {
      const label = labelOf(source)
      counts.set(label, (counts.get(label) ?? 0) + count)
    }
    return Effect.forEach(labels, (principal) =>
      measure(traffic.queueWaiting, counts.get(principal) ?? 0, { principal })
    )
  })
})

const readReconcilers = Effect.map(Supervisor, ({ actors }) =>
  Effect.gen(function* () {
    const now = yield* monotonicMillis
    for (const { actor, lastRun } of yield* actors) {
      if (lastRun === undefined) continue
      yield* measure(reconciling.lastRunSeconds, (now - lastRun.endedMonotonicMillis) / 1_000, { actor })
      yield* measure(reconciling.durationSeconds, lastRun.durationMillis / 1_000, { actor })
      yield* measure(reconciling.failing, lastRun.outcome === "failed" ? 1 : 0, { actor })
    }
  })
)

const readProcess = Effect.gen(function* () {
  const facts = yield* ProcessUsage
  if (facts === undefined) return Effect.void
  const { runtime, runtimeVersion, startedAtSeconds, version } = facts
  let counted = 0
  return Effect.gen(function* () {
    const { cpuSeconds, residentBytes } = yield* facts.usage
    const more = Math.max(0, cpuSeconds - counted)
    counted += more
    yield* measure(host.build, 1, { version, runtime, runtime_version: runtimeVersion })
    yield* measure(host.startedAt, startedAtSeconds)
    yield* measure(host.residentBytes, residentBytes)
    yield* measure(host.cpuSeconds, more)
  })
})

/** Hits and misses of each cache since the last reading, and its entries. */
const measureCaches = Effect.sync(() => {
  const counted = new Map<string, number>()
  const add = (cache: string, result: "hit" | "miss", total: number) => {
    const key = `${cache} ${result}`
    const more = total - (counted.get(key) ?? 0)
    counted.set(key, total)
    return measure(caches.requests, more, { cache, result })
  }
  return Effect.suspend(() =>
    Effect.forEach(
      readCaches(),
      ({ entries, hits, misses, name }) =>
        Effect.all([
          add(name, "hit", hits),
          add(name, "miss", misses),
          measure(caches.entries, entries, { cache: name })
        ]),
      { discard: true }
    )
  )
})

export class MetricReadings extends Context.Service<
  MetricReadings,
  {
    /** Reads every state into its metric. */
    readonly refresh: Effect.Effect<void>
  }
>()("tollkeeper/payment/MetricReadings") {
  static readonly layer = Layer.effect(
    MetricReadings,
    Effect.gen(function* () {
      const clock = yield* LedgerClock
      const readings = [
        yield* readDatabase,
        yield* readSponsor,
        yield* readConnections,
        yield* readQueue,
        yield* readReconcilers,
        yield* readProcess,
        yield* measureCaches,
        readLedger(clock)
      ]
      return MetricReadings.of({ refresh: Effect.all(readings, { concurrency: readings.length, discard: true }) })
    })
  ).pipe(Layer.provide(OperatorReports.layer))
}
