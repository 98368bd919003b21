// Telemetry over OTLP, by the usual `OTEL_*` variables, separately for each signal: a signal is neither sent nor loaded
// (`telemetrySent.ts`) unless it has an endpoint and an exporter. Spans carry methods, routes, reason codes and
// durations; never a body, a key, an envelope, an address or an RPC's URL. Data that a collector does not accept within
// a second of shutdown is lost: it never delays the process.
import { Effect, Layer, References, Schedule, type Scope } from "effect"
import process from "node:process"

type Variables = Readonly<Record<string, string | undefined>>

/** Whether a signal is sent anywhere. The specification of these variables has `otlp` as the default exporter. */
export const isExported = (signal: "TRACES" | "METRICS" | "LOGS", variables: Variables): boolean => {
  const isSet = (name: string) => (variables[name] ?? "") !== ""
  const exporter = variables[`OTEL_${signal}_EXPORTER`] || "otlp"
  return (
    variables["OTEL_SDK_DISABLED"] !== "true" &&
    exporter !== "none" &&
    (isSet("OTEL_EXPORTER_OTLP_ENDPOINT") || isSet(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`))
  )
}

const signals = ["TRACES", "METRICS", "LOGS"] as const

/** The specification's default. */
const exportMillis = 60_000

/** Refreshes state gauges at the metrics exporter's interval, while there is one: no scrape does then. */
export const readForExport = (refresh: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> => {
  if (!isExported("METRICS", process.env)) return Effect.void
  const millis = Number(process.env["OTEL_METRIC_EXPORT_INTERVAL"] ?? exportMillis)
  const every = Number.isFinite(millis) && millis > 0 ? millis : exportMillis
  return Effect.asVoid(Effect.forkScoped(Effect.repeat(refresh, Schedule.spaced(every))))
}

/** Traces, metrics and logs of all layers below, as far as they are exported. */
export const layer: Layer.Layer<never> = Layer.unwrap(
  Effect.promise(async (): Promise<Layer.Layer<never>> => {
    const sent = signals.filter((signal) => isExported(signal, process.env))
    if (sent.length === 0) return Layer.succeed(References.TracerEnabled, false)
    const { sentLayer } = await import("./telemetrySent.ts")
    return sentLayer(sent)
  })
)
