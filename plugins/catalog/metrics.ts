// The catalog's metrics: their names, units, labels and help.
import { counter } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  declarations: counter("tollkeeper_catalog_declarations_total", {
    unit: "count",
    labels: ["decision", "reason"],
    help: "Declarations observed, by decision."
  }),
  dropped: counter("tollkeeper_catalog_dropped_total", {
    unit: "count",
    help: "Observations and settled payments dropped because the queue was full."
  })
} as const
