// The alerts of payment channels, as data: the payer may soon withdraw a channel's charges. Their form is the same as
// in `alerts.ts`.
import { type Alert, grew } from "./Alert.ts"

export const channels: ReadonlyArray<Alert> = [
  {
    name: "TollkeeperWithdrawalUnanswered",
    severity: "critical",
    expr: "tollkeeper_batch_store_withdrawals_unanswered > 0",
    for: "5m",
    summary: "A payer withdraws from a channel whose charges are not claimed: they are lost when its delay ends.",
    fires: {
      series: [['tollkeeper_batch_store_withdrawals_unanswered{instance="a"}', "1x60"]],
      labels: { instance: "a" }
    },
    calm: [['tollkeeper_batch_store_withdrawals_unanswered{instance="a"}', "0x60"]]
  },
  {
    name: "TollkeeperWithdrawalLost",
    severity: "critical",
    // A rise within the hour: a lost amount never comes back, and must not alert permanently.
    expr: grew("tollkeeper_batch_store_lost_units", "1h", "instance, asset"),
    for: "0m",
    summary: "A payer has withdrawn charges that were not claimed in time: the seller does not receive them.",
    fires: {
      series: [['tollkeeper_batch_store_lost_units{instance="a", asset="C1"}', "100x60"]],
      labels: { instance: "a", asset: "C1" }
    },
    calm: [['tollkeeper_batch_store_lost_units{instance="a", asset="C1"}', "0x60"]]
  },
  {
    name: "TollkeeperReceiverUnpaid",
    severity: "warning",
    expr: "tollkeeper_batch_store_unpaid_units > 0",
    for: "15m",
    summary: "An amount claimed for a seller cannot be paid out: it waits in the contract.",
    fires: {
      // Absent, then 1.
      series: [['tollkeeper_batch_store_unpaid_units{instance="a", asset="C1"}', "_x5 1x60"]],
      labels: { instance: "a", asset: "C1" }
    },
    calm: [['tollkeeper_batch_store_unpaid_units{instance="a", asset="C1"}', "0x60"]]
  }
]
