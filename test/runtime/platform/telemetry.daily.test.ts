// Traces, metrics and logs of a running program, as a collector receives them: a stand-in collector stores all data
// that the program sends during one payment. It must not contain secrets, signatures or paid content.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { freePort } from "../../support/freePort.ts"
import { launchProgram } from "../../support/launchProgram.ts"

const secret = "telemetry-must-not-carry-this-1"

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
}

/** A stand-in collector: the received text of each path, and its spans. */
const startCollector = Effect.gen(function* () {
  const received = new Map<string, string>()
  const spans: Array<Span> = []
  const logs: Array<Readonly<Record<string, unknown>>> = []
  const collector = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8")
      received.set(request.url!, (received.get(request.url!) ?? "") + body)
      if (request.url === "/v1/traces")
        for (const { scopeSpans } of JSON.parse(body).resourceSpans)
          for (const scope of scopeSpans) spans.push(...(scope.spans as ReadonlyArray<Span>))
      if (request.url === "/v1/logs")
        for (const { scopeLogs } of JSON.parse(body).resourceLogs)
          for (const { attributes } of scopeLogs.flatMap((scope: any) => scope.logRecords))
            logs.push(Object.fromEntries(attributes.map(({ key, value }: any) => [key, Object.values(value)[0]])))
      response.setHeader("content-type", "application/json").end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))),
    () => Effect.sync(() => void collector.close())
  )
  return { received, spans, logs, url: `http://127.0.0.1:${(collector.address() as AddressInfo).port}` }
})

/** A program over another's ledger, with an environment; once it is ready, its address. */
const startTraced = Effect.fnUntraced(function* (world: Facilitator, env: Record<string, string>) {
  const files = yield* FileSystem.FileSystem
  const { url } = yield* launchProgram({
    world,
    stateFolder: yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-telemetry-" }),
    port: yield* Effect.promise(freePort),
    channels: 1,
    end: "stop",
    env: {
      FACILITATOR_API_KEYS: `seller:${secret}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "200",
      OTEL_BLRP_SCHEDULE_DELAY: "200",
      OTEL_METRIC_EXPORT_INTERVAL: "500",
      ...env
    }
  })
  return url
})

const settleAt = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    // Ready is reported before its channel exists: until then every caller is asked to retry.
    for (let tries = 0; ; tries++) {
      const response = await fetch(`${url}/settle`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, ...headers },
        body: JSON.stringify(body)
      })
      const answer = (await response.json()) as any
      if (response.status !== 503 || tries === 1_200) return answer
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })

it.live(
  "traces, metrics and logs reach an OpenTelemetry backend, with nothing secret in them [S253, S258, S343, S344]",
  () =>
    Effect.gen(function* () {
      const { logs, received, spans, url: endpoint } = yield* startCollector
      const world = yield* startFacilitator()
      const url = yield* startTraced(world, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
      const payer = yield* world.account()
      const seller = (yield* world.account(0n)).publicKey()
      const payment = yield* world.payment({ payer, payTo: seller, amount: 10_000n })
      // The seller's own trace, which continues here.
      const [traceId, parentId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"]
      const settled = yield* settleAt(url, payment.body, { traceparent: `00-${traceId}-${parentId}-01` })
      expect(settled).toMatchObject({ success: true })
      for (const path of [
        "/settlements?identifier=a-private-identifier",
        "/made-up-by-a-stranger?with=a-private-query"
      ]) {
        yield* Effect.promise(() =>
          fetch(`${url}${path}`, { headers: { "user-agent": "a-private-agent", authorization: `Bearer ${secret}` } })
        )
      }
      // One line per request identifies the payment: its caller, its outcome, and its trace.
      const lineOf = (fits: (line: Readonly<Record<string, unknown>>) => boolean) =>
        Effect.map(eventually(Effect.sync(() => logs.some(fits))), () => logs.find(fits))
      expect(yield* lineOf(({ transaction }) => transaction === settled.transaction)).toMatchObject({
        path: "/settle",
        payer: payer.publicKey(),
        settlement: expect.stringMatching(/^[0-9a-f]{8}-/),
        traceId
      })
      // However early a payment is refused, its line contains the reason.
      yield* settleAt(url, { x402Version: 2 })
      expect(yield* lineOf(({ reason }) => reason === "invalid_request")).toMatchObject({ path: "/settle" })
      const expected: ReadonlyArray<readonly [string, RegExp]> = [
        ["/v1/traces", /settlement\.outcome/],
        ["/v1/traces", /GET other/],
        ["/v1/metrics", /tollkeeper_http_requests_total/],
        ["/v1/logs", new RegExp(settled.transaction)]
      ]
      const missing = () => expected.filter(([path, pattern]) => !pattern.test(received.get(path) ?? ""))
      yield* eventually(Effect.sync(() => missing().length === 0))
      expect(missing()).toEqual([])
      const everything = [...received.values()].join("\n")
      for (const hidden of [secret, payment.transaction.slice(0, 60), "a-private-"])
        expect(everything).not.toContain(hidden)
      // The payer is only in the log, where an operator searches for it.
      for (const path of ["/v1/traces", "/v1/metrics"]) expect(received.get(path)).not.toContain(payer.publicKey())
      expect(received.get("/v1/traces")).not.toContain("made-up")

      const own = spans.filter((span) => span.traceId === traceId)
      const byId = new Map(own.map((span) => [span.spanId, span]))
      const pathOf = (span: Span): ReadonlyArray<string> => {
        const parent = byId.get(span.parentSpanId ?? "")
        return parent === undefined ? [span.parentSpanId ?? "", span.name] : [...pathOf(parent), span.name]
      }
      const paths = own.map((span) => pathOf(span))
      expect(own.length).toBeGreaterThanOrEqual(12)
      // Every span hangs below the seller's, by spans that were sent.
      expect(paths.filter(([first]) => first !== parentId)).toEqual([])
      const names = own.map(({ name }) => name)
      for (const name of [
        "payment.find",
        "payment.verify",
        "ledger.simulateTransaction",
        "payment.settle",
        "channel.lease",
        "payment.prepare",
        "signer.sign",
        "settlement.record",
        "postgresql",
        "ledger.submit",
        "ledger.sendTransaction",
        "settlement.await",
        "settlement.outcome"
      ])
        expect(names).toContain(name)
      expect(paths).toContainEqual(
        expect.arrayContaining([parentId, "POST /settle", "payment.settle", "ledger.submit", "ledger.sendTransaction"])
      )
      // Each other request is a separate trace, and only requests are traced.
      const roots = spans.filter(({ parentSpanId }) => (parentSpanId ?? "") === "")
      expect(new Set(roots.map(({ traceId }) => traceId)).size).toBe(roots.length)
      expect(roots.map(({ name }) => name).filter((name) => !/^(GET|POST) /.test(name))).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live(
  "sends the share of traces that the sampler of the environment keeps, and metrics alone when only they have an endpoint [S343]",
  () =>
    Effect.gen(function* () {
      const { received, spans, url: endpoint } = yield* startCollector
      const world = yield* startFacilitator()
      const url = yield* startTraced(world, {
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_LOGS_EXPORTER: "none",
        OTEL_TRACES_SAMPLER: "traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.1"
      })
      // Seeded ids, so that every run keeps the same ones.
      let seed = 1n
      const word = () => {
        seed = (seed * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffffffffffffffffn
        return (seed >> 32n).toString(16).padStart(8, "0")
      }
      const ids = Array.from({ length: 1_000 }, () => `${word()}${word()}${word()}${word()}`)
      for (let at = 0; at < ids.length; at += 20) {
        yield* Effect.promise(() =>
          Promise.all(
            ids
              .slice(at, at + 20)
              .map((id) =>
                fetch(`${url}/health/live`, { headers: { traceparent: `00-${id}-00f067aa0ba902b7-00` } }).then(
                  (answer) => answer.arrayBuffer()
                )
              )
          )
        )
      }
      const kept = () => new Set(spans.map(({ traceId }) => traceId).filter((id) => ids.includes(id))).size
      yield* eventually(Effect.sync(() => kept() >= 70))
      expect(kept()).toBeGreaterThanOrEqual(70)
      expect(kept()).toBeLessThanOrEqual(130)
      // Background work sends nothing: every span belongs to a request, including readiness probes, which the sampler
      // keeps occasionally. A request's own span is sent last.
      const others = () => {
        const asked = spans.flatMap(({ name, traceId }) => (/^GET \/health/.test(name) ? [traceId] : []))
        return spans.flatMap(({ name, traceId }) => ([...ids, ...asked].includes(traceId) ? [] : [name]))
      }
      yield* eventually(Effect.sync(() => others().length === 0))
      expect(others()).toEqual([])
      expect(received.has("/v1/logs")).toBe(false)
      // State gauges are read even when /metrics is not requested.
      const stated = () => /tollkeeper_sponsor_payments_left/.test(received.get("/v1/metrics") ?? "")
      yield* eventually(Effect.sync(stated))
      expect(stated()).toBe(true)
      // An idle process: it keeps exporting metrics, but no spans.
      const exports = () => received.get("/v1/metrics")?.split('"resourceMetrics"').length ?? 0
      const settledAt = exports() + 4
      yield* eventually(Effect.sync(() => exports() >= settledAt))
      const before = spans.length
      yield* eventually(Effect.sync(() => exports() >= settledAt + 20))
      expect(exports()).toBeGreaterThanOrEqual(settledAt + 20)
      expect(spans.length).toBe(before)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
