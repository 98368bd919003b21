// Telemetry over OTLP, by the usual `OTEL_*` variables, each signal by its own: nothing is sent of a signal, and
// nothing of it is loaded, unless it has an endpoint and an exporter. On Node spans go through the OpenTelemetry SDK,
// on Deno through Effect's own exporter, which the sampler of the variables is added to here; metrics and logs through
// the latter on both. Spans carry methods, routes, words and durations; never a body, a key, an envelope, an address or
// where an RPC is. What a collector does not take within a second of the end is lost: it never holds the process up.
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import { ConfigProvider, Effect, Layer, References, Schedule, type Scope, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability"
import process from "node:process"
import { forRequests, sampled, samplerOf } from "./sampler.ts"

type Variables = Readonly<Record<string, string | undefined>>

const serviceName = process.env["OTEL_SERVICE_NAME"] ?? "tollkeeper"
const shutdownMillis = 1_000

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

/** The specification's default. */
const exportMillis = 60_000

/** Has states read on the beat of the exporter of metrics, while there is one: nobody asks for them then. */
export const readForExport = (refresh: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> => {
  if (!isExported("METRICS", process.env)) return Effect.void
  const millis = Number(process.env["OTEL_METRIC_EXPORT_INTERVAL"] ?? exportMillis)
  const every = Number.isFinite(millis) && millis > 0 ? millis : exportMillis
  return Effect.asVoid(Effect.forkScoped(Effect.repeat(refresh, Schedule.spaced(every))))
}

/** The SDK, started before and shut down after everything that makes spans. Its exporters come from the environment. */
const nodeSdk = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { NodeSDK } = await import("@opentelemetry/sdk-node")
      const sdk = new NodeSDK({ serviceName, instrumentations: [], metricReaders: [], logRecordProcessors: [] })
      sdk.start()
      return sdk
    }),
    (sdk) =>
      Effect.ignore(
        Effect.timeout(
          Effect.tryPromise(() => sdk.shutdown()),
          shutdownMillis
        )
      )
  )
)

/** Effect has no default exporter, and takes its last wait from the timeouts of a request. */
const variables = ConfigProvider.layer(
  ConfigProvider.fromEnv({
    env: {
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_LOGS_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_TIMEOUT: String(shutdownMillis),
      ...process.env
    }
  })
)

const resource = { serviceName }

const changed = (change: (tracer: Tracer.Tracer) => Tracer.Tracer) =>
  Layer.effect(Tracer.Tracer, Effect.map(Tracer.Tracer, change))

const onNode = changed(forRequests).pipe(Layer.provide(OtelTracer.layerGlobal), Layer.provide(nodeSdk))
const onDeno = changed((tracer) => forRequests(sampled(tracer, samplerOf(process.env)))).pipe(
  Layer.provide(OtlpTracer.layerFromConfig({ resource }))
)

const layers = (variables: Variables): ReadonlyArray<Layer.Layer<never, never, never>> => {
  const traces = "Deno" in globalThis ? onDeno : onNode
  return [
    // Without a place to send them to, no span is made, by libraries neither.
    isExported("TRACES", variables) ? traces : Layer.succeed(References.TracerEnabled, false),
    ...(isExported("METRICS", variables) ? [OtlpMetrics.layerFromConfig({ resource })] : []),
    ...(isExported("LOGS", variables) ? [OtlpLogger.layerFromConfig({ resource })] : [])
  ] as never
}

/** Traces, metrics and logs of everything below it, as far as they are sent anywhere. */
export const layer: Layer.Layer<never> = Layer.unwrap(
  Effect.sync((): Layer.Layer<never> => {
    const [first, ...others] = layers(process.env)
    if (first === undefined) return Layer.empty
    // What it provides are the references of tracer, logger and metrics, which nobody has to name.
    return Layer.mergeAll(first, ...others).pipe(
      Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer, variables])
    )
  })
)
