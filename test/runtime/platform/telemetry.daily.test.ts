// Traces, metrics and logs of a running program, as a collector receives them: a stand-in collector takes what the
// program sends while one payment is made. Nothing secret, signed or paid-for may be in it.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { startProgram } from "../../conformance/programs.ts"
import { freePort, startFacilitator } from "../../support/facilitator.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const secret = "telemetry-must-not-carry-this-1"

it.live(
  "traces, metrics and logs reach an OpenTelemetry backend, with nothing secret in them [S253, S258, S343, S344]",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-telemetry-" })
      const received = new Map<string, string>()
      const collector = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", () => {
          received.set(request.url!, (received.get(request.url!) ?? "") + Buffer.concat(chunks).toString("latin1"))
          response.setHeader("content-type", "application/json").end("{}")
        })
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))),
        () => Effect.sync(() => void collector.close())
      )
      const world = yield* startFacilitator()
      const port = yield* freePort
      const url = `http://127.0.0.1:${port}`
      yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const program = startProgram(
            process.execPath,
            [
              "runtime/cli.ts",
              "start",
              "--state",
              state,
              "--port",
              String(port),
              "--set",
              "plugins=[x402-exact]",
              "--set",
              `networks.ledger:testnet.rpc_urls=["${world.ledgerUrl}"]`,
              "--set",
              `networks.ledger:testnet.friendbot_url=${world.ledgerUrl}/friendbot`,
              "--set",
              "networks.ledger:testnet.channel_count=1"
            ],
            {
              cwd: root,
              env: {
                FACILITATOR_API_KEYS: `seller:${secret}`,
                OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
                OTEL_BSP_SCHEDULE_DELAY: "200",
                OTEL_BLRP_SCHEDULE_DELAY: "200",
                OTEL_METRIC_EXPORT_INTERVAL: "500"
              }
            }
          )
          const until = performance.now() + 60_000
          while (
            !(await fetch(`${url}/health/ready`).then(
              ({ ok }) => ok,
              () => false
            ))
          ) {
            if (performance.now() > until) throw new Error(`not ready\n${program.tail()}`)
            await new Promise((resolve) => setTimeout(resolve, 50))
          }
          return program
        }),
        (program) => Effect.promise(() => program.stop())
      )
      const payer = yield* world.account()
      const seller = (yield* world.account(0n)).publicKey()
      const payment = yield* world.payment({ payer, payTo: seller, amount: 10_000n })
      // Ready is said before its channel is there: until then everybody is told to come again.
      const settled = yield* Effect.promise(async () => {
        for (let tries = 0; ; tries++) {
          const response = await fetch(`${url}/settle`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
            body: JSON.stringify(payment.body)
          })
          const answer = (await response.json()) as any
          if (response.status !== 503 || tries === 200) return answer
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      })
      expect(settled).toMatchObject({ success: true })
      for (const path of [
        "/settlements?identifier=a-private-identifier",
        "/made-up-by-a-stranger?with=a-private-query"
      ]) {
        yield* Effect.promise(() =>
          fetch(`${url}${path}`, { headers: { "user-agent": "a-private-agent", authorization: `Bearer ${secret}` } })
        )
      }
      const expected: ReadonlyArray<readonly [string, RegExp]> = [
        ["/v1/traces", /POST \/settle/],
        ["/v1/traces", /GET other/],
        ["/v1/traces", /payment\.settle/],
        ["/v1/traces", /settlement\.record/],
        ["/v1/traces", /ledger\.simulateTransaction/],
        ["/v1/metrics", /tollkeeper_http_requests_total/],
        ["/v1/logs", /request/]
      ]
      const missing = () => expected.filter(([path, pattern]) => !pattern.test(received.get(path) ?? ""))
      const until = performance.now() + 15_000
      while (missing().length > 0 && performance.now() < until) yield* Effect.sleep("100 millis")
      expect(missing()).toEqual([])
      const everything = [...received.values()].join("\n")
      for (const hidden of [secret, payment.transaction.slice(0, 60), payer.publicKey(), "a-private-"])
        expect(everything).not.toContain(hidden)
      expect(received.get("/v1/traces")).not.toContain("made-up")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  120_000
)
