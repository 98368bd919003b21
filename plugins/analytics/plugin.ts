// Operator analytics as a plugin: it reads the journal of facts with its own cursor, maintains rollups, and answers
// below /analytics/v1. It is not on the path of any payment: a failure in it is logged, counted, shown in readiness'
// detail and retried (S143).
import { Duration, Effect, Layer } from "effect"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { accountsContract } from "../../kernel/accounts/AccountSessions.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { configContract, httpContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { Facts, factsContract } from "../../kernel/facts/Facts.ts"
import { healthContract } from "../../kernel/health/Health.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { catalogContract } from "../catalog/contract.ts"
import { addAnalyticsRoutes } from "./AnalyticsRoutes.ts"
import { Config, declared } from "./Config.ts"
import { addEventsRoute } from "./events.ts"
import { Containment } from "./recording/Containment.ts"
import { startRefusals, sweepRefusals } from "./recording/countRefusals.ts"
import { startVerifications } from "./recording/countVerifications.ts"
import { Pseudonyms } from "./recording/Pseudonyms.ts"
import { consumer, rebuild } from "./recording/rebuild.ts"
import { Recorder } from "./recording/Recorder.ts"
import { Rollups } from "./recording/Rollups.ts"
import { sweepSettlements } from "./recording/sweepSettlements.ts"
import { addBadgeRoutes } from "./BadgeRoutes.ts"
import { addListRoutes } from "./ListRoutes.ts"
import { ReportRunner } from "./ReportRunner.ts"
import { Amounts } from "./reports/Amounts.ts"
import { Find } from "./reports/Find.ts"
import { Participants } from "./reports/Participants.ts"
import { Pulse } from "./reports/Pulse.ts"
import { Redaction } from "./reports/Redaction.ts"
import { readRefusals, Refusals } from "./reports/Refusals.ts"
import { ResourceReports } from "./reports/ResourceReports.ts"
import { Selling } from "./reports/Selling.ts"
import { SettlementList } from "./reports/SettlementList.ts"
import { Spelling } from "./reports/Spelling.ts"
import { Totals } from "./reports/Totals.ts"
import { Transactions } from "./reports/Transactions.ts"

const batchMax = 500
/** Settlements that become overdue within this time are batched. */
const pauseMillisMin = 250
/** After a failed query for overdue settlements. */
const retryMillis = 1_000

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const facts = yield* Facts
    const recorder = yield* Recorder
    const { contained } = yield* Containment
    yield* facts.consume({ consumer, batchMax, handle: (batch) => contained("facts", recorder.handle(batch)) })
    let pauseMillis = retryMillis
    yield* reconciler({
      id: "overdue",
      every: Effect.sync(() => Duration.millis(pauseMillis)),
      turn: contained(
        "overdue",
        Effect.gen(function* () {
          pauseMillis = retryMillis
          let next = 0
          while ((next = yield* recorder.lapse) === 0) yield* Effect.yieldNow
          pauseMillis = Math.max(pauseMillisMin, next)
        })
      )
    })
    const { keepMillis } = yield* Config
    yield* reconciler({
      id: "analytics-forget",
      every: "1 hour",
      turn: contained(
        "forget",
        Effect.gen(function* () {
          while (yield* sweepSettlements(keepMillis)) yield* Effect.yieldNow
          yield* sweepRefusals(keepMillis)
        })
      )
    })
    yield* reconciler({ id: "windows", every: "1 minute", turn: contained("windows", recorder.keepWindows) })
    yield* startVerifications
    yield* startRefusals
    yield* addAnalyticsRoutes
    yield* addListRoutes
    yield* addBadgeRoutes
    yield* addEventsRoute
  })
)

export const recording = Recorder.layer.pipe(Layer.provide(Rollups.layer))

/** Services that read them, over a network's assets. */
export const reports = Layer.mergeAll(
  Totals.layer,
  Transactions.layer,
  Participants.layer,
  ResourceReports.layer,
  Refusals.layer,
  SettlementList.layer,
  Find.layer,
  Pulse.layer,
  Selling.layer
).pipe(Layer.provideMerge(Spelling.layer), Layer.provideMerge(Redaction.layer))

export const plugin = define({
  id: "analytics",
  summary: "Reports on payments for operators: totals, series, participants, resources and their history.",
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
    accountsContract,
    paymentContract,
    catalogContract
  ],
  migrations: "folder",
  settings: declared,
  layer: started.pipe(
    Layer.provide(Layer.mergeAll(recording, reports, ReportRunner.layer, Containment.layer)),
    Layer.provide(Layer.mergeAll(Config.layer, Amounts.layer, Pseudonyms.layer))
  )
})

/** Command-line access without a running facilitator; it only needs the database. */
export const administration = { rebuild, readRefusals }

export { metrics } from "./metrics.ts"
