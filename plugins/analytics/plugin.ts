// Operator analytics as a plugin: it reads the journal of facts on a cursor of its own, keeps rollups, and answers
// below /analytics/v1. It stands on no payment's path: whatever fails in it is logged, counted, shown in readiness'
// detail and tried again (S143).
import { Cause, Duration, Effect, Exit, Layer, Metric, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../kernel/Actor.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { WireWords } from "../../kernel/config/WireWords.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { configContract, httpContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { Facts, factsContract } from "../../kernel/Facts.ts"
import { Health, healthContract } from "../../kernel/Health.ts"
import { describe } from "../../kernel/http/OpenApi.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { Catalog, CatalogRecords, catalogContract } from "../catalog/contract.ts"
import { addAnalyticsRoutes } from "./AnalyticsRoutes.ts"
import { Config } from "./Config.ts"
import { described } from "./description.ts"
import { consumer, rebuild } from "./recording/rebuild.ts"
import { startVerifications } from "./recording/countVerifications.ts"
import { makeRecorder } from "./recording/recordSettlements.ts"
import { makeWriteRollups } from "./recording/writeRollups.ts"
import { makeAmounts } from "./reports/amounts.ts"
import { makePseudonyms, makeRedaction } from "./reports/Redaction.ts"

/** Facts in one transaction. */
const batchMax = 500

/** Recording failed; the next turn tries again. */
class RecordingFailed extends Schema.TaggedError<RecordingFailed>()("RecordingFailed", { cause: Schema.Defect() }) {}

const failures = Metric.counter("tollkeeper_analytics_failures_total", {
  description: "Writes of analytics that failed; each is tried again.",
  incremental: true
})

const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const config = yield* Config
    const records = yield* CatalogRecords
    const catalog = yield* Catalog
    const health = yield* Health
    const facts = yield* Facts
    const pseudonymOf = yield* makePseudonyms(sql, yield* Crypto)
    const recorder = makeRecorder({
      sql,
      records,
      writeRollups: makeWriteRollups(sql, pseudonymOf),
      waitMillis: Duration.toMillis((yield* Limits).settleTimeout)
    })
    const failing = new Set<string>()

    /** Even a defect of analytics is its own: it must not count against the process. */
    const contained = <A, E>(what: string, work: Effect.Effect<A, E>) =>
      work.pipe(
        Effect.tap(() => Effect.sync(() => failing.delete(what))),
        Effect.catchCause((cause) => {
          if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
          failing.add(what)
          return Effect.andThen(
            Metric.update(failures, 1),
            Effect.fail(new RecordingFailed({ cause: Cause.squash(cause) }))
          )
        })
      )

    yield* facts.consume({ consumer, batchMax, handle: (batch) => contained("facts", recorder.handle(batch)) })
    yield* reconciler({
      id: "overdue",
      every: "1 second",
      turn: contained(
        "overdue",
        Effect.gen(function* () {
          while (yield* recorder.lapse) yield* Effect.yieldNow
        })
      )
    })
    yield* startVerifications(sql, yield* Extensions)
    yield* health.register(
      "analytics",
      Effect.sync(() =>
        failing.size === 0
          ? { state: "ready" as const }
          : { state: "degraded" as const, detail: `recording fails and is tried again: ${[...failing].join(", ")}` }
      )
    )

    yield* addAnalyticsRoutes({
      config,
      census: yield* Effect.cachedWithTTL(records.census, (exit) => (Exit.isSuccess(exit) ? "1 second" : 0)),
      reporting: {
        sql,
        records,
        isCataloged: (id) => Effect.map(catalog.documents([id]), (documents) => documents.length > 0),
        amounts: makeAmounts((yield* Network).assets),
        redaction: makeRedaction(sql, pseudonymOf, config.redactAddresses),
        dialect: (yield* WireWords).dialects[0]
      }
    })
  })
)

export const plugin = define({
  id: "analytics",
  summary: "What operators ask about payments: totals, series, participants, resources and their history.",
  boot: "optional",
  needs: [
    settingsContract,
    supervisorContract,
    healthContract,
    configContract,
    networkContract,
    httpContract,
    databaseContract,
    factsContract,
    paymentContract,
    catalogContract
  ],
  migrations: "folder",
  layer: Layer.merge(layer, describe(described)).pipe(Layer.provide(Config.layer))
})

/** What the command line does without a running facilitator, over the database alone. */
export const administration = { rebuild }
