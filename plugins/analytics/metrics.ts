// The metrics of analytics: their names, units, labels and help.
import { counter } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  failures: counter("tollkeeper_analytics_failures_total", {
    unit: "count",
    help: "Failed analytics writes; each is retried."
  }),
  skipped: counter("tollkeeper_analytics_facts_skipped_total", {
    unit: "count",
    help: "Facts that analytics skipped: unreadable, or of a settlement whose record is unknown."
  })
} as const
