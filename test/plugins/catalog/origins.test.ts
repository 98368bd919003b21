// Hostile origins. The network is the test's; the real rules decide which addresses may be dialed.
import { expect, it } from "@effect/vitest"
import { createMcpHandler, Server } from "@modelcontextprotocol/server"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { gzipSync } from "node:zlib"
import { Outbound, type OutboundAnswer, OutboundFailed } from "../../../kernel/platform/Outbound.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { OriginDocuments } from "../../../plugins/catalog/ownership/OriginDocuments.ts"
import { PricedAssets } from "../../../plugins/catalog/ownership/PricedAssets.ts"
import { Origins, type Share } from "../../../plugins/catalog/ownership/Origins.ts"

const owner = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
const settings = {
  requireHttpsOrigins: true,
  allowLocalOrigins: false,
  probePauseSeconds: 60,
  canaryUrls: ["https://canary.example.org/"],
  resolvedMcpEndpoints: { "mcp://calculator": "https://calc.example.com/mcp" }
} as unknown as CatalogValues

const body = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
const ok = (value: unknown, headers: Record<string, string> = {}): OutboundAnswer => ({
  status: 200,
  headers,
  body: value instanceof Uint8Array ? value : body(value)
})

interface Rpc {
  readonly id?: number
  readonly method: string
  readonly params: Readonly<Record<string, any>>
}

/** `refused`: by the host itself. */
type Answer = OutboundAnswer | Promise<OutboundAnswer> | OutboundFailed["reason"] | "never" | "refused"

/** `addresses` are the results of a name's lookups, in order; the last one repeats. */
const network = (
  answer: (url: string, rpc: Rpc | undefined, headers: Readonly<Record<string, string>>) => Answer,
  addresses: ReadonlyArray<ReadonlyArray<string>> = [["93.184.216.34"]]
) => {
  const sent: Array<string> = []
  let probed = 0
  const outbound = Outbound.of({
    resolve: (host) =>
      /^(gone|erring)/.test(host)
        ? Effect.fail(
            new OutboundFailed({ reason: "unresolved", ...(host.startsWith("gone") ? { isAuthoritative: true } : {}) })
          )
        : Effect.sync(() => addresses[Math.min(probed++, addresses.length - 1)]!),
    texts: () => Effect.die("must not be called"),
    send: ({ address, body, bytesMax, headers, method, url }) => {
      sent.push(`${method} ${url} at ${address}`)
      expect(body === undefined).toBe(method !== "POST")
      if (method === "GET") expect(Object.keys(headers).sort()).toEqual(["accept", "user-agent"])
      expect(bytesMax).toBe(262_144)
      const rpc = body === undefined ? undefined : (JSON.parse(new TextDecoder().decode(body)) as Rpc)
      const given = answer(url, rpc, headers)
      if (given instanceof Promise) return Effect.promise(() => given)
      return given === "never"
        ? Effect.never
        : typeof given === "string"
          ? Effect.fail(
              given === "refused"
                ? new OutboundFailed({ reason: "unreachable", isAuthoritative: true })
                : new OutboundFailed({ reason: given })
            )
          : Effect.succeed(given)
    }
  })
  const parts = Origins.layer.pipe(
    Layer.provide(OriginDocuments.layer),
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(Config, settings),
        Layer.succeed(Outbound, outbound),
        Layer.succeed(PricedAssets, {
          assets: [{ network: "ledger:testnet", contract: "CUSDC", symbol: "USDC", decimals: 7 }]
        })
      )
    )
  )
  const { ask } = Effect.runSync(Effect.provide(Origins, parts))
  return { sent, ask }
}

const resourceOf = (
  origin: string,
  more: {
    readonly methods?: ReadonlyArray<string>
    readonly isDynamic?: boolean
    readonly type?: "http" | "mcp"
    readonly share?: Share
  } = {}
) => ({
  identity: {
    type: more.type ?? ("http" as const),
    resource: `${origin}/x`,
    toolName: more.type === "mcp" ? "add" : "",
    origin
  },
  methods: more.methods ?? ["GET"],
  isDynamic: more.isDynamic ?? false,
  share: more.share ?? ("own" as const)
})
const shop = "https://shop.example.com"
const offers = JSON.stringify([
  { scheme: "exact", network: "ledger:testnet", asset: "CUSDC", amount: "5", payTo: owner }
])
const missing: OutboundAnswer = { status: 404, headers: {}, body: new Uint8Array() }
const silent = { payTos: [], delisted: false }

describe("probing an origin", () => {
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
  ])("an origin answer with %s counts as no statement", ([, answer, detail]) =>
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
        isLocal: false,
        named: []
      })
    })
  )

  it.effect("documents of thousands of entries are read in steps between other work", () =>
    Effect.gen(function* () {
      const paths = Array.from({ length: 2_000 }, (_, at) => [
        `/d${at}`,
        { post: { "x-payment-info": { price: "1" } } }
      ])
      const list = (key: string) => ok({ [key]: Array.from({ length: 2_000 }, (_, at) => `/${key}${at}`) })
      const documents: Readonly<Record<string, OutboundAnswer>> = {
        [`${shop}/.well-known/x402`]: list("resources"),
        [`${shop}/.well-known/x402.json`]: list("items"),
        [`${shop}/openapi.json`]: ok({ paths: Object.fromEntries(paths) })
      }
      const { ask } = network((url) => documents[url] ?? missing)
      let turns = 0
      const others = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.sync(() => void turns++),
            Effect.yieldNow
          )
        )
      )
      const answer = yield* ask(resourceOf(shop, { methods: ["POST"] }))
      yield* Fiber.interrupt(others)
      expect(answer).toMatchObject({ named: expect.objectContaining({ length: 6_000 }) })
      expect(turns).toBeGreaterThan(1)
    })
  )

  it.effect.each<readonly [place: string, path: string, answer: (nested: string) => OutboundAnswer]>([
    ["its own document", "/.well-known/x402", (nested) => ok(`{"resources":[${nested}]}`)],
    [
      "a tool's entry",
      "/.well-known/x402",
      (nested) => ok(`{"resources":[{"toolName":"add","resource":"/x","unpaidCall":${nested}}]}`)
    ],
    ["its list", "/.well-known/x402.json", (nested) => ok(`{"items":[${nested}]}`)],
    ["its 402", "/x", (nested) => ({ ...ok(`{"accepts":${offers},"extensions":{"catalog":${nested}}}`), status: 402 })]
  ])("values nested by the thousand in %s are not read", ([place, path, answer]) =>
    Effect.gen(function* () {
      const nested = `${'{"info":'.repeat(20_000)}1${"}".repeat(20_000)}`
      const { ask } = network((url) => (url === shop + path ? answer(nested) : missing))
      const read = yield* ask(resourceOf(shop, { type: place === "a tool's entry" ? "mcp" : "http" }))
      expect(read).toMatchObject({ word: silent, declarations: [], isLocal: false })
      expect(read).not.toMatchObject({ detail: "unreadable" })
    })
  )

  it.effect("an answer that cannot be read says nothing and ends nothing", () =>
    Effect.gen(function* () {
      const { ask } = network(() => ({ ...missing, headers: undefined as never, status: 402 }))
      expect(yield* ask(resourceOf(shop))).toMatchObject({ word: silent, life: "unknown", detail: "unreadable" })
    })
  )

  it.effect("a name that later resolves to a private address is not dialed [S24]", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing, [["93.184.216.34"], ["127.0.0.1"]])
      expect(yield* ask(resourceOf(shop))).toMatchObject({ word: silent, isLocal: true })
      expect(sent).toEqual([`GET ${shop}/.well-known/x402 at 93.184.216.34`])
      const mixed = network(() => missing, [["93.184.216.34", "::ffff:10.0.0.1"]])
      expect(yield* mixed.ask(resourceOf(shop))).toMatchObject({ isLocal: true })
      expect(mixed.sent).toEqual([])
    })
  )

  it.effect("a probe sends no method with a body and calls no tool [S317]", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing)
      yield* ask(resourceOf("https://a.example.com", { methods: ["POST", "DELETE", "PUT"] }))
      yield* ask(resourceOf("https://b.example.com", { methods: ["GET"], isDynamic: true }))
      yield* ask(resourceOf("https://c.example.com", { methods: ["GET"], type: "mcp" }))
      yield* ask({
        identity: { type: "mcp", resource: "mcp://calculator", toolName: "add", origin: undefined },
        methods: [],
        isDynamic: false,
        share: "own"
      })
      yield* ask({
        identity: { type: "mcp", resource: "mcp://nowhere", toolName: "add", origin: undefined },
        methods: [],
        isDynamic: false,
        share: "own"
      })
      expect(sent).toEqual(
        ["a", "b", "c", "calc"].flatMap((name) => [
          `GET https://${name}.example.com/.well-known/x402 at 93.184.216.34`,
          `GET https://${name}.example.com/.well-known/x402.json at 93.184.216.34`,
          ...(name.startsWith("c") ? [] : [`GET https://${name}.example.com/openapi.json at 93.184.216.34`])
        ])
      )
      yield* ask(resourceOf("https://d.example.com", { methods: ["POST", "HEAD"] }))
      expect(sent.slice(10)).toEqual([
        "GET https://d.example.com/.well-known/x402 at 93.184.216.34",
        "HEAD https://d.example.com/x at 93.184.216.34",
        "GET https://d.example.com/.well-known/x402.json at 93.184.216.34",
        "GET https://d.example.com/openapi.json at 93.184.216.34"
      ])
    })
  )

  const required = {
    x402Version: 2,
    resource: { url: "mcp://tool/add", description: "Adds, for a price" },
    accepts: [{ scheme: "exact", network: "stellar:testnet", asset: "CASSET", amount: "7", payTo: owner }],
    extensions: { bazaar: {}, "payment-identifier": {} }
  }
  const tools = [{ name: "add", description: "Adds", inputSchema: { type: "object", properties: { a: {} } } }]
  const allowing = (entry: Record<string, unknown>) =>
    ok({ payTo: owner, resources: [{ resource: "/x", toolName: "add", ...entry }] })

  /** A tool server that answers like this; its document allows the entry's tool. */
  const toolServer = (entry: Record<string, unknown>, replies: (rpc: Rpc) => unknown, isStream = false) => {
    const called: Array<string> = []
    const { ask, sent } = network((url, rpc, headers) => {
      if (url.endsWith("/x402")) return allowing(entry)
      if (rpc === undefined) return missing
      called.push(`${rpc.method} ${JSON.stringify(rpc.params["arguments"] ?? null)} ${headers["mcp-session-id"] ?? ""}`)
      if (rpc.id === undefined) return { status: 202, headers: {}, body: new Uint8Array() }
      const session = { "mcp-session-id": "s1" }
      const reply =
        rpc.method === "initialize"
          ? { result: { protocolVersion: "2025-06-18", capabilities: {} } }
          : rpc.method === "tools/list"
            ? { result: { tools } }
            : (replies(rpc) as object)
      const text = JSON.stringify({ jsonrpc: "2.0", id: rpc.id, ...reply })
      return isStream
        ? ok(`event: message\ndata: ${text}\n\n`, { ...session, "content-type": "text/event-stream" })
        : ok(text, { ...session, "content-type": "application/json" })
    })
    return { ask, called, sent }
  }

  it.effect.each([
    ["structured content", { result: { isError: true, structuredContent: required, content: [] } }],
    ["a text", { result: { isError: true, content: [{ type: "text", text: JSON.stringify(required) }] } }],
    ["an error 402", { error: { code: 402, message: "Payment required", data: required } }]
  ])("a probe reads in %s a tool's terms from the permitted unpaid call [S317]", ([, reply]) =>
    Effect.gen(function* () {
      for (const isStream of [false, true]) {
        const { ask, called, sent } = toolServer({ unpaidCall: { a: 1 } }, () => reply, isStream)
        const answer = yield* ask(resourceOf(shop, { type: "mcp" }))
        expect(answer).toMatchObject({
          life: "alive",
          detail: "well-known 200, call 200",
          word: { payTos: [owner] },
          declarations: [
            {
              about: { description: "Adds, for a price" },
              identity: { type: "mcp", resource: `${shop}/x`, toolName: "add" },
              operation: { method: "", info: { input: { inputSchema: tools[0]!.inputSchema, description: "Adds" } } },
              extensions: ["catalog"],
              terms: { amountText: "7", payTo: owner, network: "ledger:testnet" }
            }
          ]
        })
        expect(called).toEqual([
          "initialize null ",
          "notifications/initialized null s1",
          "tools/list null s1",
          'tools/call {"a":1} s1'
        ])
        expect(sent.at(-1)).toBe(`DELETE ${shop}/x at 93.184.216.34`)
      }
    })
  )

  /** An official server that supports only 2026-07-28 and refuses `initialize`; its schema mirrors `mark`. */
  const statelessServer = (result: object, mark = "City") => {
    const properties = { a: { type: "string", "x-mcp-header": mark } }
    const handler = createMcpHandler(
      () => {
        const server = new Server({ name: "adder", version: "1.0.0" }, { capabilities: { tools: {} } })
        server.setRequestHandler("tools/list", () => ({
          tools: [{ name: "add", description: "Adds", inputSchema: { type: "object" as const, properties } }]
        }))
        server.setRequestHandler("tools/call", () => result as never)
        return server
      },
      { legacy: "reject" }
    )
    const called: Array<string> = []
    const { ask } = network((url, rpc, headers) => {
      if (url.endsWith("/x402")) return allowing({ unpaidCall: { a: "Riga" } })
      if (rpc === undefined) return missing
      const { "mcp-method": method, "mcp-name": name, "mcp-param-city": city } = headers
      called.push([rpc.method, method, name, city, headers["mcp-protocol-version"]].join(" "))
      const request = new Request(url, { method: "POST", headers: { ...headers }, body: JSON.stringify(rpc) })
      return handler.fetch(request).then(async (answer) => ({
        status: answer.status,
        headers: Object.fromEntries(answer.headers),
        body: new Uint8Array(await answer.arrayBuffer())
      }))
    })
    return { ask, called }
  }

  it.effect.each<readonly [string, object]>([
    ["a result of its own type", { resultType: "payment_required", content: [], paymentRequired: required }],
    ["an error's structured content", { isError: true, structuredContent: required, content: [] }]
  ])("a probe reads a tool's terms from a server without sessions, in %s", ([, result]) =>
    Effect.gen(function* () {
      const { ask, called } = statelessServer(result)
      expect(yield* ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({
        life: "alive",
        word: { payTos: [owner] },
        declarations: [{ terms: { amountText: "7", payTo: owner } }]
      })
      expect(called).toEqual([
        "initialize    ",
        "server/discover server/discover   2026-07-28",
        "tools/list tools/list   2026-07-28",
        "tools/call tools/call add Riga 2026-07-28"
      ])
    })
  )

  it.effect("a server without sessions is called by valid headers alone, and its question for input is no gift", () =>
    Effect.gen(function* () {
      const wrong = statelessServer({ content: [] }, "Ci ty")
      expect(yield* wrong.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "unknown", declarations: [] })
      expect(wrong.called.at(-1)).toMatch(/^tools\/list/)
      const asking = statelessServer({ resultType: "input_required", inputRequests: {}, content: [] })
      expect(yield* asking.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "unknown", declarations: [] })
      expect(asking.called.at(-1)).toMatch(/^tools\/call/)
      const free = statelessServer({ content: [{ type: "text", text: "3" }] })
      expect(yield* free.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "no_payment_required" })
    })
  )

  it.effect("a probe calls no tool without permission and no private address", () =>
    Effect.gen(function* () {
      for (const entry of [
        {},
        { unpaidCall: false },
        { unpaidCall: "yes" },
        { unpaidCall: [1] },
        { toolName: "sum", unpaidCall: true }
      ]) {
        const { ask, called } = toolServer(entry, () => ({ result: {} }))
        yield* ask(resourceOf(shop, { type: "mcp" }))
        expect(called, JSON.stringify(entry)).toEqual([])
      }
      const large = toolServer({ unpaidCall: { a: "x".repeat(5_000) } }, () => ({ result: {} }))
      yield* large.ask(resourceOf(shop, { type: "mcp" }))
      expect(large.called).toEqual([])
      const page = toolServer({ toolName: undefined, unpaidCall: true }, () => ({ result: {} }))
      yield* page.ask(resourceOf(shop, { methods: ["POST"] }))
      yield* page.ask(resourceOf(shop, { type: "mcp" }))
      expect(page.called).toEqual([])
    })
  )

  it.effect("a probe recognizes unpaid and unusable tools within its request limit", () =>
    Effect.gen(function* () {
      const free = toolServer({ unpaidCall: true }, () => ({ result: { content: [{ type: "text", text: "3" }] } }))
      expect(yield* free.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({
        life: "no_payment_required",
        declarations: []
      })
      const question = { resultType: "input_required", inputRequests: { city: {} }, content: [] }
      const asking = toolServer({ unpaidCall: true }, () => ({ result: question }))
      expect(yield* asking.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "unknown", declarations: [] })
      const foreign = { ...required, accepts: [{ ...required.accepts[0], network: "eip155:8453" }] }
      const other = toolServer({ unpaidCall: true }, () => ({ result: { isError: true, structuredContent: foreign } }))
      expect(yield* other.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "unknown", declarations: [] })
      for (let at = 0; at < 3; at++) yield* other.ask(resourceOf(shop, { type: "mcp" }))
      expect(yield* other.ask(resourceOf(shop, { type: "mcp" }))).toBe("later")
      expect(other.called).toHaveLength(16)
      const refusing = network((url) => (url.endsWith("/x402") ? allowing({ unpaidCall: true }) : "refused"))
      expect(yield* refusing.ask(resourceOf(shop, { type: "mcp" }))).toMatchObject({ life: "origin_gone" })
    })
  )

  it.effect.each<readonly [string, string, Answer, string]>([
    ["a name that does not exist", "gone", { status: 404, headers: {}, body: new Uint8Array() }, "origin_gone"],
    ["a name that does not exist while no other host answers", "gone", "timeout", "unknown"],
    ["a resolver that errs", "erring", { status: 404, headers: {}, body: new Uint8Array() }, "unknown"],
    [
      "a connection refused by the host",
      "refusing",
      { status: 503, headers: {}, body: new Uint8Array() },
      "origin_gone"
    ],
    ["a connection refused while no other host answers", "refusing", "unreachable", "unknown"],
    ["a connection that breaks", "broken", { status: 200, headers: {}, body: new Uint8Array() }, "unknown"]
  ])("an authoritative answer of %s decides liveness for any listed method", ([_, name, canary, life]) =>
    Effect.gen(function* () {
      for (const methods of [["GET"], ["POST"]]) {
        const { ask, sent } = network((url) =>
          url === "https://canary.example.org/" ? canary : url.includes("refusing") ? "refused" : "unreachable"
        )
        const origin = `https://${name}.example.com`
        expect(yield* ask(resourceOf(origin, { methods }))).toMatchObject({ life, declarations: [] })
        // The canary is asked once, regardless of the number of unreachable origins.
        for (const other of ["gone1", "gone2"]) yield* ask(resourceOf(`https://${other}.example.com`, { methods }))
        expect(sent.filter((line) => line.includes("canary")).length).toBeLessThanOrEqual(1)
      }
    })
  )

  it.effect("an answer before an outage does not vouch for a minute of it", () =>
    Effect.gen(function* () {
      let canary: "unreachable" | OutboundAnswer = missing
      const { ask } = network((url) => (url.includes("canary") ? canary : missing))
      const lifeOf = (host: string) =>
        Effect.map(ask(resourceOf(`https://${host}.example.com`)), (answer) => answer !== "later" && answer.life)
      expect(yield* lifeOf("shop")).toBe("not_found")
      expect(yield* lifeOf("gone1")).toBe("origin_gone")
      canary = "unreachable"
      yield* TestClock.adjust("60 seconds")
      expect(yield* lifeOf("gone2")).toBe("unknown")
      canary = missing
      yield* TestClock.adjust("60 seconds")
      expect(yield* lifeOf("gone3")).toBe("origin_gone")
    })
  )

  it.effect("a dead page says nothing of operations that cannot be requested", () =>
    Effect.gen(function* () {
      const lifeOf = (answer: Answer, ...methods: ReadonlyArray<string>) =>
        Effect.map(
          network(() => answer).ask(resourceOf(shop, { methods })),
          (answered) => answered !== "later" && answered.life
        )
      expect([yield* lifeOf(missing, "GET"), yield* lifeOf(missing, "GET", "HEAD")]).toEqual(["not_found", "not_found"])
      expect(yield* lifeOf(missing, "GET", "POST")).toBe("unknown")
      expect(yield* lifeOf(ok({}), "GET", "POST")).toBe("unknown")
      expect(yield* lifeOf("refused", "GET", "POST")).toBe("unknown")
    })
  )

  it.effect("a page that a claim's method names names its recipient and says nothing of life", () =>
    Effect.gen(function* () {
      const accepts = [{ scheme: "exact", network: "ledger:testnet", asset: "CUSDC", amount: "5", payTo: owner }]
      const asking = { ...ok({ accepts }), status: 402 }
      const lives = (page: OutboundAnswer, claimedMethods: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const { ask, sent } = network((url) => (url.endsWith("/x") ? page : missing))
          const answer = yield* ask({ ...resourceOf(shop, { methods: ["POST"] }), claimedMethods })
          if (answer === "later") return undefined
          const { declarations, life, word } = answer
          return [
            life,
            word.payTos.length,
            declarations.length,
            sent.filter((line) => / [^ ]*\/x at/.test(line)).length
          ]
        })
      expect(yield* lives(missing, ["GET"])).toEqual(["unknown", 0, 0, 1])
      expect(yield* lives(asking, ["GET", "POST"])).toEqual(["unknown", 1, 0, 1])
      expect(yield* lives(asking, ["PUT"])).toEqual(["unknown", 0, 0, 0])
    })
  )

  it.effect("a free trial page counts as alive only with documented prices", () =>
    Effect.gen(function* () {
      const served = { status: 200, headers: {}, body: new TextEncoder().encode("{}") }
      const accepts = [{ scheme: "exact", network: "ledger:testnet", asset: "CUSDC", amount: "5", payTo: owner }]
      const lifeWith = (page: OutboundAnswer, entry: object | undefined) =>
        Effect.map(
          network((url) => {
            if (url.endsWith("/x")) return page
            return url.endsWith("/x402") && entry !== undefined ? ok({ payTo: owner, resources: [entry] }) : missing
          }).ask(resourceOf(shop)),
          (answer) => (answer === "later" ? answer : [answer.life, answer.declarations.length])
        )
      const entry = { resource: "/x", accepts }
      expect(yield* lifeWith(served, entry)).toEqual(["alive", 1])
      expect(yield* lifeWith(served, undefined)).toEqual(["no_payment_required", 0])
      expect(yield* lifeWith(served, { resource: "/y", accepts })).toEqual(["no_payment_required", 0])
      expect(yield* lifeWith(missing, { ...entry, method: "POST" })).toEqual(["alive", 1])
      expect(yield* lifeWith(missing, entry)).toEqual(["unknown", 1])
    })
  )

  it.effect("an origin's document is requested once a minute, live pages twenty times", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing)
      const answers = yield* Effect.forEach(Array.from({ length: 25 }), () => ask(resourceOf(shop)), {
        concurrency: "unbounded"
      })
      expect(sent.filter((line) => line.includes("well-known/x402 at"))).toHaveLength(1)
      expect(sent.filter((line) => line.includes("/x at"))).toHaveLength(20)
      expect(answers.filter((answer) => answer === "later")).toHaveLength(5)
      yield* TestClock.adjust("60 seconds")
      yield* ask(resourceOf(shop))
      expect(sent).toHaveLength(27)
    })
  )

  it.effect("half of an origin's probe budget is reserved for listings with evidence", () =>
    Effect.gen(function* () {
      const { ask, sent } = network(() => missing)
      const asked = (share: Share, times: number) =>
        Effect.map(
          Effect.forEach(Array.from({ length: times }), () => ask(resourceOf(shop, { share }))),
          (answers) => answers.filter((answer) => answer !== "later").length
        )
      expect([yield* asked("claimed", 25), yield* asked("free", 25), yield* asked("claimed", 1)]).toEqual([10, 5, 0])
      expect([yield* asked("own", 6), yield* asked("free", 1)]).toEqual([5, 0])
      expect(sent.filter((line) => line.includes("/x at"))).toHaveLength(20)
      yield* TestClock.adjust("60 seconds")
      expect([yield* asked("free", 25), yield* asked("own", 6), yield* asked("claimed", 1)]).toEqual([15, 5, 0])
      yield* TestClock.adjust("60 seconds")
      // A seller's own probe is charged to its own share before it is sent.
      expect([yield* asked("own", 8), yield* asked("claimed", 25), yield* asked("free", 25)]).toEqual([8, 10, 2])
    })
  )

  it.effect("the document cache is bounded and evicts the least recently used under a flood", () =>
    Effect.gen(function* () {
      const { ask, sent } = network((url) =>
        !url.endsWith("/x402")
          ? missing
          : url.includes("large")
            ? ok({ payTo: owner, padding: "x".repeat(200_000) })
            : ok({ payTo: owner })
      )
      const countOf = (name: string) =>
        sent.filter((line) => line.includes(`//${name}.example.com/.well-known/x402 `)).length
      yield* ask(resourceOf("https://first.example.com"))
      for (let at = 0; at < 40; at++) yield* ask(resourceOf(`https://large${at}.example.com`))
      yield* ask(resourceOf("https://first.example.com"))
      expect(countOf("first")).toBe(1)
      for (let at = 40; at < 120; at++) yield* ask(resourceOf(`https://large${at}.example.com`))
      yield* ask(resourceOf("https://first.example.com"))
      yield* ask(resourceOf("https://large119.example.com"))
      expect([countOf("first"), countOf("large119")]).toEqual([2, 1])
    })
  )
})
