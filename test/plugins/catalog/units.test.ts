// The catalog's pure parts: the version hash and its published vector, cursors, ownership, templates, fusion.
import { expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Terms } from "../../../kernel/payment/Payment.ts"
import type { CatalogValues } from "../../../plugins/catalog/Config.ts"
import { readDeclaration } from "../../../plugins/catalog/declaration/DeclarationWire.ts"
import { matchesTemplate, readTemplate, spellResourceUrl } from "../../../plugins/catalog/declaration/resourceUrl.ts"
import { cursorsOf } from "../../../plugins/catalog/discovery/Cursors.ts"
import { fingerprintOf } from "../../../plugins/catalog/discovery/filters.ts"
import { decideOwnership, type OwnershipState } from "../../../plugins/catalog/ownership/decideOwnership.ts"
import { readLive402, readWellKnown } from "../../../plugins/catalog/ownership/OriginWire.ts"
import { mergeDeclaration } from "../../../plugins/catalog/store/mergeDeclaration.ts"
import { encodeBody, versionHash } from "../../../plugins/catalog/store/ResourceWire.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import vector from "./versionHash.json" with { type: "json" }

const withCrypto = <A>(use: (crypto: Crypto["Service"]) => A) =>
  Effect.provide(Effect.map(Crypto, use), NodeCrypto.layer)

const reading = {
  metadataBytesMax: 131_072,
  schemaBytesMax: 65_536,
  exampleBytesMax: 16_384,
  requireHttpsOrigins: true,
  allowLocalOrigins: false
} as CatalogValues

describe("the version hash", () => {
  it.effect("any client computes the published vector's hash from the public resource [S194][S310]", () =>
    withCrypto((crypto) => {
      expect(createHash("sha256").update(vector.canonical).digest("hex")).toBe(vector.resource.versionHash)
      expect(versionHash(crypto, vector.resource)).toBe(vector.resource.versionHash)
    })
  )

  it.effect("the published vector's version hash leaves out buyer extensions [S194][S310]", () =>
    withCrypto((crypto) => {
      const { accepted, extensions, resource } = vector.payment
      const terms = {
        ...accepted,
        network: "ledger:testnet" as const,
        amount: Option.some(1_000n),
        amountText: accepted.amount
      }
      const declaration = readDeclaration({ dialect: "ledger", resource, terms }, "catalog", extensions.catalog, {
        config: { ...reading, requireValidSchema: false },
        validate: () => undefined
      })
      if ("_tag" in declaration) throw new Error(declaration.detail)
      const { identity, kept, options } = mergeDeclaration(undefined, declaration, "claimed")
      expect(versionHash(crypto, encodeBody(identity, kept, options))).toBe(vector.resource.versionHash)
      expect(Object.keys(extensions)).toContain("payment-identifier")
    })
  )

  it.effect("the version hash changes with declared fields and options alone [S310]", () =>
    withCrypto((crypto) => {
      const { resource } = vector
      const [option] = resource.accepts
      const changed = [
        { ...resource, description: "Other" },
        { ...resource, tags: ["a"] },
        { ...resource, accepts: [{ ...option, amount: "1001" }] },
        { ...resource, accepts: [{ ...option, extra: { areFeesSponsored: false } }] },
        { ...resource, extensions: { ...resource.extensions, "payment-identifier": {} } },
        { ...resource, operations: [] }
      ]
      const hashes = [resource, ...changed].map((one) => versionHash(crypto, one))
      expect(new Set(hashes).size).toBe(hashes.length)
      const same = {
        ...resource,
        lastUpdated: "x",
        status: "stale",
        verification: "unverified",
        ownership: "proven",
        grade: "origin",
        settlements: 9,
        payers: 9,
        lastSettledAt: "w",
        priceChangedAt: "v",
        lastLookAt: "z",
        uptime: 1,
        versionHash: "y"
      }
      expect(versionHash(crypto, same)).toBe(hashes[0])
      expect(versionHash(crypto, Object.fromEntries(Object.entries(resource).reverse()))).toBe(hashes[0])
    })
  )
})

describe("a tool's declaration", () => {
  const terms = { ...vector.payment.accepted, amount: Option.some(1n), amountText: "1" } as unknown as Terms
  /** The input that the schema is compared with, and the name under which the tool is listed. */
  const readInput = (input: object) => {
    const compared: Array<unknown> = []
    const read = readDeclaration(
      { dialect: "ledger", resource: { url: "https://calculator.example.com/" }, terms },
      "catalog",
      { info: { input: { inputSchema: {}, ...input } }, schema: {} },
      {
        config: { ...reading, requireValidSchema: false },
        validate: (info) => void compared.push((info as { readonly input: unknown }).input)
      }
    )
    return [compared[0], "_tag" in read ? read.reason : read.identity.toolName]
  }

  it("a tool under its legacy member is validated and listed as toolName", () => {
    const add = { type: "mcp", inputSchema: {}, toolName: "add" }
    expect(readInput({ type: "mcp", tool: "add" })).toEqual([add, "add"])
    expect(readInput({ type: "mcp", toolName: "add" })).toEqual([add, "add"])
    expect(readInput({ type: "mcp", toolName: "add", tool: "old" })).toEqual([{ ...add, tool: "old" }, "add"])
    expect(readInput({ type: "mcp" })).toEqual([undefined, "missing_tool_name"])
    const http = { type: "http", method: "GET", inputSchema: {}, tool: "add" }
    expect(readInput(http)).toEqual([http, ""])
  })
})

it("a tool's input schema and example may have the maximum of bytes, and none more", () => {
  const terms = { ...vector.payment.accepted, amount: Option.some(1n), amountText: "1" } as unknown as Terms
  const sized = (bytes: number) => ({ title: "x".repeat(bytes - `{"title":""}`.length) })
  const read = (schemaBytes: number, exampleBytes: number) =>
    readDeclaration(
      { dialect: "ledger", resource: { url: "https://calculator.example.com/" }, terms },
      "catalog",
      {
        info: {
          input: { type: "mcp", toolName: "add", inputSchema: sized(schemaBytes), example: sized(exampleBytes) }
        },
        schema: {}
      },
      { config: { ...reading, requireValidSchema: false }, validate: () => undefined }
    )
  const { exampleBytesMax, schemaBytesMax } = reading
  expect(read(schemaBytesMax, exampleBytesMax)).not.toHaveProperty("reason")
  expect(read(schemaBytesMax + 1, exampleBytesMax)).toMatchObject({ reason: "metadata_too_large" })
  expect(read(schemaBytesMax, exampleBytesMax + 1)).toMatchObject({ reason: "metadata_too_large" })
})

describe("a cursor", () => {
  const payload = { snapshot: 9_007_199_254_740_993n, position: "5:20:100", fingerprint: "f" }
  const secret = (text: string) => new TextEncoder().encode(text)
  const make = (...secrets: ReadonlyArray<string>) => withCrypto((crypto) => cursorsOf(secrets.map(secret), crypto, 15))

  it.effect("a cursor opens for its fingerprint until expiry on every replica [S124][S125][S126]", () =>
    Effect.gen(function* () {
      const cursors = yield* make("one")
      const cursor = yield* cursors.seal(payload)
      expect(yield* (yield* make("one")).open(cursor, "f")).toEqual(Option.some(payload))
      expect(yield* cursors.open(cursor, "other")).toEqual(Option.none())
      expect(yield* (yield* make("two")).open(cursor, "f")).toEqual(Option.none())
      expect(yield* (yield* make("two", "one")).open(cursor, "f")).toEqual(Option.some(payload))
      yield* TestClock.adjust("16 minutes")
      expect(yield* cursors.open(cursor, "f")).toEqual(Option.none())
    })
  )

  it.effect("a cursor is stable for minutes and valid for at least ten", () =>
    Effect.gen(function* () {
      const cursors = yield* make("one")
      yield* TestClock.setTime(Date.parse("2031-03-01T00:00:01Z"))
      const cursor = yield* cursors.seal(payload)
      yield* TestClock.adjust("4 minutes")
      expect(yield* cursors.seal(payload)).toBe(cursor)
      yield* TestClock.adjust("1 minute")
      const later = yield* cursors.seal(payload)
      expect(later).not.toBe(cursor)
      for (let minute = 0; minute < 4; minute++) yield* TestClock.adjust("1 minute")
      const late = yield* cursors.seal(payload)
      expect(late).toBe(later)
      yield* TestClock.adjust("10 minutes")
      expect(yield* cursors.open(late, "f")).toEqual(Option.some(payload))
      yield* TestClock.adjust("5 minutes")
      expect(yield* cursors.open(late, "f")).toEqual(Option.none())
    })
  )

  it("a cursor is bound to its filters' meaning, not their order", () => {
    expect(fingerprintOf({ type: "http", scheme: "exact" })).toBe(fingerprintOf({ scheme: "exact", type: "http" }))
    expect(fingerprintOf({ asset: "C", maxPrice: 1n })).not.toBe(fingerprintOf({ asset: "C", maxPrice: 2n }))
  })
})

describe("ownership", () => {
  const claimed: OwnershipState = {
    state: "active",
    reason: null,
    ownership: "provisional",
    payTos: ["A"],
    claimants: ["B", "C"]
  }
  const word = (payTos: ReadonlyArray<string>, delisted = false) => ({ payTos, delisted })

  it.each([
    ["no statement decides nothing", claimed, word([]), { _tag: "Nothing" }],
    ["a statement for the owner proves it", claimed, word(["A", "B"]), { _tag: "Proven", payTos: ["A", "B"] }],
    [
      "the same word again decides nothing",
      { ...claimed, ownership: "proven" as const },
      word(["A"]),
      { _tag: "Nothing" }
    ],
    [
      "a statement for a claimant displaces the owner",
      claimed,
      word(["C"]),
      { _tag: "Displaced", by: "C", payTos: ["C"] }
    ],
    [
      "even a proven one",
      { ...claimed, ownership: "proven" as const },
      word(["B"]),
      { _tag: "Displaced", by: "B", payTos: ["B"] }
    ],
    ["a statement for a stranger contradicts", claimed, word(["D"]), { _tag: "Contradicted", payTos: ["D"] }],
    ["a request to delist takes precedence", claimed, word(["A"], true), { _tag: "Removed" }],
    ["a removed listing stays removed", { ...claimed, state: "removed" as const }, word(["B"]), { _tag: "Nothing" }]
  ])("%s [S317]", (_, given, said, verdict) => expect(decideOwnership(given, said)).toEqual(verdict))

  const a = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
  const identity = {
    type: "mcp" as const,
    resource: "https://x.example.com/mcp",
    toolName: "add",
    origin: "https://x.example.com"
  }
  const base = "https://x.example.com"

  it("ownership is read from documents of several shapes, never malformed ones", () => {
    expect(readWellKnown({ payTo: a }, identity, base)).toEqual(word([a]))
    expect(readWellKnown({ payTo: [a, a, 7, "x"], resources: ["https://x.example.com/mcp"] }, identity, base)).toEqual(
      word([a])
    )
    expect(
      readWellKnown({ payTo: "G", resources: [{ resource: "/mcp", toolName: "add", payTo: a }] }, identity, base)
    ).toEqual(word([a]))
    expect(
      readWellKnown({ resources: [{ resource: "/mcp", toolName: "subtract", payTo: a }] }, identity, base)
    ).toEqual(word([]))
    expect(readWellKnown({ delist: [{ resource: "/mcp", toolName: "add" }] }, identity, base)).toEqual(word([], true))
    for (const document of [undefined, null, [], "x", { payTo: {} }, { resources: 7, delist: "x" }])
      expect(readWellKnown(document, identity, base)).toEqual(word([]))
    const live = (status: number, accepts: unknown) =>
      readLive402({ status, headers: {}, body: new TextEncoder().encode(JSON.stringify({ accepts })) })
    expect(
      live(402, [
        { network: "stellar:testnet", payTo: a },
        { network: "eip155:1", payTo: "0x" }
      ])
    ).toEqual(word([a]))
    expect(live(200, [{ network: "stellar:testnet", payTo: a }])).toEqual(word([]))
    expect(live(402, "x")).toEqual(word([]))
  })
})

describe("the URL of a resource", () => {
  it.each([
    ["HTTPS://Shop.Example.COM:443/a?b#c", "https://shop.example.com/a"],
    ["https://shop.example.com", "https://shop.example.com/"],
    ["https://shop.example.com:8443/%7euser/%c3%a9", "https://shop.example.com:8443/~user/%C3%A9"],
    ["https://shop.example.com/users/:id", "https://shop.example.com/users/:id"]
  ])("%s is listed as %s [S31][S40]", (url, listed) => expect(spellResourceUrl("http", url)?.resource).toBe(listed))

  it("a symbolic name is kept as it is, without an origin [S42]", () => {
    expect(spellResourceUrl("mcp", "mcp://calculator/add?x")).toEqual({
      resource: "mcp://calculator/add",
      origin: undefined
    })
    expect(spellResourceUrl("http", "mcp://calculator/add")).toBeUndefined()
  })

  it("the URL of a dynamic route is identified by its template", () => {
    expect(readTemplate("/users/[id]/files/*")).toBe("/users/:id/files/:var1")
    expect(matchesTemplate("/users/:id", "/users/7")).toBe(true)
    expect(matchesTemplate("/users/:id", "/users/")).toBe(false)
    expect(matchesTemplate("/users/:id", "/users/7/x")).toBe(false)
    expect(matchesTemplate("/files/v:version", "/files/v2")).toBe(true)
  })
})
