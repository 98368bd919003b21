// Which signals are sent, by the standard OpenTelemetry variables.
import { expect, it } from "vitest"
import { isExported } from "../../../runtime/platform/telemetry.ts"

const signals = ["TRACES", "METRICS", "LOGS"] as const
const sentWith = (variables: Record<string, string>) => signals.filter((signal) => isExported(signal, variables))

it("sends nothing without an endpoint, and each signal separately [S343]", () => {
  const endpoint = "http://127.0.0.1:4318"
  expect(sentWith({})).toEqual([])
  expect(sentWith({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })).toEqual([])
  expect(sentWith({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toEqual([...signals])
  for (const signal of signals)
    expect(sentWith({ [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]: `${endpoint}/v1/x` })).toEqual([signal])
  for (const signal of signals)
    expect(sentWith({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, [`OTEL_${signal}_EXPORTER`]: "none" })).toEqual(
      signals.filter((one) => one !== signal)
    )
  expect(sentWith({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "true" })).toEqual([])
})
