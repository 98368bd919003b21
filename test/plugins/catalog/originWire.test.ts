// Reading an origin's pages and documents, and rejecting invalid ones.
import { expect, it, vi } from "vitest"
import { readOpenApi, readUnusableOperations } from "../../../plugins/catalog/ownership/OpenApiWire.ts"
import { atomicAmount } from "../../../plugins/catalog/pricing.ts"
import {
  readLive402,
  readLiveOffer,
  readManifest,
  readUnusable
} from "../../../plugins/catalog/ownership/OriginWire.ts"

const payTo = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
const base = "https://shop.example.com"
const option = {
  scheme: "exact",
  network: "stellar:testnet",
  asset: "CASSET",
  amount: "5",
  payTo,
  maxTimeoutSeconds: 60
}

const page = (required: unknown, status = 402) => ({
  status,
  headers: {},
  body: new TextEncoder().encode(JSON.stringify(required))
})

const pricing = {
  assets: [
    { network: "ledger:testnet", contract: "CUSDC", symbol: "USDC", decimals: 7 },
    { network: "ledger:testnet", contract: "CXLM", symbol: "XLM", decimals: 7 }
  ],
  payTos: [payTo]
}

it("a 402 page counts only for this network, method and seller [S317]", () => {
  const declaration = { info: { input: { type: "http", method: "GET", queryParams: { a: 1 } } } }
  const required = {
    x402Version: 2,
    resource: { description: "Words", url: "https://elsewhere.example.com/" },
    accepts: [
      option,
      { ...option, network: "eip155:8453" },
      { ...option, amount: "5.5" },
      { ...option, amount: 5 },
      { ...option, payTo: "0x00" },
      { ...option, scheme: "EXACT!" },
      "exact"
    ],
    extensions: { bazaar: declaration, "payment-identifier": {}, "offer-receipt": {}, evil: {} }
  }
  const offer = readLiveOffer(page(required), `${base}/a`, "GET")
  expect(offer).toMatchObject({ sentKey: "bazaar", declaration, extensions: ["catalog", "offer-receipt"] })
  expect(offer?.offers.map(({ dialect, resource, terms }) => [dialect, resource["url"], terms.amountText])).toEqual([
    ["stellar", `${base}/a`, "5"]
  ])
  const other = readLiveOffer(page(required), `${base}/a`, "HEAD")
  expect(other?.declaration).toEqual({ info: { input: { type: "http", method: "HEAD" } } })
  expect(readLiveOffer(page(required, 200), `${base}/a`, "GET")).toBeUndefined()
  expect(readLive402(page(required, 200))).toEqual({ payTos: [], delisted: false })
  expect(readLiveOffer(page({ accepts: [] }), `${base}/a`, "GET")).toBeUndefined()
})

it("the first protocol version is read with its input and output", () => {
  const old = { ...option, amount: undefined, maxAmountRequired: "7", description: "Old" }
  const outputSchema = { input: { type: "http", method: "GET", discoverable: true }, output: { type: "json" } }
  const offer = readLiveOffer(page({ x402Version: 1, accepts: [{ ...old, outputSchema }] }), `${base}/a`, "GET")
  expect(offer?.offers[0]?.terms.amountText).toBe("7")
  expect(offer?.offers[0]?.resource["description"]).toBe("Old")
  expect(offer?.declaration).toEqual({
    info: { input: { type: "http", method: "GET" }, output: { type: "json" } }
  })
})

it("an origin's documents are read only about that origin itself [S317]", () => {
  const entry = (resource: string, more = {}) => ({ resource, type: "http", accepts: [option], ...more })
  const named = readManifest(
    {
      items: [
        entry("/a"),
        entry(`${base}/b`, { operations: [{ method: "GET" }, { method: "POST", accepts: [] }, { method: "BREW" }] }),
        entry("https://elsewhere.example.com/x"),
        entry("https://shop.example.com.evil.example.com/x"),
        entry("/tool", { toolName: "add" }),
        "/by-its-url",
        "https://elsewhere.example.com/y",
        7,
        {}
      ]
    },
    base
  )
  expect(named.map(({ offers, resource, type }) => [type, resource, offers.length])).toEqual([
    ["http", `${base}/a`, 1],
    ["http", `${base}/b`, 1],
    ["mcp", `${base}/tool`, 0],
    ["http", `${base}/by-its-url`, 0]
  ])
  for (const document of [undefined, null, [], "x", { resources: 7 }, { paths: [] }])
    expect([...readManifest(document, base), ...readOpenApi(document, base, pricing)]).toEqual([])
})

it("entries that name no resource of the origin are read with the reason", () => {
  const named = (resource: unknown, more = {}) => ({ resource, accepts: [option], ...more })
  const document = {
    resources: [
      named("/a"),
      named("https://elsewhere.example.com/x"),
      "https://elsewhere.example.com/y",
      named("http://shop.example.com/plain"),
      named("mcp://shop/tool", { toolName: "add" }),
      named("ftp://shop.example.com/x"),
      named("https://user:pass@shop.example.com/x"),
      named("http://["),
      ...["a\u0000b", "a b", "x".repeat(129), "half\ud83d"].map((toolName) => named(`${base}/mcp`, { toolName })),
      { title: "No URL", about: "\ud83d\ude80".repeat(300) },
      7
    ]
  }
  expect(readUnusable(document, base).map(({ reason, resource, toolName }) => [reason, resource, toolName])).toEqual([
    ["other_origin", "https://elsewhere.example.com/x", ""],
    ["other_origin", "https://elsewhere.example.com/y", ""],
    ["other_origin", "http://shop.example.com/plain", ""],
    ["other_origin", "mcp://shop/tool", "add"],
    ["unreadable_url", "ftp://shop.example.com/x", ""],
    ["unreadable_url", "https://user:pass@shop.example.com/x", ""],
    ["unreadable_url", "http://[", ""],
    ...Array.from({ length: 4 }, () => ["unreadable_url", `${base}/mcp`, ""]),
    ["unreadable_url", `{"title":"No URL","about":"${"\ud83d\ude80".repeat(114)}\ufffd`, ""],
    ["unreadable_url", "7", ""]
  ])
  const paid = (url: string, path = "/paid") => ({
    servers: [{ url }],
    paths: { [path]: { get: { "x-payment-info": {} }, post: { "x-payment-info": {} } }, "/free": { get: {} } }
  })
  const reasonsOf = (document: unknown) =>
    readUnusableOperations(document, base).map(({ reason, resource }) => `${reason} ${resource}`)
  expect(reasonsOf(paid("/v2"))).toEqual([])
  expect(reasonsOf(paid("https://api.example.com/v2/"))).toEqual(
    Array.from({ length: 2 }, () => "other_origin https://api.example.com/v2/paid")
  )
  expect(reasonsOf(paid("http://["))).toEqual(Array.from({ length: 2 }, () => "unreadable_url /paid"))
  for (const document of [undefined, null, [], "x", { resources: 7 }, { paths: [] }])
    expect([...readUnusable(document, base), ...readUnusableOperations(document, base)]).toEqual([])
})

it("prices of every paid OpenAPI operation are read from its convention", () => {
  const of = (payment: unknown, more: Record<string, unknown> = {}, with_ = pricing) =>
    readOpenApi({ paths: { "/paid": { post: { summary: "Paid", "x-payment-info": payment } } }, ...more }, base, with_)
  const priced = (amount: string, currency = "USD") => ({
    price: { mode: "fixed", currency, amount },
    protocols: ["x402"]
  })
  const termsOf = (named: ReturnType<typeof of>) =>
    named.flatMap(({ methods, offers, resource }) =>
      offers.flatMap((one) =>
        one.offers.map(({ terms }) => [methods, resource, terms.amountText, terms.asset, terms.payTo].join(" "))
      )
    )
  const costs = (amount: string, asset = "CUSDC") => [`POST ${base}/paid ${amount} ${asset} ${payTo}`]
  expect(termsOf(of(priced("0.05")))).toEqual(costs("500000"))
  expect(termsOf(of(priced("1", "XLM")))).toEqual(costs("10000000", "CXLM"))
  expect(termsOf(of({ pricingMode: "fixed", price: "$0.01" }))).toEqual(costs("100000"))
  expect(termsOf(of({ price: "0.01", payTo }, {}, { ...pricing, payTos: [] }))).toEqual(costs("100000"))
  const getting = { paths: { "/paid": { get: { "x-payment-info": priced("0.05") } } } }
  expect(readOpenApi(getting, base, pricing)).toMatchObject([{ methods: ["GET"], offers: [] }])
  const content = { "text/plain": { example: "hello" } }
  const [texted] = readOpenApi(
    { paths: { "/t": { put: { requestBody: { content }, "x-payment-info": priced("1") } } } },
    base,
    pricing
  )
  expect(texted?.offers[0]?.declaration).toMatchObject({
    info: { input: { type: "http", method: "PUT", bodyType: "text", body: "hello" } }
  })
  const x402 = { scheme: "exact", network: "stellar:testnet", asset: "CASSET", payTo, amount: "80000" }
  expect(termsOf(of({ ...priced("0.08"), protocols: [{ x402 }, { mpp: {} }] }))).toEqual(costs("80000", "CASSET"))
  const abroad = { ...x402, network: "eip155:8453" }
  const nothing = [
    of({ ...priced("0.08"), protocols: [{ x402: abroad }] }),
    of({ price: { mode: "dynamic", currency: "USD", min: "0.01", max: "1" } }),
    of({ pricingMode: "range", price: "1" }),
    of(priced("0.05", "GBP")),
    of(priced("0.000000001")),
    of(priced("-1")),
    of(priced("1e3")),
    of(priced("0.05"), {}, { ...pricing, payTos: [] }),
    of(priced("0.05"), {}, { ...pricing, payTos: [payTo, payTo.replace("AAAW", "BBBW")] })
  ]
  for (const named of nothing) expect([named.length, termsOf(named)]).toEqual([1, []])
  const [asked] = of(priced("0.05"), { servers: [{ url: "/v2/" }] })
  expect([asked?.resource, asked?.methods]).toEqual([`${base}/v2/paid`, ["POST"]])
  expect(of(priced("0.05"), { servers: [{ url: "https://elsewhere.example.com" }] })).toEqual([])
  const paths = {
    "/of/{id}": { get: { "x-payment-info": {} } },
    "/free": { get: {} },
    "/brew": { brew: { "x-payment-info": {} } }
  }
  expect(readOpenApi({ paths }, base, pricing)).toEqual([])
  expect(
    ["1", "0.5", "0.05000000", "12.3456789", "0.00000001", ".5", "1."].map((text) => atomicAmount(text, 7))
  ).toEqual(["10000000", "5000000", "500000", "123456789", undefined, undefined, undefined])
})

it("no document makes its reading many times its own size", () => {
  const parsed = vi.spyOn(URL, "canParse")
  const numbers = Array.from({ length: 2_000 }, (_, at) => at)
  const paths = Object.fromEntries(numbers.map((at) => [`/${at}`, { get: { "x-payment-info": {} } }]))
  const described = { servers: [{ url: `${base}/${"é".repeat(70_000)}` }], paths }
  expect(readOpenApi(described, base, pricing)).toEqual([])
  expect(readUnusableOperations(described, base)).toHaveLength(2_000)
  const accepts = Array.from({ length: 32 }, () => option)
  const entry = { accepts, operations: [{ method: "POST" }, ...numbers.map(() => ({ method: "GET" }))] }
  const resources = numbers.slice(0, 6).map((at) => ({ ...entry, resource: `/${at}` }))
  const found = readManifest({ resources }, base).map(({ offers }) => offers.map((one) => one.offers.length))
  expect(found).toEqual(Array.from({ length: 6 }, () => [32, 32]))
  const characters = parsed.mock.calls.reduce((sum, [url]) => sum + String(url).length, 0)
  parsed.mockRestore()
  expect(characters).toBeLessThan(1_000_000)
})
