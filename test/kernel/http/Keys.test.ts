// Keys and callers: the owner of a bearer key, how keys change while the process runs, and how callers are identified
// without keys.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { Headers, HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { Server } from "../../../kernel/config/Server.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { bearerOf, Keys } from "../../../kernel/http/Keys.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"

const services = (environment: Record<string, string>, tree: Record<string, unknown> = {}) =>
  Authentication.layer.pipe(
    Layer.provideMerge(Keys.layer),
    Layer.provide(Server.layer),
    Layer.provide(
      Settings.layerTest(tree, (variable) => {
        if (environment[variable] === "unreadable")
          throw new Error(`the file that ${variable}_FILE names cannot be read`)
        return Option.map(Option.fromNullishOr(environment[variable] || undefined), Redacted.make)
      })
    ),
    Layer.provide(cryptoLayer)
  )

const [alice, bob] = ["alice-secret-0123456789", "bob-secret-0123456789"]

const from = (address: string | undefined, headers: Record<string, string> = {}) =>
  HttpServerRequest.fromWeb(new Request("http://127.0.0.1/verify")).modify({
    headers: Headers.fromInput({ host: "127.0.0.1:4022", ...headers }),
    remoteAddress: Option.fromUndefinedOr(address)
  })

const challenged = (headers: Record<string, string>, address = "127.0.0.1") =>
  Effect.map(Authentication, (callers) => callers.challengeHost(from(address, headers)))

describe("challenges", () => {
  it.effect("a challenge names no host but this machine's without a configured one", () =>
    Effect.gen(function* () {
      expect(yield* challenged({})).toBe("127.0.0.1:4022")
      for (const host of ["evil-airdrop.example", "", "127.0.0.1.evil.example"])
        expect([host, yield* challenged({ host })]).toEqual([host, undefined])
      expect(yield* challenged({}, "203.0.113.7")).toBe(undefined)
      expect(yield* challenged({ "x-forwarded-for": "203.0.113.7" })).toBe(undefined)
    }).pipe(Effect.provide(services({})))
  )

  it.effect("a challenge names a configured host from any address, and no other", () =>
    Effect.gen(function* () {
      for (const host of ["pay.example.com", "PAY.example.com:443"])
        expect(yield* challenged({ host }, "203.0.113.7")).toBe(host.toLowerCase())
      for (const host of ["evil-airdrop.example", "pay.example.com.evil.example", "x.pay.example.com", "localhost"])
        expect([host, yield* challenged({ host }, "203.0.113.7")]).toEqual([host, undefined])
    }).pipe(Effect.provide(services({}, { server: { allowed_hosts: ["Pay.example.com"] } })))
  )
})

describe("attributes of keys", () => {
  const written = `alice(until=1970-01-02):${alice},bob(analytics:all):${bob},carol:carol-secret-0123456789`
  it.effect("a key ends at its time, and a scope is its label's", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const callers = yield* Authentication
      const only = (secret: string) =>
        Option.map(callers.reader(from("203.0.113.7", { authorization: `Bearer ${secret}` })), (reader) => reader.only)
      expect(only(alice)).toEqual(Option.some("key:alice"))
      expect(only(bob)).toEqual(Option.some(undefined))
      expect(only("carol-secret-0123456789")).toEqual(Option.some("key:carol"))
      yield* TestClock.adjust("23 hours")
      expect([Option.isSome(keys.caller(alice)), keys.proofs("caller", "alice", new Uint8Array(1)).length]).toEqual([
        true,
        1
      ])
      yield* TestClock.adjust("1 hour")
      expect([Option.isSome(keys.caller(alice)), keys.proofs("caller", "alice", new Uint8Array(1)).length]).toEqual([
        false,
        0
      ])
      expect(keys.listed().callers).toEqual(["bob", "carol"])
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: written })))
  )

  it.effect("an ended last key does not make the facilitator keyless", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      yield* TestClock.adjust("24 hours")
      expect([keys.keyed(), Option.isNone((yield* Authentication).authenticate(from("203.0.113.7")))]).toEqual([
        true,
        true
      ])
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: `alice(until=1970-01-02):${alice}` })))
  )

  for (const wrong of ["until=tomorrow", "until=2027-13-41", "analytics", "admin:all"])
    it.effect(`the attribute ${wrong} stops the boot`, () =>
      Effect.gen(function* () {
        const built = yield* Effect.exit(
          Effect.scoped(Layer.build(services({ FACILITATOR_API_KEYS: `a(${wrong}):${alice}` })))
        )
        expect(built._tag).toBe("Failure")
      })
    )
})

describe("keys", () => {
  it.effect("a key's principal is its label or hash, never its secret [S240, S253, S325]", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      expect(keys.caller(alice)).toEqual(Option.some("alice"))
      expect(Option.getOrThrow(keys.caller(bob))).toMatch(/^[0-9a-f]{16}$/)
      for (const wrong of ["", "alice", `alice:${alice}`, `${alice} `, bob.toUpperCase(), "operator-secret-0123"])
        expect([wrong, Option.isNone(keys.caller(wrong))]).toEqual([wrong, true])
      expect(keys.operator("operator-secret-0123")).toEqual(Option.some("ops"))
      expect(Option.isNone(keys.operator(alice))).toBe(true)
      expect(JSON.stringify(keys)).not.toContain("secret")
    }).pipe(
      Effect.provide(
        services({ FACILITATOR_API_KEYS: ` alice:${alice} ,, ${bob}\n`, OPERATOR_API_KEYS: "ops:operator-secret-0123" })
      )
    )
  )

  it.effect("reads keys from the configured variable [S241, S285]", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      expect([Option.isSome(keys.caller(alice)), Option.isSome(keys.caller(bob))]).toEqual([false, true])
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: alice, OTHER_KEYS: bob }, { api_keys_env: "OTHER_KEYS" })))
  )

  it.effect("a short or unsendable key stops the boot without being shown", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        Effect.scoped(Layer.build(services({ FACILITATOR_API_KEYS: `${alice},short:one` })))
      )
      expect(refused).toMatchObject({ path: "FACILITATOR_API_KEYS", message: "entry 2 is shorter than 16 characters" })
      for (const lost of ["alice secret 0123456789", "alice:secret\t0123456789abcd", "gehêim-0123456789abcdef"]) {
        const { message } = yield* Effect.flip(
          Effect.scoped(Layer.build(services({ FACILITATOR_API_KEYS: `${alice},${lost}` })))
        )
        expect(message).toBe("entry 2 has a space, or a character that is not ASCII: no request could send it")
      }
      const comma = `alice(until=2031-01-31,analytics:all):${alice}`
      expect(yield* Effect.flip(Effect.scoped(Layer.build(services({ FACILITATOR_API_KEYS: comma }))))).toMatchObject({
        message: "entry 1 is not label(attribute attribute):secret, without a comma"
      })
      expect(
        (yield* Effect.flip(Effect.scoped(Layer.build(services({ FACILITATOR_API_KEYS: "unreadable" }))))).message
      ).toContain("cannot be read")
    })
  )

  it.effect("a named variable that is not set does not mean a keyless facilitator", () =>
    Effect.gen(function* () {
      for (const path of ["api_keys_env", "operator_keys_env"])
        for (const name of ["SHOP_KEYS", `shop:${alice}`]) {
          const refused = yield* Effect.flip(Effect.scoped(Layer.build(services({}, { [path]: name }))))
          expect(refused).toMatchObject({
            path,
            message: expect.stringMatching(/^the variable that it names is not set/)
          })
          expect(JSON.stringify(refused)).not.toContain(name)
        }
    })
  )

  it.effect("a variable without any key does not mean a keyless facilitator", () =>
    Effect.gen(function* () {
      for (const variable of ["FACILITATOR_API_KEYS", "OPERATOR_API_KEYS"])
        expect(yield* Effect.flip(Effect.scoped(Layer.build(services({ [variable]: " , \n" }))))).toMatchObject({
          path: variable,
          message: "it lists no key; write one, or unset it"
        })
    })
  )

  it.effect("keys reload on demand and are kept if the file is invalid [S325]", () => {
    const environment: Record<string, string> = { FACILITATOR_API_KEYS: `alice:${alice}` }
    return Effect.gen(function* () {
      const keys = yield* Keys
      environment["FACILITATOR_API_KEYS"] = `alice:${alice},bob:${bob}`
      yield* keys.reread
      expect(keys.caller(bob)).toEqual(Option.some("bob"))
      for (const error of ["", " , ", "short", "unreadable"]) {
        environment["FACILITATOR_API_KEYS"] = error
        expect([error, (yield* Effect.flip(keys.reread)).path]).toEqual([error, "FACILITATOR_API_KEYS"])
        expect([keys.keyed(), keys.caller(alice)]).toEqual([true, Option.some("alice")])
      }
      environment["FACILITATOR_API_KEYS"] = `bob:${bob}`
      yield* keys.reread
      expect([keys.caller(alice), keys.caller(bob)]).toEqual([Option.none(), Option.some("bob")])
    }).pipe(Effect.provide(services(environment)))
  })

  it.effect("a revoked key is refused although its file lists it", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const message = new Uint8Array([1])
      const ofAlice = keys.named().filter(({ principal }) => principal === "alice")
      expect([ofAlice.length, keys.proofs("caller", "alice", message).length]).toEqual([1, 1])
      keys.setRevoked(ofAlice)
      expect([keys.caller(alice), keys.markOf(alice), keys.keyed()]).toEqual([Option.none(), undefined, true])
      expect([keys.proofs("caller", "alice", message), keys.listed().callers]).toEqual([[], []])
      yield* keys.reread
      expect(keys.caller(alice)).toEqual(Option.none())
      keys.setRevoked([])
      expect(keys.caller(alice)).toEqual(Option.some("alice"))
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: `alice:${alice}` })))
  )

  it("accepts keys only from a bearer header [S239]", () => {
    expect(bearerOf(`Bearer ${alice}`)).toEqual(Option.some(alice))
    expect(bearerOf(`bearer ${alice}`)).toEqual(Option.some(alice))
    for (const header of [
      undefined,
      "",
      alice,
      `Basic ${alice}`,
      `Bearer  ${alice}`,
      `Bearer ${alice}, Bearer ${bob}`,
      `Bearer ${alice} x`,
      "Bearer "
    ]) {
      expect([header, Option.isNone(bearerOf(header))]).toEqual([header, true])
    }
  })
})

describe("callers", () => {
  const idOf = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.map(Authentication, (callers) =>
      Option.match(callers.authenticate(request), { onNone: () => "none", onSome: ({ source }) => source })
    )

  it.effect("with keys configured, only a listed key authenticates a caller", () =>
    Effect.gen(function* () {
      expect(yield* idOf(from("10.0.0.1"))).toBe("none")
      expect(yield* idOf(from("10.0.0.1", { authorization: `Bearer ${alice}` }))).toBe("key:alice")
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: `alice:${alice}` })))
  )

  it.effect("without keys, callers are their source address, ignoring claimed ones [S244, S245]", () =>
    Effect.gen(function* () {
      expect(yield* idOf(from("10.0.0.1", { "x-forwarded-for": "1.2.3.4", authorization: `Bearer ${alice}` }))).toBe(
        "ip:10.0.0.1"
      )
      expect(yield* idOf(from(undefined))).toBe("ip:unknown")
    }).pipe(Effect.provide(services({})))
  )

  it.effect("a caller's address follows trusted proxies from the nearest hop", () =>
    Effect.gen(function* () {
      const forwarded = (value: string, peer = "10.0.0.1") => idOf(from(peer, { "x-forwarded-for": value }))
      expect(yield* forwarded("1.2.3.4")).toBe("ip:1.2.3.4")
      expect(yield* forwarded("6.6.6.6, 1.2.3.4")).toBe("ip:1.2.3.4")
      expect(yield* forwarded("6.6.6.6, 1.2.3.4, 10.9.9.9")).toBe("ip:1.2.3.4")
      expect(yield* forwarded("1.2.3.4, made-up")).toBe("ip:10.0.0.1")
      expect(yield* forwarded("")).toBe("ip:10.0.0.1")
      expect(yield* forwarded("1.2.3.4", "9.9.9.9")).toBe("ip:9.9.9.9")
    }).pipe(Effect.provide(services({}, { server: { trusted_proxies: ["10.0.0.0/8"] } })))
  )

  it.effect("a caller behind a configured proxy or another host name is not local", () =>
    Effect.gen(function* () {
      const { isLocal } = yield* Authentication
      expect([isLocal(from("127.0.0.1")), isLocal(from("127.0.0.2"))]).toEqual([false, true])
      for (const host of ["pay.example", "", "10.0.0.1"])
        expect([host, isLocal(from("127.0.0.2", { host }))]).toEqual([host, false])
    }).pipe(Effect.provide(services({}, { server: { trusted_proxies: ["127.0.0.1"] } })))
  )

  it.effect("a caller is local only without a proxy in between", () =>
    Effect.gen(function* () {
      const { isLocal, isOperator } = yield* Authentication
      expect([isLocal(from("127.0.0.1")), isLocal(from("::1")), isLocal(from("::ffff:127.0.0.1"))]).toEqual([
        true,
        true,
        true
      ])
      expect([
        isLocal(from("10.0.0.1")),
        isLocal(from(undefined)),
        isLocal(from("127.0.0.1", { "x-forwarded-for": "127.0.0.1" }))
      ]).toEqual([false, false, false])
      const proxied = [
        "x-proxyuser-ip",
        "x-scheme",
        "client-ip",
        "x-cluster-client-ip",
        "forwarded",
        "via",
        "x-real-ip",
        "x-forwarded-proto",
        "x-forwarded-host",
        "cf-connecting-ip"
      ]
      for (const header of proxied)
        expect([header, isLocal(from("127.0.0.1", { [header]: "1.2.3.4" }))]).toEqual([header, false])
      expect(isOperator(from("127.0.0.1"))).toBe(false)
    }).pipe(Effect.provide(services({})))
  )
})

describe("wrong keys", () => {
  it.effect("are slowed by address; a listed key never waits, used before or not", () =>
    Effect.gen(function* () {
      const { keyWait } = yield* Authentication
      const wait = (address: string, key?: string) =>
        keyWait(from(address, key === undefined ? {} : { authorization: `Bearer ${key}` }))
      const tried: Array<number> = []
      for (let guess = 0; guess < 42; guess++) tried.push(yield* wait("203.0.113.7", `wrong-secret-${guess}-0123`))
      expect(tried.map((wait) => wait > 0)).toEqual([...Array(40).fill(false), true, true])
      for (let at = 0; at < 50; at++) expect(yield* wait("203.0.113.7", at % 2 === 0 ? alice : bob)).toBe(0)
      expect(yield* wait("203.0.113.7", "wrong-secret-again-0123")).toBeGreaterThan(0)
      expect(yield* wait("203.0.113.7")).toBe(0)
    }).pipe(Effect.provide(services({ FACILITATOR_API_KEYS: `alice:${alice},${bob}` })))
  )
})
