// Every metric of the kernel and of each plugin: the source of the dashboard and of the alerts.
import type { Measure } from "../../../kernel/telemetry/Measure.ts"
import { metrics as kernel } from "../../../kernel/telemetry/metrics.ts"
import { metrics as analytics } from "../../../plugins/analytics/plugin.ts"
import { metrics as batchStore } from "../../../plugins/batch-store/plugin.ts"
import { metrics as catalog } from "../../../plugins/catalog/plugin.ts"
import { metrics as webhooks } from "../../../plugins/webhooks/plugin.ts"

export const all: ReadonlyArray<Measure> = [
  ...kernel,
  ...[catalog, analytics, webhooks, batchStore].flatMap((plugin) => Object.values<Measure>(plugin))
]
