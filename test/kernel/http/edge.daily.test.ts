// The edge of the HTTP surface: authentication, rate limits, body validation, and the payment's shape of every answer
// of the payment routes, errors included. One facilitator with keys and limits serves the file.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { request as httpRequest } from "node:http"
import {
  brokenBodies,
  mistypedBodies,
  senselessTerms,
  senselessTransactions,
  templateOf
} from "../../../runtime/redteam/bodies.ts"
import { all } from "../../../runtime/deploy/observability/registry.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

class Keyed extends Context.Service<Keyed, Facilitator>()("test/Keyed") {}

const alice = "alice-secret-0123456789"
const nameless = "a-secret-without-a-name-1"
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })

const keyed = Layer.effect(
  Keyed,
  startFacilitator({
    environment: {
      FACILITATOR_API_KEYS: `alice:${alice}, ${nameless}`,
      OPERATOR_API_KEYS: "ops:operator-secret-0123456789"
    },
    set: ["server.host=127.0.0.1", "limits.verify_per_second=1", "limits.settle_per_second=1"]
  })
)

layer(keyed, { timeout: 240_000, excludeTestServices: true })("with keys", (it) => {
  it.effect("requires a key for payment routes and /supported [S63, S239, S240, S242, S324]", () =>
    Effect.gen(function* () {
      const { ask, settle, verify } = yield* Keyed
      for (const headers of [
        undefined,
        bearer("wrong-secret-0123456789"),
        { authorization: `Basic ${alice}` },
        bearer(`alice:${alice}`)
      ]) {
        const supported = yield* ask("/supported", headers === undefined ? {} : { headers })
        expect(supported.status).toBe(401)
        expect(supported.headers.get("www-authenticate")).toBe("Bearer")
        expect(supported.json).toMatchObject({ error: "unauthorized" })
        const verified = yield* verify({}, headers)
        expect([
          verified.status,
          verified.json.error,
          verified.json.isValid,
          typeof verified.json.invalidReason
        ]).toEqual([401, "unauthorized", false, "string"])
        const settled = yield* settle({}, headers)
        expect([
          settled.status,
          settled.json.error,
          settled.json.success,
          settled.json.transaction,
          typeof settled.json.errorReason
        ]).toEqual([401, "unauthorized", false, "", "string"])
      }
      for (const secret of [alice, nameless]) {
        expect((yield* ask("/supported", { headers: bearer(secret) })).status).toBe(200)
      }
    })
  )

  it.effect("health needs no key, and no answer shows keys [S243, S253]", () =>
    Effect.gen(function* () {
      const { ask } = yield* Keyed
      for (const path of ["/health", "/health/live", "/health/ready"]) {
        const answer = yield* ask(path)
        expect(answer.status).toBe(200)
        expect(answer.text).not.toContain("secret")
        expect(answer.text).not.toContain("Stroops")
      }
    })
  )

  it.effect("limits each caller separately with Retry-After [S331]", () =>
    Effect.gen(function* () {
      const { verify } = yield* Keyed
      const answers = yield* Effect.forEach(Array.from({ length: 15 }), () => verify("{", bearer(alice)), {
        concurrency: "unbounded"
      })
      const limited = answers.filter(({ status }) => status === 429)
      expect(answers.filter(({ status }) => status === 400).length).toBeGreaterThanOrEqual(2)
      expect(limited.length).toBeGreaterThan(0)
      for (const { headers, json } of limited) {
        expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
        expect(json).toMatchObject({ isValid: false, invalidReason: expect.any(String) })
      }
      expect((yield* verify("{", bearer(nameless))).status).toBe(400)
    })
  )
})

layer(keyed, { timeout: 240_000, excludeTestServices: true })("with operator keys", (it) => {
  it.effect("shows metrics to operators only", () =>
    Effect.gen(function* () {
      const { ask } = yield* Keyed
      for (const headers of [{}, bearer(alice)]) expect((yield* ask("/metrics", { headers })).status).toBe(401)
      expect((yield* ask("/metrics", { headers: bearer("operator-secret-0123456789") })).status).toBe(200)
    })
  )
})

layer(keyed, { timeout: 240_000, excludeTestServices: true })("the audit trail", (it) => {
  it.effect("has an operator's reads and a key's sign-ins, each once", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Keyed
      const operator = bearer("operator-secret-0123456789")
      for (let times = 0; times < 3; times++) {
        yield* ask("/metrics", { headers: operator })
        yield* ask("/analytics/v1/sellers/GNOBODY", { headers: operator })
        yield* ask("/analytics/v1/overview", { headers: bearer(alice) })
        const headers = { "content-type": "application/json", "x-tollkeeper-page": "1" }
        yield* ask("/dashboard/session", { method: "POST", headers, body: JSON.stringify({ key: alice }) })
      }
      const rows = sql<{ line: string }>`select person || ' ' || via || ' ' || action || ' ' || subject as line
        from kernel_operator_acts where action in ('read', 'sign in') order by 1`
      const found = yield* eventually(rows, ({ length }) => length >= 2)
      expect(found.map(({ line }) => line)).toEqual(["alice page sign in caller", "ops api read /metrics"])
    })
  )
})

class Open extends Context.Service<Open, Facilitator>()("test/Open") {}

const expectVerifyShape = ({ json, status, text }: Answer) => {
  expect(json, text).toMatchObject({ isValid: false, invalidReason: expect.stringMatching(/^[a-z0-9_]+$/) })
  expect(status).toBeLessThan(500)
}

const expectSettleShape = ({ json, status, text }: Answer) => {
  expect(json, text).toMatchObject({
    success: false,
    errorReason: expect.stringMatching(/^[a-z0-9_]+$/),
    transaction: "",
    network: expect.any(String)
  })
  expect(status).toBeLessThan(500)
}

layer(
  Layer.effect(
    Open,
    startFacilitator({ set: ["plugins=[ledger-local, x402-exact, x402-batch, x402-batch-local, batch-store]"] })
  ),
  {
    timeout: 240_000,
    excludeTestServices: true
  }
)("without keys", (it) => {
  it.effect("without keys, every route is open [S244]", () =>
    Effect.gen(function* () {
      expect((yield* (yield* Open).ask("/supported")).status).toBe(200)
    })
  )

  it.effect("reports liveness, readiness and search state [S64, S65, S67, S68, S69, S72, S313]", () =>
    Effect.gen(function* () {
      const { ask } = yield* Open
      for (const path of ["/health", "/health/live"]) expect((yield* ask(path)).json).toEqual({ status: "ok" })
      const ready = yield* ask("/health/ready")
      expect([ready.status, ready.json.status]).toEqual([200, "ready"])
      expect(ready.json.search).toMatchObject({
        lexical: expect.stringMatching(/^(ready|degraded|disabled)$/),
        semantic: expect.stringMatching(/^(ready|degraded|disabled)$/),
        vectorSupport: expect.any(Boolean)
      })
    })
  )

  it.effect("counts answers without caller text in labels", () =>
    Effect.gen(function* () {
      const { ask, verify } = yield* Open
      yield* verify("{")
      yield* ask("/a-path-that-a-stranger-made-up")
      const metrics = yield* ask("/metrics")
      expect(metrics.headers.get("content-type")).toContain("text/plain")
      expect(metrics.text).toMatch(
        /tollkeeper_http_requests_total\{[^}]*route="\/verify"[^}]*status="400"[^}]*\} [1-9]/
      )
      expect(metrics.text).toMatch(/tollkeeper_channels_ready(\{[^}]*\})? 3/)
      expect(metrics.text).toMatch(/tollkeeper_ledger_available(\{[^}]*\})? 1/)
      expect(metrics.text).not.toContain("stranger")
      // However early a payment is refused, its reason is counted.
      expect(metrics.text).toMatch(
        /tollkeeper_payment_answers_total\{[^}]*operation="verify"[^}]*reason="invalid_request"[^}]*\} [1-9]/
      )
    })
  )

  it.effect("exposes every state metric under registered names", () =>
    Effect.gen(function* () {
      const { text } = yield* (yield* Open).ask("/metrics")
      const shown = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
      // Metrics with labels of things that do not exist yet: readers, replicas, and the assets of lost units.
      const isLater = /^tollkeeper_(facts|database_replica|batch_store_lost_units)/
      const states = all.filter(({ kind, name }) => kind === "gauge" && !isLater.test(name))
      expect(states.length).toBeGreaterThan(25)
      expect(states.filter(({ name }) => !shown.has(name)).map(({ name }) => name)).toEqual([])
      expect([...shown].filter((name) => !all.some((one) => one.name === name))).toEqual([])
      expect(text).toMatch(/^tollkeeper_build_info\{[^}]*version="0\.1\.0"[^}]*\} 1$/m)
      expect(text).toMatch(/^tollkeeper_settling_available\{[^}]*scheme="exact"[^}]*\} 1$/m)
      expect(text).toMatch(/^tollkeeper_database_available 1$/m)
      expect(text).toMatch(/^tollkeeper_settlements_unresolved 0$/m)
    })
  )

  it.effect("OpenAPI describes each mounted route and no deprecated one [S307, S335]", () =>
    Effect.gen(function* () {
      const { ask } = yield* Open
      const { headers, json } = yield* ask("/openapi.json")
      expect(headers.get("access-control-allow-origin")).toBe("*")
      expect([json.openapi, json.info.version]).toEqual(["3.1.0", "0.1.0"])
      expect(Object.keys(json.paths)).toEqual(
        expect.arrayContaining([
          "/verify",
          "/settle",
          "/supported",
          "/settlements",
          "/health",
          "/health/live",
          "/health/ready"
        ])
      )
      // A route to be removed is marked for one minor version at least; no route of the specification is marked.
      const operations = Object.values<Record<string, { readonly deprecated?: boolean }>>(json.paths).flatMap((path) =>
        Object.values(path)
      )
      expect(operations.filter(({ deprecated }) => deprecated === true)).toEqual([])
      const references = [...JSON.stringify(json).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name!)
      for (const name of references) expect(json.components.schemas).toHaveProperty(name)
    })
  )

  it.effect(
    "answers every malformed body with a reason, and keeps serving [S1, S2, S261]",
    () =>
      Effect.gen(function* () {
        const { account, payment, settle, verify } = yield* Open
        const template = yield* Effect.promise(() => templateOf("ledger:testnet"))
        const bodies = [brokenBodies, mistypedBodies, senselessTerms, senselessTransactions].flatMap((make) =>
          make(template)
        )
        expect(bodies.length).toBeGreaterThan(40)
        for (const { body, name } of bodies) {
          const [verified, settled] = [yield* verify(body), yield* settle(body)]
          expect(verified.json?.isValid, name).toBe(false)
          expectVerifyShape(verified)
          expectSettleShape(settled)
        }
        const honest = yield* payment({
          payer: yield* account(),
          payTo: (yield* account(0n)).publicKey(),
          amount: 1n,
          maxTimeoutSeconds: 300
        })
        expect((yield* verify(honest.body)).json.isValid).toBe(true)
      }),
    240_000
  )

  it.effect("refuses an oversized body early, in the payment's shape", () =>
    Effect.gen(function* () {
      const { settle, verify } = yield* Open
      const large = JSON.stringify({ pad: "x".repeat(300_000) })
      const [verified, settled] = [yield* verify(large), yield* settle(large)]
      expect([verified.status, settled.status]).toEqual([413, 413])
      expectVerifyShape(verified)
      expectSettleShape(settled)
    })
  )

  it.effect("answers JSON for unknown paths and methods", () =>
    Effect.gen(function* () {
      const { ask } = yield* Open
      for (const [path, method] of [
        ["/nothing", "GET"],
        ["/verify", "GET"],
        ["/settle", "PUT"],
        ["/%00", "GET"],
        ["/supported/", "DELETE"]
      ] as const) {
        const answer = yield* ask(path, { method })
        expect([path, answer.status]).toEqual([path, 404])
        expect(answer.json, answer.text).toBeDefined()
      }
    })
  )

  it.effect("survives a client that disconnects halfway through a body", () =>
    Effect.gen(function* () {
      const { url, ask } = yield* Open
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            const request = httpRequest(`${url}/settle`, {
              method: "POST",
              headers: { "content-type": "application/json", "content-length": "1000" }
            })
            request.on("error", () => resolve())
            request.write('{"x402Version":', () => request.destroy())
            request.on("close", () => resolve())
          })
      )
      expect((yield* ask("/health")).status).toBe(200)
    })
  )
})
