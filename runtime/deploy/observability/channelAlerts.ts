// The alerts of payment channels, as data: of those whose charges the payer may soon take back. Their form is that of
// `alerts.ts`.
import type { Alert } from "./Alert.ts"

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
  }
]
