// The metrics of the channel store: their names, units, labels and help.
import { counter, gauge } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  claims: counter("tollkeeper_batch_store_claims_total", {
    unit: "count",
    labels: ["kind", "outcome"],
    help: "Claims and settles of the claimer, by how they ended."
  }),
  unanswered: gauge("tollkeeper_batch_store_withdrawals_unanswered", {
    unit: "count",
    help: "Channels whose payer has started a withdrawal while charges of them are not claimed."
  }),
  lost: gauge("tollkeeper_batch_store_lost_units", {
    unit: "count",
    labels: ["asset"],
    help: "What was charged, not claimed in time and withdrawn by payers, atomic units of the asset."
  }),
  unpaid: gauge("tollkeeper_batch_store_unpaid_units", {
    unit: "count",
    labels: ["asset"],
    help: "What was claimed for receivers and could not be paid out, atomic units of the asset."
  }),
  overdue: gauge("tollkeeper_batch_store_withdrawal_seconds_left", {
    unit: "seconds",
    help: "Time left to claim the channel whose withdrawal ends first; 0 when none is unanswered or its time is over."
  })
} as const
