// Admission by cost: one budget for each caller, points in progress by cost, and payments that neither of them refuses.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Redacted, Stream } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Server } from "../../../kernel/config/Server.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { makeAdmitRequests } from "../../../kernel/http/admitRequests.ts"
import { Keys } from "../../../kernel/http/Keys.ts"
import { type DeclaredPlace, type DeclaredRules, rulesOf } from "../../../kernel/http/RouteRules.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"

const key = "alice-secret-0123456789"
const callers = Authentication.layer.pipe(
  Layer.provideMerge(Keys.layer),
  Layer.provide(Server.layer),
  Layer.provide(
    Settings.layerTest({}, (variable) =>
      variable === "FACILITATOR_API_KEYS" ? Option.some(Redacted.make(`alice:${key}`)) : Option.none()
    )
  ),
  Layer.provide(cryptoLayer)
)

const places: Readonly<Record<string, DeclaredPlace>> = {
  "/cheap": { callers: "public", cost: { cpuMillis: 1, bytesOut: 0 } },
  "/costly": { callers: "public", cost: { cpuMillis: 20, bytesOut: 0, rowsWritten: 40 } },
  "/slow": { callers: "public", cost: { cpuMillis: 99, bytesOut: 0 } },
  "/long": { callers: "public", cost: { cpuMillis: 1, bytesOut: 26_214_400 - 262_144 } },
  "/verify": { callers: "keyed", cost: { cpuMillis: 1_000, bytesOut: 0 }, isPayment: true },
  "/health": { callers: "public", cost: { cpuMillis: 1, bytesOut: 0 }, isProbe: true },
  "/operate": { callers: "operators", cost: { cpuMillis: 1, bytesOut: 0 } }
}
const routes: DeclaredRules = {
  labelled: () => undefined,
  of: (_, path) => (places[path] === undefined ? undefined : rulesOf(path, places[path]))
}

const requestTo = (path: string, from: string, headers: Record<string, string>) =>
  HttpServerRequest.fromWeb(new Request(`http://127.0.0.1${path}`)).modify({
    headers: Headers.fromInput({ host: "127.0.0.1", ...headers }),
    remoteAddress: Option.some(from)
  })

const ok = Effect.succeed(HttpServerResponse.empty({ status: 204 }))

/** Statuses of requests, by path and address; `answer` runs as the handler. */
const makeAsk = (perSecond: number) =>
  Effect.map(Authentication, (authentication) => {
    const admit = makeAdmitRequests(authentication, routes, perSecond)
    return (path: string, from = "203.0.113.7", headers: Record<string, string> = {}, answer: typeof ok = ok) =>
      Effect.provideService(admit(answer), HttpServerRequest.HttpServerRequest, requestTo(path, from, headers))
  })

const statuses = <A extends { readonly status: number }>(asked: Effect.Effect<A>, count: number) =>
  Effect.map(Effect.all(Array.from({ length: count }, () => asked)), (all) => all.map(({ status }) => status))

it.effect("one budget for all routes of an address, and another for its key", () =>
  Effect.gen(function* () {
    const ask = yield* makeAsk(100)
    expect(yield* statuses(ask("/costly"), 3)).toEqual([204, 204, 429])
    const refused = yield* ask("/costly")
    expect(refused.headers["retry-after"]).toBe("1")
    expect((yield* ask("/cheap")).status).toBe(204)
    expect((yield* ask("/costly", "203.0.113.8")).status).toBe(204)
    const keyed = { authorization: `Bearer ${key}` }
    expect(yield* statuses(ask("/costly", "203.0.113.7", keyed), 3)).toEqual([204, 204, 429])
    expect((yield* ask("/costly", "203.0.113.99", keyed)).status).toBe(429)
    yield* TestClock.adjust("1 second")
    expect((yield* ask("/costly")).status).toBe(204)
  }).pipe(Effect.provide(callers))
)

it.effect("a request gets back the bytes and the time that it did not take", () =>
  Effect.gen(function* () {
    const ask = yield* makeAsk(100)
    expect(yield* statuses(ask("/long"), 20)).toEqual(Array.from({ length: 20 }, () => 204))
    const whole = Effect.succeed(HttpServerResponse.uint8Array(new Uint8Array(26_214_400)))
    expect(yield* statuses(ask("/long", "203.0.113.7", {}, whole), 3)).toEqual([200, 429, 429])
    // The length of a stream is unknown, so it costs what the route declares.
    const streamed = Effect.succeed(HttpServerResponse.stream(Stream.empty))
    expect(yield* statuses(ask("/long", "203.0.113.8", {}, streamed), 3)).toEqual([200, 200, 429])
    // The time is a difference, also long after the process started.
    yield* TestClock.adjust("1 hour")
    expect(yield* statuses(ask("/slow", "203.0.113.9"), 20)).toEqual(Array.from({ length: 20 }, () => 204))
  }).pipe(Effect.provide(callers))
)

it.effect("this machine has no budget, and neither has a payment", () =>
  Effect.gen(function* () {
    const ask = yield* makeAsk(1)
    expect(yield* statuses(ask("/costly", "127.0.0.1"), 9)).not.toContain(429)
    expect(yield* statuses(ask("/verify"), 9)).not.toContain(429)
    // A path without a route costs a point.
    expect(yield* statuses(ask("/nowhere"), 4)).toContain(429)
  }).pipe(Effect.provide(callers))
)

it.effect("the costliest requests are refused first, payments, probes and operators never", () =>
  Effect.gen(function* () {
    const ask = yield* makeAsk(0)
    const end = yield* Deferred.make<void>()
    const waiting = Effect.as(Deferred.await(end), HttpServerResponse.empty({ status: 204 }))
    const asking = yield* Effect.forEach(Array.from({ length: 37 }), () =>
      Effect.forkChild(ask("/costly", "203.0.113.7", {}, waiting), { startImmediately: true })
    )
    expect((yield* ask("/costly")).status).toBe(503)
    for (const path of ["/cheap", "/verify", "/health", "/operate"])
      expect([path, (yield* ask(path)).status]).toEqual([path, 204])
    const more = yield* Effect.forEach(Array.from({ length: 297 }), () =>
      Effect.forkChild(ask("/cheap", "203.0.113.7", {}, waiting), { startImmediately: true })
    )
    expect((yield* ask("/cheap")).status).toBe(503)
    for (const path of ["/verify", "/health", "/operate"])
      expect([path, (yield* ask(path)).status]).toEqual([path, 204])
    yield* Deferred.succeed(end, undefined)
    yield* Effect.forEach([...asking, ...more], Fiber.join)
    expect((yield* ask("/costly")).status).toBe(204)
  }).pipe(Effect.provide(callers))
)

it.effect("wrong keys are refused before anything else, listed ones never for them", () =>
  Effect.gen(function* () {
    const ask = yield* makeAsk(0)
    const wrong = { authorization: "Bearer a-wrong-key-0123456789" }
    expect(yield* statuses(ask("/verify", "203.0.113.7", wrong), 41)).toContain(429)
    expect((yield* ask("/verify", "203.0.113.7", { authorization: `Bearer ${key}` })).status).toBe(204)
  }).pipe(Effect.provide(callers))
)
