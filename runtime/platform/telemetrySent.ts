// Exported telemetry: the layers of each signal, loaded only when one has a destination (`telemetry.ts`). On Node spans
// go through the OpenTelemetry SDK, on Deno through Effect's own exporter, in both after the sampler that the variables
// name; metrics and logs go through the latter on both.
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import { ConfigProvider, Context, Effect, Layer, Logger, References, Tracer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as OtlpLogger from "effect/observability/OtlpLogger"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import process from "node:process"
import { forRequests, isLineSent, samplerOf } from "./sampler.ts"

const serviceName = process.env["OTEL_SERVICE_NAME"] ?? "tollkeeper"
const shutdownMillis = 1_000

/** The SDK, started before and shut down after every source of spans. Its exporters come from the environment. */
const nodeSdk = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { NodeSDK, tracing } = await import("@opentelemetry/sdk-node")
      const sampler = new tracing.AlwaysOnSampler()
      const sdk = new NodeSDK({
        serviceName,
        sampler,
        instrumentations: [],
        metricReaders: [],
        logRecordProcessors: []
      })
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

/** Effect has no default exporter, and uses the timeout of a request for its shutdown. */
const defaults = ConfigProvider.layer(
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

const sampled = Layer.effect(
  Tracer.Tracer,
  Effect.map(Tracer.Tracer, (tracer) => forRequests(tracer, samplerOf(process.env)))
)

const onNode = Layer.provide(sampled, Layer.provide(OtelTracer.layerGlobal, nodeSdk))
const onDeno = Layer.provide(sampled, OtlpTracer.layerFromConfig({ resource }))

const sentOf = (logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, unknown> =>
  Logger.make((entry) => {
    if (isLineSent(entry)) logger.log(entry)
  })

/** Added to the existing loggers. */
const logs = Layer.effect(
  Logger.CurrentLoggers,
  Effect.gen(function* () {
    const before = yield* Logger.CurrentLoggers
    const sending = yield* Layer.build(OtlpLogger.layerFromConfig({ resource, mergeWithExisting: false }))
    return new Set([...before, ...[...Context.get(sending, Logger.CurrentLoggers)].map(sentOf)])
  })
)

/** The layers of these signals, at least one. */
export const sentLayer = (signals: ReadonlyArray<"TRACES" | "METRICS" | "LOGS">): Layer.Layer<never> => {
  const traces = "Deno" in globalThis ? onDeno : onNode
  const layers = [
    // Without a destination no spans are made, not even by libraries.
    signals.includes("TRACES") ? traces : Layer.succeed(References.TracerEnabled, false),
    ...(signals.includes("METRICS") ? [OtlpMetrics.layerFromConfig({ resource })] : []),
    ...(signals.includes("LOGS") ? [logs] : [])
  ] as never as ReadonlyArray<Layer.Layer<never>>
  // It provides the references of tracer, logger and metrics, which need no naming.
  return Layer.mergeAll(layers[0]!, ...layers.slice(1)).pipe(
    Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer, defaults])
  )
}
