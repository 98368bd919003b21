// What an origin's pages and documents are read to, and what is not believed of them.
import { expect, it } from "vitest"
import { readLive402, readLiveOffer, readManifest, readOpenApi } from "../../../plugins/catalog/ownership/OriginWire.ts"

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

it("reads a page's terms and declaration, and only of this ledger, this method and the seller [S317]", () => {
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

it("reads the first protocol version with its input and output", () => {
  const old = { ...option, amount: undefined, maxAmountRequired: "7", description: "Old" }
  const outputSchema = { input: { type: "http", method: "GET", discoverable: true }, output: { type: "json" } }
  const offer = readLiveOffer(page({ x402Version: 1, accepts: [{ ...old, outputSchema }] }), `${base}/a`, "GET")
  expect(offer?.offers[0]?.terms.amountText).toBe("7")
  expect(offer?.offers[0]?.resource["description"]).toBe("Old")
  expect(offer?.declaration).toEqual({
    info: { input: { type: "http", method: "GET" }, output: { type: "json" } }
  })
})

it("reads documents of an origin about itself alone [S317]", () => {
  const entry = (resource: string, more = {}) => ({ resource, type: "http", accepts: [option], ...more })
  const named = readManifest(
    {
      items: [
        entry("/a"),
        entry(`${base}/b`, { operations: [{ method: "GET" }, { method: "POST", accepts: [] }, { method: "BREW" }] }),
        entry("https://elsewhere.example.com/x"),
        entry("https://shop.example.com.evil.example.com/x"),
        entry("/tool", { toolName: "add" }),
        7,
        {}
      ]
    },
    base
  )
  expect(named.map(({ offers, resource, type }) => [type, resource, offers.length])).toEqual([
    ["http", `${base}/a`, 1],
    ["http", `${base}/b`, 1],
    ["mcp", `${base}/tool`, 0]
  ])
  const paths = {
    "/paid": { get: { "x-payment-info": { price: "0.01" } }, post: {} },
    "/of/{id}": { get: { "x-payment-info": {} } },
    "/free": { get: {} }
  }
  expect(readOpenApi({ paths }, base)).toEqual([
    { type: "http", resource: `${base}/paid`, toolName: "", method: "GET", offers: [] }
  ])
  for (const document of [undefined, null, [], "x", { resources: 7 }, { paths: [] }])
    expect([...readManifest(document, base), ...readOpenApi(document, base)]).toEqual([])
})
