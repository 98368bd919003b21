// Origins that mean harm to whoever asks them. The network is the test's; what may be dialed is judged by the real
// rules.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { gzipSync } from "node:zlib"
import { Outbound, type OutboundAnswer, OutboundFailed } from "../../../kernel/platform/Outbound.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { OriginDocuments } from "../../../plugins/catalog/ownership/OriginDocuments.ts"
import { Origins } from "../../../plugins/catalog/ownership/Origins.ts"

const owner = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
const settings = {
  requireHttpsOrigins: true,
  allowLocalOrigins: false,
  probeTimeoutMillis: 5_000,
  probeBytesMax: 262_144,
  probePauseSeconds: 60,
  resolvedMcpEndpoints: { "mcp://calculator": "https://calc.example.com/mcp" }
} as unknown as CatalogValues

const body = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
const ok = (value: unknown, headers: Record<string, string> = {}): OutboundAnswer => ({
  status: 200,
  headers,
  body: value instanceof Uint8Array ? value : body(value)
})

type Answer = OutboundAnswer | OutboundFailed["reason"] | "never"

/** `addresses` are what a name resolves to, one look-up after another; the last one stays. */
const network = (
  answer: (url: string) => Answer,
  addresses: ReadonlyArray<ReadonlyArray<string>> = [["93.184.216.34"]]
) => {
  const sent: Array<string> = []
  let looked = 0
  const outbound = Outbound.of({
    resolve: () => Effect.sync(() => addresses[Math.min(looked++, addresses.length - 1)]!),
    send: ({ address, body, bytesMax, headers, method, url }) => {
      sent.push(`${method} ${url} at ${address}`)
      expect(body).toBeUndefined()
      expect(Object.keys(headers).sort()).toEqual(["accept", "user-agent"])
      expect(bytesMax).toBe(262_144)
      const given = answer(url)
      return given === "never"
        ? Effect.never
        : typeof given === "string"
          ? Effect.fail(new OutboundFailed({ reason: given }))
          : Effect.succeed(given)
    }
  })
  const parts = Origins.layer.pipe(
    Layer.provide(OriginDocuments.layer),
    Layer.provide(Layer.mergeAll(Layer.succeed(Config, settings), Layer.succeed(Outbound, outbound)))
  )
  const { ask } = Effect.runSync(Effect.provide(Origins, parts))
  return { sent, ask }
}

const resourceOf = (
  origin: string,
  more: { readonly methods?: ReadonlyArray<string>; readonly isDynamic?: boolean; readonly type?: "http" | "mcp" } = {}
) => ({
  identity: {
    type: more.type ?? ("http" as const),
    resource: `${origin}/x`,
    toolName: more.type === "mcp" ? "add" : "",
    origin
  },
  methods: more.methods ?? ["GET"],
  isDynamic: more.isDynamic ?? false
})
const shop = "https://shop.example.com"
const missing: OutboundAnswer = { status: 404, headers: {}, body: new Uint8Array() }
const silent = { payTos: [], delisted: false }

describe("asking an origin", () => {
  it.effect.each<readonly [string, Answer, string]>([
    ["too long an answer", "too_large", "too_large"],
    ["a connection that fails", "unreachable", "unreachable"],
    ["an answer that never ends", "never", "timeout"],
    [
      "a redirect elsewhere",
      { status: 302, headers: { location: "https://evil.example.com/" }, body: body({ payTo: owner }) },
      "redirected"
    ],
    [
      "a redirect inside",
      { status: 307, headers: { location: "http://169.254.169.254/latest" }, body: new Uint8Array() },
      "redirected"
    ],
    [
      "a redirect to another port",
      { status: 308, headers: { location: "https://shop.example.com:8443/" }, body: new Uint8Array() },
      "redirected"
    ],
    [
      "a redirect to plain http",
      { status: 301, headers: { location: "http://shop.example.com/.well-known/x402" }, body: new Uint8Array() },
      "redirected"
    ],
    [
      "a redirect to itself",
      { status: 301, headers: { location: "/.well-known/x402" }, body: new Uint8Array() },
      "redirected"
    ],
    [
      "a compressed bomb, which stays compressed",
      ok(new Uint8Array(gzipSync(Buffer.alloc(5_000_000, " "))), { "content-encoding": "gzip" }),
      "200"
    ],
    ["a hundred thousand open brackets", ok("[".repeat(100_000)), "200"],
    ["deep objects", ok(`${`{"payTo":`.repeat(20_000)}1${"}".repeat(20_000)}`), "200"],
    ["a document with a wrong status", { status: 500, headers: {}, body: body({ payTo: owner }) }, "500"],
    ["bytes that are no text", ok(new Uint8Array([0xff, 0xfe, 0, 1])), "200"],
    ["nothing", ok(""), "200"]
  ])("that answers with %s says nothing", ([, answer, detail]) =>
    Effect.gen(function* () {
      const { ask } = network((url) => (url.endsWith("/x402") || url.endsWith("/") ? answer : missing))
      const asking = yield* Effect.forkChild(ask(resourceOf(shop, { methods: ["POST"] })), { startImmediately: true })
      yield* TestClock.adjust("6 seconds")
      yield* TestClock.adjust("6 seconds")
      const { _tag, value } = (yield* Effect.exit(Fiber.join(asking))) as {
        readonly _tag: string
        readonly value: unknown
      }
      expect(_tag).toBe("Success")
      expect(value).toEqual({
        word: silent,
        declarations: [],
        life: "unknown",
        detail: `well-known ${detail}`,
        isLocal: false
      })
    })
  )

  it.effect("whose name leads inside at the second look dials nothing inside, and is told as local [S24]", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing, [["93.184.216.34"], ["127.0.0.1"]])
      expect(yield* ask(resourceOf(shop))).toMatchObject({ word: silent, isLocal: true })
      expect(sent).toEqual([`GET ${shop}/.well-known/x402 at 93.184.216.34`])
      const mixed = network(() => missing, [["93.184.216.34", "::ffff:10.0.0.1"]])
      expect(yield* mixed.ask(resourceOf(shop))).toMatchObject({ isLocal: true })
      expect(mixed.sent).toEqual([])
    })
  )

  it.effect("sends no method with a body, calls no tool and makes up no path [S317]", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing)
      yield* ask(resourceOf("https://a.example.com", { methods: ["POST", "DELETE", "PUT"] }))
      yield* ask(resourceOf("https://b.example.com", { methods: ["GET"], isDynamic: true }))
      yield* ask(resourceOf("https://c.example.com", { methods: ["GET"], type: "mcp" }))
      yield* ask({
        identity: { type: "mcp", resource: "mcp://calculator", toolName: "add", origin: undefined },
        methods: [],
        isDynamic: false
      })
      yield* ask({
        identity: { type: "mcp", resource: "mcp://nowhere", toolName: "add", origin: undefined },
        methods: [],
        isDynamic: false
      })
      expect(sent).toEqual(
        ["a", "b", "c", "calc"].flatMap((name) => [
          `GET https://${name}.example.com/.well-known/x402 at 93.184.216.34`,
          `GET https://${name}.example.com/.well-known/x402.json at 93.184.216.34`
        ])
      )
      yield* ask(resourceOf("https://d.example.com", { methods: ["POST", "HEAD"] }))
      expect(sent.slice(8)).toEqual([
        "GET https://d.example.com/.well-known/x402 at 93.184.216.34",
        "HEAD https://d.example.com/x at 93.184.216.34"
      ])
    })
  )

  it.effect("asks for its document once a minute, whoever wants to know, and live pages twenty times", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing)
      const answers = yield* Effect.forEach(Array.from({ length: 25 }), () => ask(resourceOf(shop)), {
        concurrency: "unbounded"
      })
      expect(sent.filter((line) => line.includes("well-known"))).toHaveLength(1)
      expect(sent.filter((line) => line.includes("/x at"))).toHaveLength(20)
      expect(answers.filter((answer) => answer === "later")).toHaveLength(5)
      yield* TestClock.adjust("60 seconds")
      yield* ask(resourceOf(shop))
      expect(sent).toHaveLength(23)
    })
  )

  it.effect("keeps documents in bounded room: a flood of large ones puts the oldest out", () =>
    Effect.gen(function* () {
      const { ask, sent } = network((url) =>
        url.includes("large") ? ok({ payTo: owner, padding: "x".repeat(200_000) }) : ok({ payTo: owner })
      )
      const countOf = (name: string) =>
        sent.filter((line) => line.includes(`//${name}.example.com/.well-known/x402 `)).length
      yield* ask(resourceOf("https://first.example.com"))
      for (let at = 0; at < 40; at++) yield* ask(resourceOf(`https://large${at}.example.com`))
      yield* ask(resourceOf("https://first.example.com"))
      expect(countOf("first")).toBe(1)
      for (let at = 40; at < 60; at++) yield* ask(resourceOf(`https://large${at}.example.com`))
      yield* ask(resourceOf("https://first.example.com"))
      yield* ask(resourceOf("https://large59.example.com"))
      expect([countOf("first"), countOf("large59")]).toEqual([2, 1])
    })
  )
})
