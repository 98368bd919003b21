// Telemetry over OTLP, by the usual `OTEL_*` variables: nothing is sent, and nothing of it is loaded, unless an
// endpoint is set. On Node spans go through the OpenTelemetry SDK, on Deno through Effect's own exporter; metrics and
// logs through the latter on both. Spans carry methods, routes, words and durations; never a body, a key, an envelope
// or an RPC's address.
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import { ConfigProvider, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpLogger, OtlpMetrics, OtlpSerialization } from "effect/observability"
import process from "node:process"

const serviceName = process.env["OTEL_SERVICE_NAME"] ?? "tollkeeper"

const isConfigured = (): boolean =>
  process.env["OTEL_SDK_DISABLED"] !== "true" &&
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].some((name) => (process.env[name] ?? "") !== "")

/** The SDK, started before and shut down after everything that makes spans. Its exporters come from the environment. */
const nodeSdk = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { NodeSDK } = await import("@opentelemetry/sdk-node")
      const sdk = new NodeSDK({ serviceName, instrumentations: [], metricReaders: [], logRecordProcessors: [] })
      sdk.start()
      return sdk
    }),
    // What the collector does not take in time is lost; it never holds the process up.
    (sdk) =>
      Effect.ignore(
        Effect.timeout(
          Effect.tryPromise(() => sdk.shutdown()),
          "3 seconds"
        )
      )
  )
)

/** The specification of these variables has `otlp` as the default of each exporter; Effect has none. */
const variables = ConfigProvider.layer(
  ConfigProvider.fromEnv({
    env: { OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_EXPORTER: "otlp", OTEL_LOGS_EXPORTER: "otlp", ...process.env }
  })
)

const resource = { serviceName }

const onNode = Layer.mergeAll(
  OtelTracer.layerGlobal.pipe(Layer.provide(nodeSdk)),
  OtlpLogger.layerFromConfig({ resource }),
  OtlpMetrics.layerFromConfig({ resource })
)
const onDeno = Otlp.layerFromConfig({ resource })

/** Traces, metrics and logs of everything below it; an empty layer when no endpoint is configured. */
export const layer: Layer.Layer<never> = Layer.unwrap(
  Effect.sync((): Layer.Layer<never> => {
    if (!isConfigured()) return Layer.empty
    const chosen = "Deno" in globalThis ? onDeno : onNode
    // What it provides are the references of tracer, logger and metrics, which nobody has to name.
    return chosen.pipe(
      Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer, variables])
    ) as Layer.Layer<unknown> as Layer.Layer<never>
  })
)
