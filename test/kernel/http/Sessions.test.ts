// Sessions of browsers: a cookie signed with a listed key, only for pages of this origin.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { Server } from "../../../kernel/config/Server.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { Keys } from "../../../kernel/http/Keys.ts"
import { endedName, isFromPage, Sessions } from "../../../kernel/http/Sessions.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"

const [shop, ops] = ["shop-secret-0123456789", "operator-secret-012345"]

const services = (environment: Record<string, string>) =>
  Authentication.layer.pipe(
    Layer.provideMerge(Keys.layer),
    Layer.provide(Server.layer),
    Layer.provide(
      Settings.layerTest({}, (variable) =>
        Option.map(Option.fromNullishOr(environment[variable] || undefined), Redacted.make)
      )
    ),
    Layer.provide(cryptoLayer)
  )

const keys = { FACILITATOR_API_KEYS: `shop:${shop}`, OPERATOR_API_KEYS: `ops:${ops}` }

const request = (method: string, headers: Record<string, string> = {}) =>
  HttpServerRequest.fromWeb(new Request("http://pay.example/x", { method, headers })).modify({
    headers: HttpServerRequest.fromWeb(new Request("http://pay.example/x", { headers })).headers,
    remoteAddress: Option.some("203.0.113.7")
  })

const opened = (bearer: string) =>
  Effect.map(Sessions, (sessions) => Option.getOrThrow(sessions.open(bearer, false)).cookie.split(";", 1)[0]!)

const page = { host: "pay.example", origin: "http://pay.example", "x-tollkeeper-page": "1" }

describe("a session", () => {
  it.effect("a session carries its key's role for 12 hours in a protected cookie", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { cookie, session } = Option.getOrThrow(sessions.open(ops, true))
      expect(session).toMatchObject({ role: "operator", principal: "ops" })
      expect(cookie).toMatch(
        /^__Host-tollkeeper_session=.*; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/
      )
      expect(cookie).not.toContain(ops)
      const held = { cookie: `other=1; ${cookie.split(";", 1)[0]}` }
      expect(Option.map(sessions.of(request("GET", held)), ({ role }) => role)).toEqual(Option.some("operator"))
      yield* TestClock.adjust("12 hours")
      expect(Option.isNone(sessions.of(request("GET", held)))).toBe(true)
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("a session that was signed out of is none, and another one of its key is", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const [mine, other] = [yield* opened(ops), yield* opened(ops)]
      const of = (cookie: string) => sessions.of(request("GET", { cookie }))._tag
      const { id, untilSeconds, ...key } = sessions.named(request("GET", { cookie: mine }))!
      sessions.setEnded([{ name: endedName(key, id), untilSeconds }])
      expect([of(mine), of(other)]).toEqual(["None", "Some"])
      expect(sessions.named(request("GET", { cookie: mine }))).toBeUndefined()
      // Dropped at the time when it would have expired anyway: from then on the cookie's own expiry refuses it.
      yield* TestClock.adjust("13 hours")
      sessions.setEnded([])
      expect(of(mine)).toBe("None")
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("of two cookies of one name none counts, and one of plain HTTP is none over TLS", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const of = (cookie: string) => sessions.of(request("GET", { cookie }))._tag
      const plain = yield* opened(ops)
      const secure = Option.getOrThrow(sessions.open(ops, true)).cookie.split(";", 1)[0]!
      expect([of(plain), of(secure)]).toEqual(["Some", "Some"])
      expect(of(`${plain}; tollkeeper_session=planted`)).toBe("None")
      expect(of(`tollkeeper_session=planted; ${plain}`)).toBe("None")
      expect(of(`${plain}; ${plain}`)).toBe("None")
      expect(of(`${secure}; tollkeeper_session=planted`)).toBe("Some")
      expect(of(`__Host-${plain}`)).toBe("None")
      expect(of(secure.replace("__Host-", ""))).toBe("None")
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("a clock ahead at login does not prolong a session", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const at = Effect.fnUntraced(function* (millis: number, cookie: string) {
        yield* TestClock.setTime(millis)
        return sessions.of(request("GET", { cookie }))._tag
      })
      yield* TestClock.setTime(30 * 86_400_000)
      const cookie = yield* opened(ops)
      expect(yield* at(30 * 86_400_000 - 300_000, cookie)).toBe("Some")
      expect(yield* at(30 * 86_400_000 - 301_000, cookie)).toBe("None")
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("refuses a session that was altered or whose key is not listed", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      expect(Option.isNone(sessions.open("unlisted-secret-0123456", false))).toBe(true)
      const cookie = yield* opened(shop)
      const forged = [
        cookie.replace("caller", "operator"),
        cookie.replace(".shop.", ".ops."),
        cookie.replace("caller.shop", "operator.ops"),
        cookie.replace(/\.(\d+)\./, (_, until: string) => `.${Number(until) + 1}.`),
        `${cookie.slice(0, -1)}${cookie.endsWith("A") ? "B" : "A"}`,
        cookie.slice(0, -2),
        `${cookie}A`,
        "tollkeeper_session="
      ]
      for (const text of forged)
        expect([text, sessions.of(request("GET", { cookie: text }))._tag]).toEqual([text, "None"])
      expect(sessions.of(request("GET", { cookie }))._tag).toBe("Some")
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("a session ends with its key on every replica", () =>
    Effect.gen(function* () {
      const cookie = yield* Effect.provide(opened(shop), services(keys))
      const of = Effect.map(Sessions, (sessions) => sessions.of(request("GET", { cookie }))._tag)
      expect(yield* Effect.provide(of, services(keys))).toBe("Some")
      const rotated = { ...keys, FACILITATOR_API_KEYS: "shop:another-secret-0123456" }
      expect(yield* Effect.provide(of, services(rotated))).toBe("None")
    })
  )

  it.effect("refuses changes from a page of another origin or a form", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const callers = yield* Authentication
      const cookie = yield* opened(ops)
      const by = (headers: Record<string, string>) => callers.operator(request("POST", { cookie, ...headers }))._tag
      expect(by(page)).toBe("Some")
      expect(by({ ...page, origin: "http://evil.example" })).toBe("None")
      expect(by({ ...page, origin: "null" })).toBe("None")
      expect(by({ host: page.host, origin: page.origin })).toBe("None")
      expect(isFromPage(request("POST", { host: page.host }))).toBe(false)
      expect(sessions.of(request("DELETE", { cookie }))._tag).toBe("None")
    }).pipe(Effect.provide(services(keys)))
  )

  it.effect("a caller's session reads but neither pays nor acts as operator", () =>
    Effect.gen(function* () {
      const callers = yield* Authentication
      const cookie = yield* opened(shop)
      expect(Option.map(callers.authenticate(request("GET", { cookie })), ({ owner }) => owner)).toEqual(
        Option.some("key:shop")
      )
      expect(callers.authenticate(request("POST", { cookie, ...page }))._tag).toBe("None")
      expect(callers.mayOperate(request("GET", { cookie }))).toBe(false)
      const operator = yield* opened(ops)
      expect(callers.authenticate(request("GET", { cookie: operator }))._tag).toBe("None")
      expect(callers.reader(request("GET", { cookie: operator }))).toEqual(
        Option.some({ source: "operator:ops", only: undefined })
      )
      expect(callers.mayOperate(request("GET", { cookie: operator }))).toBe(true)
      expect(callers.reader(request("GET"))._tag).toBe("None")
    }).pipe(Effect.provide(services(keys)))
  )
})

describe("a long head", () => {
  it.effect("is searched for the caller, and split into no parts", () =>
    Effect.gen(function* () {
      const callers = yield* Authentication
      const cookie = yield* opened(shop)
      const long = request("GET", {
        cookie: `${";".repeat(60_000)}; ${cookie}`,
        "x-forwarded-for": ",".repeat(60_000)
      })
      const split = vi.spyOn(String.prototype, "split")
      const reader = callers.reader(long)
      const longest = Math.max(0, ...split.mock.contexts.map(String).map(({ length }) => length))
      split.mockRestore()
      expect(reader).toEqual(Option.some({ source: "key:shop", only: undefined }))
      expect(longest).toBeLessThan(1_000)
    }).pipe(Effect.provide(services(keys)))
  )
})

describe("this machine", () => {
  it.effect("without operator keys, this machine operates under its own host names only", () =>
    Effect.gen(function* () {
      const callers = yield* Authentication
      const at = (host: string, address = "127.0.0.1") =>
        callers.mayOperate(request("GET", { host }).modify({ remoteAddress: Option.some(address) }))
      for (const host of ["127.0.0.1:4022", "localhost", "localhost:4022", "[::1]:4022"])
        expect([host, at(host)]).toEqual([host, true])
      for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:4022", ""])
        expect([host, at(host)]).toEqual([host, false])
      expect(at("127.0.0.1:4022", "203.0.113.7")).toBe(false)
    }).pipe(Effect.provide(services({})))
  )
})
