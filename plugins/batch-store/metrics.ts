// The metrics of the channel store: their names, units, labels and help.
import { counter, gauge } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  claims: counter("tollkeeper_batch_store_claims_total", {
    unit: "count",
    labels: ["kind", "outcome"],
    help: "Claims and settles of the claimer, by outcome."
  }),
  unanswered: gauge("tollkeeper_batch_store_withdrawals_unanswered", {
    unit: "count",
    help: "Channels with unclaimed charges whose payer has started a withdrawal."
  }),
  lost: gauge("tollkeeper_batch_store_lost_units", {
    unit: "count",
    labels: ["asset"],
    help: "Charges that were not claimed in time and were withdrawn by payers, atomic units of the asset."
  }),
  unpaid: gauge("tollkeeper_batch_store_unpaid_units", {
    unit: "count",
    labels: ["asset"],
    help: "What was claimed for receivers and could not be paid out, atomic units of the asset."
  }),
  overdue: gauge("tollkeeper_batch_store_withdrawal_seconds_left", {
    unit: "seconds",
    help: "Time left to claim the channel whose withdrawal ends first; 0 if there is none or its time has passed."
  })
} as const
