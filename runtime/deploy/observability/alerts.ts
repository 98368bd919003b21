// The alerts, as data: each rule has its condition, its severity and a summary, a case that fires it and a case that
// does not, which `promtool test rules` runs. Its documentation is the section of the same name in
// `examples/guides/runbook.md`.

import { type Alert, grew, onSeries, type Series } from "./Alert.ts"

const one = 'instance="a"'
const always = (value: number | string) => `${value}x60`

type Alerts = Readonly<Record<string, Omit<Alert, "name">>>

const money: Alerts = {
  TollkeeperSettlingUnavailable: {
    severity: "critical",
    expr: "min by (instance, scheme) (tollkeeper_settling_available) == 0",
    for: "2m",
    summary: "No settlement can be paid for: every settle is answered busy.",
    ...onSeries(`tollkeeper_settling_available{${one}, scheme="exact"}`, always(0), always(1))
  },
  TollkeeperSponsorEmpty: {
    severity: "critical",
    expr: "tollkeeper_sponsor_payments_left < 1",
    for: "1m",
    summary: "The sponsor's balance does not cover another transaction.",
    ...onSeries(`tollkeeper_sponsor_payments_left{${one}}`, always(0), always(1))
  },
  TollkeeperSponsorLow: {
    severity: "warning",
    expr: "tollkeeper_sponsor_payments_left < 500",
    for: "5m",
    summary: "The sponsor's balance covers fewer than 500 payments at their maximum cost.",
    ...onSeries(`tollkeeper_sponsor_payments_left{${one}}`, "520-1x60", always(500))
  },
  TollkeeperBudgetUsedUp: {
    severity: "critical",
    expr: "tollkeeper_budget_payments_left < 1",
    for: "1m",
    summary: "A bound on sponsored fees is used up for this UTC day: payments of its scope are refused.",
    fires: {
      series: [[`tollkeeper_budget_payments_left{${one}, scope="key:shop"}`, always(0)]],
      labels: { instance: "a", scope: "key:shop" }
    },
    calm: [[`tollkeeper_budget_payments_left{${one}, scope="all"}`, always(1)]]
  },
  TollkeeperBudgetLow: {
    severity: "warning",
    expr: "tollkeeper_budget_left_stroops / tollkeeper_budget_max_stroops <= 0.2",
    for: "1m",
    summary: "Four fifths of a bound on sponsored fees are used for this UTC day.",
    fires: {
      series: [
        [`tollkeeper_budget_left_stroops{${one}, scope="all"}`, always(200)],
        [`tollkeeper_budget_max_stroops{${one}, scope="all"}`, always(1_000)]
      ],
      labels: { instance: "a", scope: "all" }
    },
    calm: [
      [`tollkeeper_budget_left_stroops{${one}, scope="all"}`, always(201)],
      [`tollkeeper_budget_max_stroops{${one}, scope="all"}`, always(1_000)]
    ]
  },
  TollkeeperSettlementsUnresolved: {
    severity: "critical",
    expr: "tollkeeper_settlements_unresolved > 0",
    for: "0m",
    summary: "The ledger can no longer prove how a settlement ended: an operator has to resolve it.",
    ...onSeries(`tollkeeper_settlements_unresolved{${one}}`, always(1), always(0))
  },
  TollkeeperSettlementOpenLong: {
    severity: "warning",
    expr: "tollkeeper_settlements_oldest_open_seconds > 900",
    for: "5m",
    summary: "A settlement has had no outcome for 15 minutes.",
    ...onSeries(`tollkeeper_settlements_oldest_open_seconds{${one}}`, "0+60x60", always(900))
  },
  TollkeeperAuthorizationsSpentElsewhere: {
    severity: "warning",
    expr: grew(
      'tollkeeper_payment_answers_total{operation="settle", reason="settle_ledger_authorization_spent"}',
      "15m"
    ),
    for: "0m",
    summary:
      "Another transaction spent an authorization submitted here: a payer pays twice, or transactions are copied.",
    fires: {
      series: [
        [
          `tollkeeper_payment_answers_total{${one}, operation="settle", reason="settle_ledger_authorization_spent"}`,
          "0+1x60"
        ]
      ],
      labels: { instance: "a" }
    },
    calm: [
      [
        `tollkeeper_payment_answers_total{${one}, operation="verify", reason="settle_ledger_authorization_spent"}`,
        "0+1x60"
      ]
    ]
  }
}

const answers = (reason: string) => `tollkeeper_payment_answers_total{operation="settle", reason="${reason}"}`
const shareOf = (reason: string) =>
  `sum by (instance) (rate(${answers(reason).replace("}", "}[10m]")})) / ` +
  'sum by (instance) (rate(tollkeeper_payment_answers_total{operation="settle"}[10m]))'
const answered = (reason: string, values: string): Series => [
  `tollkeeper_payment_answers_total{${one}, operation="settle", reason="${reason}"}`,
  values
]

const traffic: Alerts = {
  TollkeeperDown: {
    severity: "critical",
    expr: "absent(tollkeeper_build_info)",
    for: "2m",
    summary: "No facilitator reports metrics.",
    fires: { series: [], labels: {} },
    calm: [[`tollkeeper_build_info{${one}, version="0.1.0"}`, always(1)]]
  },
  TollkeeperReplicaGone: {
    severity: "warning",
    // Compared with the median, so that the extra replicas of a rollout do not count as a loss afterwards.
    expr: "count(tollkeeper_build_info) < quantile_over_time(0.5, count(tollkeeper_build_info)[30m:1m])",
    for: "2m",
    summary: "Fewer facilitators report metrics than in the last half hour.",
    fires: {
      series: [
        [`tollkeeper_build_info{${one}}`, always(1)],
        ['tollkeeper_build_info{instance="b"}', "1x20"]
      ],
      labels: {}
    },
    calm: [
      [`tollkeeper_build_info{${one}}`, always(1)],
      // A third replica for some minutes, as in a rollout.
      ['tollkeeper_build_info{instance="b"}', always(1)],
      ['tollkeeper_build_info{instance="c"}', "1x3"]
    ]
  },
  TollkeeperRestarting: {
    severity: "warning",
    expr: "changes(process_start_time_seconds[30m]) > 3",
    for: "0m",
    summary: "The process was started more than three times in half an hour.",
    ...onSeries(`process_start_time_seconds{${one}}`, "0+300x60", always(300))
  },
  TollkeeperInternalErrors: {
    severity: "critical",
    expr: grew('tollkeeper_http_requests_total{status="500"}', "10m", "instance, route"),
    for: "0m",
    summary: "A request failed with an internal error of this program.",
    fires: {
      series: [[`tollkeeper_http_requests_total{${one}, route="/settle", status="500"}`, "0+1x60"]],
      labels: { instance: "a", route: "/settle" }
    },
    calm: [[`tollkeeper_http_requests_total{${one}, route="/settle", status="503"}`, "0+1x60"]]
  },
  TollkeeperSettleBusy: {
    severity: "warning",
    expr: `${shareOf("settle_ledger_temporarily_unavailable")} > 0.05`,
    for: "5m",
    summary: "More than one settle in twenty is answered busy.",
    fires: {
      series: [answered("ok", "0+9x60"), answered("settle_ledger_temporarily_unavailable", "0+1x60")],
      labels: { instance: "a" }
    },
    calm: [answered("ok", "0+39x60"), answered("settle_ledger_temporarily_unavailable", "0+1x60")]
  },
  TollkeeperSettlePending: {
    severity: "warning",
    expr: `${shareOf("pending")} > 0.1`,
    for: "10m",
    summary: "More than one settle in ten has no outcome within the answer's time limit.",
    fires: { series: [answered("ok", "0+4x60"), answered("pending", "0+1x60")], labels: { instance: "a" } },
    calm: [answered("ok", "0+19x60"), answered("pending", "0+1x60")]
  },
  TollkeeperQueueLong: {
    severity: "warning",
    expr: "sum by (instance) (tollkeeper_queue_waiting) > 50",
    for: "5m",
    summary: "More than fifty payments wait for a channel.",
    fires: {
      series: [
        [`tollkeeper_queue_waiting{${one}, principal="shop"}`, always(40)],
        [`tollkeeper_queue_waiting{${one}, principal="anonymous"}`, always(11)]
      ],
      labels: { instance: "a" }
    },
    calm: [[`tollkeeper_queue_waiting{${one}, principal="shop"}`, always(50)]]
  },
  TollkeeperSettleSlow: {
    severity: "warning",
    expr:
      "histogram_quantile(0.95, sum by (instance, le) " +
      '(rate(tollkeeper_http_request_seconds_bucket{route="/settle"}[10m]))) > 15',
    for: "10m",
    summary: "One settle in twenty takes longer than 15 s.",
    fires: {
      series: [
        [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="10"}`, "0+1x60"],
        [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="25"}`, "0+10x60"],
        [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="+Inf"}`, "0+10x60"]
      ],
      labels: { instance: "a" }
    },
    calm: [
      [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="10"}`, "0+10x60"],
      [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="25"}`, "0+10x60"],
      [`tollkeeper_http_request_seconds_bucket{${one}, route="/settle", le="+Inf"}`, "0+10x60"]
    ]
  }
}

const surroundings: Alerts = {
  TollkeeperLedgerStalled: {
    severity: "critical",
    expr: "tollkeeper_ledger_available == 0",
    for: "1m",
    summary: "No new ledger is observed: nothing can be verified or settled.",
    ...onSeries(`tollkeeper_ledger_available{${one}}`, always(0), always(1))
  },
  TollkeeperRpcEndpointAway: {
    severity: "warning",
    expr: "tollkeeper_ledger_endpoint_available == 0",
    for: "5m",
    summary: "An RPC endpoint does not answer; the others are used, if there are any.",
    ...onSeries(
      `tollkeeper_ledger_endpoint_available{${one}, endpoint="2"}`,
      always(0),
      "0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1"
    )
  },
  TollkeeperClockSkewed: {
    severity: "warning",
    expr: "abs(tollkeeper_ledger_clock_skew_seconds) > 5",
    for: "5m",
    summary: "This machine's clock and the ledger's differ by more than five seconds.",
    ...onSeries(`tollkeeper_ledger_clock_skew_seconds{${one}}`, always(-6), always(5))
  },
  TollkeeperChannelsUnusable: {
    severity: "warning",
    expr: "tollkeeper_channels_usable < tollkeeper_channels_ready",
    for: "10m",
    summary: "Accounts of channels are not on the ledger, so fewer payments run concurrently.",
    fires: {
      series: [
        [`tollkeeper_channels_usable{${one}}`, always(19)],
        [`tollkeeper_channels_ready{${one}}`, always(20)]
      ],
      labels: { instance: "a" }
    },
    calm: [
      [`tollkeeper_channels_usable{${one}}`, always(20)],
      [`tollkeeper_channels_ready{${one}}`, always(20)]
    ]
  },
  TollkeeperDatabaseUnavailable: {
    severity: "critical",
    expr: "tollkeeper_database_available == 0",
    for: "1m",
    summary: "The database does not answer: nothing can be settled.",
    ...onSeries(`tollkeeper_database_available{${one}}`, always(0), always(1))
  },
  TollkeeperDatabaseNotWriting: {
    severity: "critical",
    expr: "tollkeeper_database_writable == 0",
    for: "0m",
    summary: "The database does not accept writes: nothing can be settled.",
    ...onSeries(`tollkeeper_database_writable{${one}}`, always(0), always(1))
  },
  TollkeeperSignerNotRotated: {
    severity: "critical",
    expr: "tollkeeper_signer_rotation_current == 0",
    for: "1m",
    summary: "A replica signs with keys that a rotation replaced: its sources lack the new ones.",
    ...onSeries(`tollkeeper_signer_rotation_current{${one}}`, always(0), always(1))
  },
  TollkeeperDatabaseConnectionsScarce: {
    severity: "warning",
    expr: "min_over_time(tollkeeper_database_connections_waiting[5m]) > 0",
    for: "5m",
    summary: "Requests have waited minutes for a connection to the database.",
    ...onSeries(
      `tollkeeper_database_connections_waiting{${one}}`,
      always(2),
      "2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2"
    )
  },
  TollkeeperReplicaUnused: {
    severity: "warning",
    expr: "tollkeeper_database_replica_available == 0",
    for: "10m",
    summary: "The read replica is unavailable or too far behind: the primary answers discovery and analytics as well.",
    ...onSeries(`tollkeeper_database_replica_available{${one}}`, always(0), always(1))
  },
  TollkeeperFactsStalled: {
    severity: "warning",
    expr: "tollkeeper_facts_stalled == 1",
    for: "5m",
    summary: "A consumer of the journal is stalled: analytics, the catalog or webhooks fall behind. Payments do not.",
    ...onSeries(`tollkeeper_facts_stalled{${one}, consumer="analytics"}`, always(1), always(0))
  },
  TollkeeperWebhooksGivenUp: {
    severity: "warning",
    expr: grew('tollkeeper_webhooks_deliveries_total{outcome="GivenUp"}', "1h"),
    for: "0m",
    summary: "A webhook receiver did not accept a message in time.",
    fires: {
      series: [[`tollkeeper_webhooks_deliveries_total{${one}, outcome="GivenUp"}`, "0+1x60"]],
      labels: { instance: "a" }
    },
    calm: [[`tollkeeper_webhooks_deliveries_total{${one}, outcome="Delivered"}`, "0+1x60"]]
  },
  TollkeeperBookkeepingFails: {
    severity: "warning",
    expr: `${grew("tollkeeper_analytics_failures_total", "15m")} or ${grew("tollkeeper_catalog_dropped_total", "15m")}`,
    for: "5m",
    summary: "Analytics cannot write, or the catalog drops observations. Payments continue.",
    fires: { series: [[`tollkeeper_analytics_failures_total{${one}}`, "0+1x60"]], labels: { instance: "a" } },
    calm: [
      [`tollkeeper_analytics_failures_total{${one}}`, always(7)],
      [`tollkeeper_catalog_dropped_total{${one}}`, always(7)]
    ]
  }
}

/** Payment channels: the payer may soon withdraw a channel's charges. */
const channels: Alerts = {
  TollkeeperWithdrawalUnanswered: {
    severity: "critical",
    expr: "tollkeeper_batch_store_withdrawals_unanswered > 0",
    for: "5m",
    summary: "A payer withdraws from a channel whose charges are not claimed: they are lost when its delay ends.",
    ...onSeries('tollkeeper_batch_store_withdrawals_unanswered{instance="a"}', "1x60", "0x60")
  },
  TollkeeperWithdrawalLost: {
    severity: "critical",
    // A rise within the hour: a lost amount never comes back, and must not alert permanently.
    expr: grew("tollkeeper_batch_store_lost_units", "1h", "instance, asset"),
    for: "0m",
    summary: "A payer has withdrawn charges that were not claimed in time: the seller does not receive them.",
    ...onSeries('tollkeeper_batch_store_lost_units{instance="a", asset="C1"}', "100x60", "0x60")
  },
  TollkeeperReceiverUnpaid: {
    severity: "warning",
    expr: "tollkeeper_batch_store_unpaid_units > 0",
    for: "15m",
    summary: "An amount claimed for a seller cannot be paid out: it waits in the contract.",
    // Absent, then 1.
    ...onSeries('tollkeeper_batch_store_unpaid_units{instance="a", asset="C1"}', "_x5 1x60", "0x60")
  }
}

export const alerts: ReadonlyArray<Alert> = Object.entries({ ...money, ...traffic, ...surroundings, ...channels }).map(
  ([name, alert]) => ({ name, ...alert })
)
