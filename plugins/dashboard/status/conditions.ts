// Conditions that count as an incident of the service. They are the conditions of the alerts that callers feel, as data
// over the process's own metrics, so that the status page needs no monitoring. A test replays each alert's cases here.
import { ledger, money, settling, storage, traffic } from "../../../kernel/telemetry/metrics.ts"

type Labels = Readonly<Record<string, string>>

interface Named {
  readonly name: string
}

interface Meaning {
  readonly alert: string
  /** Code of the cause, as stored and reported. */
  readonly cause: string
  /** Effect on a caller, without figures, keys or addresses. */
  readonly summary: string
  /** Seconds for which the condition must hold. */
  readonly forSeconds: number
}

/** Holds while a gauge of any series with these labels is beyond its bound. */
interface Level extends Meaning {
  readonly metric: Named
  readonly labels?: Labels
  readonly is: "above" | "below"
  readonly bound: number
}

/**
 * Holds while a counter's growth in the window exceeds its bound. With `shareOf`, compares its share of the growth of
 * those series.
 */
interface Growth extends Meaning {
  readonly counter: Named
  readonly labels: Labels
  readonly shareOf?: Labels
  readonly above: number
}

/** A condition over the metrics. */
export type Condition = Level | Growth

/** The window over which every growth is measured, as in the alerts. */
export const windowSeconds = 600

const settles = { operation: "settle" }

/** All conditions, in the order of their effects. */
export const conditions: ReadonlyArray<Condition> = [
  {
    alert: "TollkeeperSettlingUnavailable",
    cause: "settling_unavailable",
    summary: "Settling was answered busy: no settlement could be paid for.",
    forSeconds: 120,
    metric: settling.available,
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperSponsorEmpty",
    cause: "sponsor_empty",
    summary: "The sponsor's balance did not cover another transaction.",
    forSeconds: 60,
    metric: money.sponsorPaymentsLeft,
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperBudgetUsedUp",
    cause: "budget_used_up",
    summary: "The day's bound on sponsored fees was used up.",
    forSeconds: 60,
    metric: money.budgetPaymentsLeft,
    labels: { scope: "all" },
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperSettlementsUnresolved",
    cause: "settlements_unresolved",
    summary: "The ledger could no longer show how a settlement ended; an operator resolves it.",
    forSeconds: 0,
    metric: settling.unresolved,
    is: "above",
    bound: 0
  },
  {
    alert: "TollkeeperSettlementOpenLong",
    cause: "settlement_open_long",
    summary: "A settlement had no end for a quarter of an hour.",
    forSeconds: 300,
    metric: settling.oldestOpenSeconds,
    is: "above",
    bound: 900
  },
  {
    alert: "TollkeeperLedgerStalled",
    cause: "ledger_stalled",
    summary: "No new ledger was observed: nothing could be verified or settled.",
    forSeconds: 60,
    metric: ledger.available,
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperDatabaseUnavailable",
    cause: "database_unavailable",
    summary: "The database did not answer: nothing could be settled.",
    forSeconds: 60,
    metric: storage.available,
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperDatabaseNotWriting",
    cause: "database_not_writing",
    summary: "The database accepted no writes: nothing could be settled.",
    forSeconds: 0,
    metric: storage.writable,
    is: "below",
    bound: 1
  },
  {
    alert: "TollkeeperSettleBusy",
    cause: "settle_busy",
    summary: "More than one settle in twenty was answered busy.",
    forSeconds: 300,
    counter: traffic.answers,
    labels: { ...settles, reason: "settle_ledger_temporarily_unavailable" },
    shareOf: settles,
    above: 0.05
  },
  {
    alert: "TollkeeperSettlePending",
    cause: "settle_pending",
    summary: "More than one settle in ten had no outcome within its answer's time.",
    forSeconds: 600,
    counter: traffic.answers,
    labels: { ...settles, reason: "pending" },
    shareOf: settles,
    above: 0.1
  },
  {
    alert: "TollkeeperInternalErrors",
    cause: "internal_errors",
    summary: "A request failed with an internal error.",
    forSeconds: 0,
    counter: traffic.requests,
    labels: { status: "500" },
    above: 0
  }
]

/**
 * Cause of minutes during which no replica wrote its heartbeat: no replica was running, or none reached the database.
 */
export const interruption = {
  cause: "interruption",
  summary: "No replica wrote to the database: the service was stopped, or cut off from it."
} as const

/** Sentence of a cause. Returns the code itself for a cause of another version. */
export const summaryOf = (cause: string): string =>
  [...conditions, interruption].find((one) => one.cause === cause)?.summary ?? cause
