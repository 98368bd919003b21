// Every metric of the kernel: name, unit, labels and help; a plugin declares its metrics in its `metrics.ts`. Metrics
// are measured by these declarations only. Counters are incremented at the event; gauges of state are refreshed
// on a scrape (`payment/Metrics.ts`) or by an existing periodic task.
import { counter, gauge, histogram } from "./Measure.ts"

export const traffic = {
  requests: counter("tollkeeper_http_requests_total", {
    unit: "count",
    labels: ["route", "status"],
    help: "Requests answered, by route and status."
  }),
  requestSeconds: histogram("tollkeeper_http_request_seconds", {
    unit: "seconds",
    labels: ["route"],
    boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
    help: "Time from a request's head to its answer, by route."
  }),
  answers: counter("tollkeeper_payment_answers_total", {
    unit: "count",
    labels: ["operation", "reason"],
    help: "Payments answered, by operation and result: a refusal's reason, pending, or ok for valid and settled ones."
  }),
  refusals: counter("tollkeeper_payment_refusals_total", {
    unit: "count",
    labels: ["operation", "reason", "principal"],
    help: "Payments refused, by operation, reason and key label; anonymous, none (no listed key) and other are many."
  }),
  queueWaiting: gauge("tollkeeper_queue_waiting", {
    unit: "count",
    labels: ["principal"],
    help: "Payments queued for a channel, by key label; anonymous and other are many callers each."
  })
} as const

export const settling = {
  available: gauge("tollkeeper_settling_available", {
    unit: "yes or no",
    labels: ["scheme"],
    help: "1 while the sponsor can pay for settlements of a scheme, else 0: settle answers busy."
  }),
  open: gauge("tollkeeper_settlements_open", {
    unit: "count",
    help: "Settlements without an outcome on the ledger yet."
  }),
  oldestOpenSeconds: gauge("tollkeeper_settlements_oldest_open_seconds", {
    unit: "seconds",
    help: "Age of the oldest settlement without an outcome on the ledger; 0 when there is none."
  }),
  unresolved: gauge("tollkeeper_settlements_unresolved", {
    unit: "count",
    help: "Settlements whose outcome the ledger can no longer show; an operator resolves them."
  }),
  oldestUnresolvedSeconds: gauge("tollkeeper_settlements_oldest_unresolved_seconds", {
    unit: "seconds",
    help: "Age of the oldest unresolved settlement; 0 when there is none."
  }),
  channelsReady: gauge("tollkeeper_channels_ready", {
    unit: "count",
    help: "Channel accounts that exist and may be leased."
  }),
  channelsFree: gauge("tollkeeper_channels_free", {
    unit: "count",
    help: "Channel accounts that are neither leased nor held."
  }),
  channelsUsable: gauge("tollkeeper_channels_usable", {
    unit: "count",
    help: "Channels that may be leased and whose accounts are on the ledger."
  }),
  channelBalanceLeast: gauge("tollkeeper_channel_balance_least_stroops", {
    unit: "stroops",
    help: "Minimum balance of the usable channels, stroops; 0 when there is none."
  })
} as const

/** The signing keys in use, by the recorded rotations. */
export const rotating = {
  current: gauge("tollkeeper_signer_rotation_current", {
    unit: "yes or no",
    help: "1 if no recorded rotation replaced the keys that sign here; 0 if one did and the sources lack the new ones."
  }),
  generation: gauge("tollkeeper_signer_rotation_generation", {
    unit: "count",
    help: "Generation of the rotation whose keys sign here; 0 before the first rotation."
  }),
  replicasBehind: gauge("tollkeeper_signer_replicas_behind", {
    unit: "count",
    help: "Live replicas that sign with keys that a rotation replaced."
  })
} as const

/** The sponsor and its spending limits. */
export const money = {
  sponsorBalance: gauge("tollkeeper_sponsor_balance_stroops", {
    unit: "stroops",
    help: "Balance of the sponsor's account, stroops; 0 while it is not on the ledger."
  }),
  sponsorSpendable: gauge("tollkeeper_sponsor_spendable_stroops", {
    unit: "stroops",
    help: "The sponsor's balance less its reserve and the maximum cost of open settlements, stroops."
  }),
  sponsorPaymentsLeft: gauge("tollkeeper_sponsor_payments_left", {
    unit: "count",
    help: "Payments that the sponsor can still pay for, each at its maximum cost."
  }),
  budgetLeft: gauge("tollkeeper_budget_left_stroops", {
    unit: "stroops",
    labels: ["scope"],
    help: "Remainder of today's bound on sponsored fees, by scope: all, anonymous, or a key label; stroops."
  }),
  budgetMax: gauge("tollkeeper_budget_max_stroops", {
    unit: "stroops",
    labels: ["scope"],
    help: "Today's bound on sponsored fees, by scope; stroops."
  }),
  budgetPaymentsLeft: gauge("tollkeeper_budget_payments_left", {
    unit: "count",
    labels: ["scope"],
    help: "Payments covered by the remainder of today's bound, each at its maximum cost, by scope."
  })
} as const

export const ledger = {
  available: gauge("tollkeeper_ledger_available", {
    unit: "yes or no",
    help: "1 while the newest reading of the ledger is fresh, else 0."
  }),
  sequence: gauge("tollkeeper_ledger_sequence", { unit: "ledger", help: "Newest ledger seen." }),
  ageSeconds: gauge("tollkeeper_ledger_age_seconds", {
    unit: "seconds",
    help: "Seconds since this process saw the ledger advance."
  }),
  clockSkewSeconds: gauge("tollkeeper_ledger_clock_skew_seconds", {
    unit: "seconds",
    help: "How far this machine's clock is ahead of the ledger's: the minimum over ten new ledgers."
  }),
  inclusionFee: gauge("tollkeeper_ledger_inclusion_fee_stroops", {
    unit: "stroops",
    help: "The network's current inclusion fee, stroops."
  }),
  endpointAvailable: gauge("tollkeeper_ledger_endpoint_available", {
    unit: "yes or no",
    labels: ["endpoint"],
    help: "1 if an RPC endpoint answered the last call to it, else 0; by its position in rpc_urls, from 1."
  }),
  rpcCalls: counter("tollkeeper_ledger_rpc_calls_total", {
    unit: "count",
    labels: ["method"],
    help: "Calls to the ledger's RPC by method, counted when they are sent."
  })
} as const

export const storage = {
  available: gauge("tollkeeper_database_available", {
    unit: "yes or no",
    help: "1 if the last database read of settlements and channels succeeded; 0 if their gauges are stale."
  }),
  writable: gauge("tollkeeper_database_writable", {
    unit: "yes or no",
    help: "1 if the database accepted the last probe's write; 0 if it is read-only, full, or does not finish a write."
  }),
  connectionsMax: gauge("tollkeeper_database_connections_max", {
    unit: "count",
    help: "Maximum number of database connections at this moment."
  }),
  connectionsInUse: gauge("tollkeeper_database_connections_in_use", {
    unit: "count",
    help: "Database connections in use."
  }),
  connectionsWaiting: gauge("tollkeeper_database_connections_waiting", {
    unit: "count",
    help: "Requests waiting for a database connection."
  }),
  replicaUsed: gauge("tollkeeper_database_replica_available", {
    unit: "yes or no",
    help: "1 while reads of discovery and analytics go to the read replica, 0 while they go to the primary."
  }),
  replicaLag: gauge("tollkeeper_database_replica_lag_seconds", {
    unit: "seconds",
    help: "Lag of the read replica behind the primary, once known; absent without one."
  }),
  factsWaiting: gauge("tollkeeper_facts_waiting", {
    unit: "count",
    labels: ["consumer"],
    help: "Facts that a consumer has not read yet, by consumer."
  }),
  factsStalled: gauge("tollkeeper_facts_stalled", {
    unit: "yes or no",
    labels: ["consumer"],
    help: "1 if a consumer did not advance between two checks although facts were pending, else 0."
  })
} as const

/** Bounded caches of this process (`cache/LruCache.ts`), by name. */
export const caches = {
  requests: counter("tollkeeper_cache_requests_total", {
    unit: "count",
    labels: ["cache", "result"],
    help: "Lookups in a cache, by its name and result: hit or miss; an expired entry is a miss."
  }),
  entries: gauge("tollkeeper_cache_entries", {
    unit: "count",
    labels: ["cache"],
    help: "Entries of a cache, by its name."
  })
} as const

/** The last turns of reconcilers; an actor's label is its plugin and id. */
export const reconciling = {
  lastRunSeconds: gauge("tollkeeper_reconciler_last_run_seconds", {
    unit: "seconds",
    labels: ["actor"],
    help: "Seconds since a reconciler's last run ended, by actor."
  }),
  durationSeconds: gauge("tollkeeper_reconciler_last_run_duration_seconds", {
    unit: "seconds",
    labels: ["actor"],
    help: "How long a reconciler's last run took, by actor."
  }),
  failing: gauge("tollkeeper_reconciler_failing", {
    unit: "yes or no",
    labels: ["actor"],
    help: "1 if a reconciler's last run failed, else 0, by actor."
  })
} as const

/** The process; these names are common to all Prometheus exporters. */
export const host = {
  build: gauge("tollkeeper_build_info", {
    unit: "yes or no",
    labels: ["version", "runtime", "runtime_version"],
    help: "Build info; always 1."
  }),
  cpuSeconds: counter("process_cpu_seconds_total", { unit: "seconds", help: "CPU time of this process, seconds." }),
  residentBytes: gauge("process_resident_memory_bytes", { unit: "bytes", help: "Memory of this process, bytes." }),
  startedAt: gauge("process_start_time_seconds", { unit: "seconds", help: "When this process started, Unix seconds." })
} as const

/** All metrics, in reading order. */
export const metrics = [traffic, settling, rotating, money, ledger, storage, caches, reconciling, host].flatMap(
  (group) => Object.values(group)
)
