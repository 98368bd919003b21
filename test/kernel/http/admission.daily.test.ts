// The budget of points over HTTP: one for every route of an unkeyed address, which stops neither its payments nor a key
// nor this machine.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, startFacilitator } from "../../support/facilitator.ts"

const url = encodeURIComponent("https://unlisted.example/")
const paths = [
  "/discovery/resources",
  `/discovery/history?resource=${url}`,
  "/discovery/search?query=weather",
  "/log/checkpoint",
  "/openapi.json"
]
const key = "0123456789abcdef"

it.live(
  "an unkeyed address has one budget for all routes, payments aside",
  () =>
    Effect.gen(function* () {
      const { account, ask, payment, verify } = yield* startFacilitator({
        channels: 1,
        set: ["server.points_per_second=1", "receipts.host=pay.example"]
      })
      const away = { "x-forwarded-for": "203.0.113.7" }
      const askAll = (headers: Record<string, string>) =>
        // A point returns each second: of many concurrent requests some are refused, however slow the machine is.
        Effect.forEach(Array.from({ length: 60 }), (_, at) => ask(paths[at % paths.length]!, { headers }), {
          concurrency: 20
        })
      const refused = (yield* askAll(away)).filter(({ status }) => status === 429)
      expect(refused.length).toBeGreaterThan(20)
      for (const { headers, json } of refused) {
        expect(json).toEqual({ error: "rate_limited", message: expect.stringContaining("server.points_per_second") })
        expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
        expect(headers.get("access-control-allow-origin")).toBe("*")
      }
      const { body } = yield* payment({ payer: yield* account(), payTo: (yield* account()).publicKey(), amount: 1n })
      for (let times = 0; times < 5; times++) expect((yield* verify(body, away)).json.isValid).toBe(true)
      const isFree = ({ status }: Answer) => status !== 429
      expect((yield* askAll({})).every(isFree)).toBe(true)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live(
  "a listed key keeps its own budget beside a neighbor that has used one up",
  () =>
    Effect.gen(function* () {
      const { ask } = yield* startFacilitator({
        channels: 1,
        set: ["server.points_per_second=20", "server.host=127.0.0.1"],
        environment: { FACILITATOR_API_KEYS: key }
      })
      const away = { "x-forwarded-for": "203.0.113.7" }
      const asked = yield* Effect.forEach(Array.from({ length: 60 }), () => ask(paths[0]!, { headers: away }), {
        concurrency: 20
      })
      expect(asked.some(({ status }) => status === 429)).toBe(true)
      expect((yield* ask("/supported", { headers: { ...away, authorization: `Bearer ${key}` } })).status).toBe(200)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
