// The body of `GET /status`: figures of the whole service, and its incidents.
import { Schema } from "effect"
import { text, time, units, whole } from "../../../kernel/http/wireSchema.ts"
import { incidentsMax } from "./Incidents.ts"

const share = Schema.NullOr(Schema.Finite)

/** Times in milliseconds, shares from 0 to 1; null where nothing was measured. */
export const ServiceStatus = Schema.Struct({
  days: whole("Days that are reported."),
  since: time("UTC, the first day's beginning."),
  observed_from: Schema.NullOr(time("UTC, the first minute that was checked.")).annotate({
    description: "What is reported begins here; null before the first check."
  }),
  settlements: units("Settlements recorded."),
  verify_p95_ms: Schema.NullOr(Schema.Finite).annotate({ description: "Verification within settle." }),
  settle_p95_ms: Schema.NullOr(Schema.Finite).annotate({ description: "From request to settled." }),
  ended_in_two_ledgers: share.annotate({ description: "Share of those with an end on the ledger." }),
  confirmed_by_two_endpoints: share.annotate({
    description: "Share of outcomes that two RPC endpoints showed; the others rest on one."
  }),
  availability: share.annotate({ description: "Share of checks that were met." }),
  checks: whole("Minutes that ended since observed_from, each one check; the current minute is none yet."),
  checks_met: whole("Those in which the service could write."),
  daily: Schema.Array(
    Schema.Struct({ day: text("UTC, `YYYY-MM-DD`."), checks: whole("As above."), checks_met: whole("As above.") })
  ).annotate({ description: "The same for each day, the oldest first." }),
  items: Schema.Array(
    Schema.Struct({
      cause: text("A word: the condition of an alert, or `interruption`."),
      summary: text("What it meant."),
      from: time("UTC, to the minute."),
      to: Schema.NullOr(time("UTC, to the minute.")).annotate({ description: "null while it lasts." })
    })
  ).annotate({ description: `Incidents, the newest first; ${incidentsMax} at most.` })
}).annotate({ identifier: "ServiceStatus" })
