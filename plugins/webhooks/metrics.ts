// The metrics of webhooks: their names, units, labels and help.
import { counter } from "../../kernel/telemetry/Measure.ts"

export const metrics = {
  deliveries: counter("tollkeeper_webhooks_deliveries_total", {
    unit: "count",
    labels: ["outcome"],
    help: "Attempted webhook deliveries, by result."
  })
} as const
