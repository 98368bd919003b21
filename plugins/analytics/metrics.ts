// The metrics of analytics: their names, units, labels and help.
import { counter } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  failures: counter("tollkeeper_analytics_failures_total", {
    unit: "count",
    help: "Writes of analytics that failed; each is tried again."
  }),
  skipped: counter("tollkeeper_analytics_facts_skipped_total", {
    unit: "count",
    help: "Facts on settlements that analytics could not read, or whose beginning it does not know."
  })
} as const
