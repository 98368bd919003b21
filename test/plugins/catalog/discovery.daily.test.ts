// Discovery over one facilitator: filters, paging, states.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { eventually } from "../../support/eventually.ts"
import { browse, declaring, explain, type Json, mcpDeclaration, resolve, verified } from "./support.ts"

const nativeXlm = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
const operatorKey = "ops:operator-key-0123456789"

interface Shop {
  readonly facilitator: Facilitator
  readonly sellers: ReadonlyArray<string>
}

class World extends Context.Service<World, Shop>()("test/World") {}

const open = (database: (typeof databaseKinds)[number]) =>
  Layer.effect(
    World,
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({
        database,
        set: [
          "plugins=[ledger-local, x402-exact, catalog]",
          "catalog_security.probe_origins=false",
          // A page's ETag changes with the end of its cursor, every third of this: not during one test.
          "discovery.cursor_minutes=1440"
        ],
        environment: { OPERATOR_API_KEYS: operatorKey }
      })
      const payer = yield* facilitator.account()
      const sellers = [(yield* facilitator.account()).publicKey(), (yield* facilitator.account()).publicKey()]
      const list = (url: string, payTo: string, more: Json = {}) =>
        Effect.flatMap(declaring(facilitator, { payer, payTo, url, ...more }), (body) =>
          verified(facilitator, body, more["key"])
        )
      for (let at = 0; at < 7; at++) {
        yield* list(`https://a.example.com/${at}`, sellers[0]!, {
          amount: BigInt(1_000 * (at + 1)),
          network: at % 2 === 0 ? "ledger:testnet" : "stellar:testnet",
          key: at % 2 === 0 ? "catalog" : "bazaar"
        })
      }
      yield* list("https://b.example.com/mcp", sellers[1]!, {
        extension: mcpDeclaration("add"),
        extensions: { "payment-identifier": { info: {} } }
      })
      yield* list("https://b.example.com/xlm", sellers[1]!, { asset: nativeXlm, amount: 5n })
      return { facilitator, sellers }
    })
  )

describe.each(databaseKinds)("discovery on %s", (database) => {
  layer(open(database), { timeout: 240_000, excludeTestServices: true })((it) => {
    it.effect(
      "every filter parameter applies, in either spelling, to the same payment option [S44][S106][S107][S108][S312]",
      () =>
        Effect.gen(function* () {
          const { facilitator, sellers } = yield* World
          const total = (query: string) =>
            Effect.map(browse(facilitator, query), ({ items, pagination }) => {
              expect(pagination.total, query).toBe(items.length)
              return items.length
            })
          expect(yield* total("")).toBe(9)
          expect(yield* total("?type=mcp")).toBe(1)
          expect(yield* total("?type=http")).toBe(8)
          expect(yield* total("?network=ledger:testnet")).toBe(9)
          expect(yield* total("?network=stellar:testnet")).toBe(9)
          expect(yield* total("?network=ledger:pubnet")).toBe(0)
          expect(yield* total("?network=eip155:8453")).toBe(0)
          expect(yield* total("?scheme=exact")).toBe(9)
          expect(yield* total("?scheme=upto")).toBe(0)
          expect(yield* total(`?payTo=${sellers[1]}`)).toBe(2)
          expect(yield* total(`?asset=${testnetUsdc}`)).toBe(8)
          expect(yield* total(`?asset=${testnetUsdc}&maxPrice=3000`)).toBe(4)
          expect(yield* total(`?asset=${nativeXlm}&maxPrice=4`)).toBe(0)
          expect(yield* total(`?asset=${nativeXlm}&payTo=${sellers[0]}`)).toBe(0)
          expect(yield* total("?extensions=payment-identifier")).toBe(0)
          expect(yield* total("?extensions=bazaar")).toBe(9)
          expect(yield* total("?extensions=catalog&type=mcp&scheme=exact")).toBe(1)
          expect(yield* total("?unknown=1&payTo=")).toBe(9)
        })
    )

    it.effect(
      "an invalid filter is refused with one message for each error [S108][S110][S315][S119][S120][S131][S132]",
      () =>
        Effect.gen(function* () {
          const { facilitator } = yield* World
          for (const [query, errors] of [
            ["type=ftp", 1],
            ["maxPrice=1", 1],
            ["maxPrice=01&asset=C", 1],
            ["maxPrice=-1&asset=C", 1],
            ["maxPrice=1e3&asset=C", 1],
            [`maxPrice=${"9".repeat(40)}&asset=C`, 1],
            ["limit=x", 1],
            ["offset=-1", 1],
            ["network=x y", 1],
            ["type=ftp&offset=z&maxPrice=2", 3]
          ] as const) {
            const { json, status } = yield* facilitator.ask(`/discovery/resources?${query}`)
            expect([query, status, json.error, json.details.length]).toEqual([query, 400, "invalid_filter", errors])
          }
          expect((yield* facilitator.ask("/discovery/resource?type=http")).json).toMatchObject({
            error: "invalid_filter"
          })
          expect(
            (yield* facilitator.ask("/discovery/resource?type=mcp&url=https://b.example.com/mcp")).json.details
          ).toEqual(["toolName: required with type=mcp"])
          expect(
            (yield* facilitator.ask("/discovery/resource?type=http&url=https://nowhere.example.com/")).status
          ).toBe(404)
          for (const url of [
            "",
            "%00",
            "nowhere",
            "ftp://nowhere.example.com/",
            "https://me:secret@nowhere.example.com/"
          ]) {
            const { json, status } = yield* facilitator.ask(`/discovery/resource?type=http&url=${url}`)
            expect([url, status, json.details]).toEqual([url, 400, ["url: the URL of the resource"]])
          }
        })
    )

    it.effect("a signed cursor works only with its filters; limits are clamped [S124][S125][S126][S312]", () =>
      Effect.gen(function* () {
        const { facilitator } = yield* World
        const seen: Array<string> = []
        let query = "?limit=2&type=http"
        for (let pages = 0; pages < 10; pages++) {
          const { items, pagination } = yield* browse(facilitator, query)
          expect(pagination).toMatchObject({ limit: 2, total: 8, offset: seen.length })
          seen.push(...items.map(({ resource }: Json) => resource))
          if (pagination.cursor === null) break
          query = `?limit=2&type=http&cursor=${pagination.cursor}`
        }
        expect(seen).toEqual([
          "https://b.example.com/xlm",
          ...[6, 5, 4, 3, 2, 1, 0].map((at) => `https://a.example.com/${at}`)
        ])
        const {
          pagination: { cursor }
        } = yield* browse(facilitator, "?limit=2&type=http")
        const [version, payload, signature] = cursor.split(".")
        const forged = Buffer.from(
          JSON.stringify({ ...JSON.parse(Buffer.from(payload, "base64url").toString()), p: "99:0:8" })
        ).toString("base64url")
        for (const wrong of [
          `${version}.${forged}.${signature}`,
          `${version}.${payload}.AAAA`,
          "c1",
          "x.y.z",
          "c1..",
          "a".repeat(5_000),
          cursor
        ]) {
          const filters = wrong === cursor ? "?limit=2&type=mcp" : "?limit=2&type=http"
          const { json, status } = yield* facilitator.ask(`/discovery/resources${filters}&cursor=${wrong}`)
          expect([status, json.error]).toEqual([400, "invalid_cursor"])
        }
        expect((yield* browse(facilitator, "?limit=5000"))["pagination"].limit).toBe(1_000)
        expect((yield* browse(facilitator, "?limit=0"))["pagination"].limit).toBe(1)
        expect((yield* browse(facilitator, "?offset=7&limit=5"))["items"]).toHaveLength(2)
        expect(yield* browse(facilitator, "?offset=999999999")).toMatchObject({
          items: [],
          pagination: { total: 9, cursor: null }
        })
      })
    )

    it.effect("discovery allows cross-origin browsers and answers 304 when unchanged", () =>
      Effect.gen(function* () {
        const { facilitator } = yield* World
        const first = yield* facilitator.ask("/discovery/resources?limit=1")
        expect(first.headers.get("access-control-allow-origin")).toBe("*")
        const again = yield* facilitator.ask("/discovery/resources?limit=1", {
          headers: { "if-none-match": first.headers.get("etag")! }
        })
        expect([again.status, again.text]).toEqual([304, ""])
        for (const wrong of [
          "/discovery/resources?type=ftp",
          "/discovery/resources?cursor=x",
          "/discovery/resource?type=http&url=https://no.example.com/",
          "/discovery/search?query=a",
          "/discovery/search"
        ]) {
          const { headers, status } = yield* facilitator.ask(wrong)
          expect([
            wrong,
            status >= 400,
            headers.get("access-control-allow-origin"),
            headers.get("cache-control"),
            headers.get("etag")
          ]).toEqual([wrong, true, "*", "no-store", null])
        }
        const head = yield* facilitator.ask("/discovery/resources?limit=1", { method: "HEAD" })
        expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", first.headers.get("etag")])
        const preflight = yield* facilitator.ask("/discovery/resource", { method: "OPTIONS" })
        expect([preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([
          204,
          "GET, HEAD, OPTIONS"
        ])
      })
    )

    it.effect("the ETag depends on filter, page and content, stable for minutes", () =>
      Effect.gen(function* () {
        const { facilitator, sellers } = yield* World
        const tagOf = (query: string, tag?: string) =>
          Effect.map(
            facilitator.ask(
              `/discovery/resources?${query}`,
              tag === undefined ? {} : { headers: { "if-none-match": tag } }
            ),
            ({ headers, status }) => [status, headers.get("etag")!] as const
          )
        const queries = [
          "limit=2",
          "limit=3",
          "limit=2&type=http",
          "limit=2&type=mcp",
          "limit=2&offset=1",
          `limit=2&payTo=${sellers[0]}`
        ]
        const tags = yield* Effect.forEach(queries, (query) => tagOf(query))
        expect(new Set(tags.map(([, tag]) => tag)).size).toBe(queries.length)
        for (const [at, query] of queries.entries()) {
          expect(yield* tagOf(query, tags[(at + 1) % queries.length]![1])).toEqual([200, tags[at]![1]])
          expect((yield* tagOf(query, `W/"other", ${tags[at]![1]}`))[0]).toBe(304)
        }
        yield* verified(
          facilitator,
          yield* declaring(facilitator, {
            payer: yield* facilitator.account(),
            payTo: sellers[0]!,
            url: "https://a.example.com/0",
            amount: 1_001n
          })
        )
        expect((yield* tagOf("limit=20&type=http", tags[0]![1]))[0]).toBe(200)
        expect((yield* tagOf(queries[5]!, tags[5]![1]))[0]).toBe(304)
        expect((yield* tagOf(`limit=20&payTo=${sellers[0]}&type=http`))[0]).toBe(200)
      })
    )

    it.effect(
      "search without a provider answers 503; a malformed query lists its errors [S115][S116][S117][S121][S122][S123][S334]",
      () =>
        Effect.gen(function* () {
          const { facilitator } = yield* World
          const ask = (query: string) =>
            Effect.map(facilitator.ask(`/discovery/search?${query}`), ({ json, status }) => [status, json.error])
          expect(yield* ask("query=weather")).toEqual([503, "search_disabled"])
          expect(yield* ask("")).toEqual([400, "query_required"])
          expect(yield* ask(`query=${"x".repeat(513)}`)).toEqual([400, "query_too_long"])
          for (const wrong of ["limit=0", "limit=201", "offset=-1", "mode=best", "maxPrice=1", "type=x"])
            expect(yield* ask(`query=a&${wrong}`), wrong).toEqual([400, "invalid_filter"])
        })
    )

    it.effect("the OpenAPI document describes discovery", () =>
      Effect.gen(function* () {
        const { facilitator } = yield* World
        const { json } = yield* facilitator.ask("/openapi.json")
        for (const path of [
          "/discovery/resources",
          "/discovery/resource",
          "/discovery/search",
          "/catalog/v1/observations",
          "/catalog/v1/moves"
        ])
          expect(json.paths[path], path).toBeDefined()
        expect((yield* facilitator.ask("/supported")).json.extensions).toContain("catalog")
      })
    )

    it.effect(
      "an operator removes and restores a listing; stale listings revive, with reasons [S98][S99][S100][S113][S290][S291]",
      () =>
        Effect.gen(function* () {
          const { facilitator, sellers } = yield* World
          const url = "https://d.example.com/ages"
          const payer = yield* facilitator.account()
          const body = yield* declaring(facilitator, { payer, payTo: sellers[1]!, url })
          yield* verified(facilitator, body)
          const status = Effect.map(explain(facilitator, url), ({ listings }) => listings[0].status as string)
          yield* facilitator.sql`update catalog_resources set state = 'stale' where resource = ${url}`
          expect((yield* resolve(facilitator, url)).status).toBe(404)
          expect((yield* verified(facilitator, body)).outcome).toEqual({ status: "success" })
          yield* eventually(status, (one) => one === "active")
          expect((yield* resolve(facilitator, url)).json.resource.status).toBe("active")
          const move = (move: string, key = operatorKey.split(":")[1]) =>
            facilitator.ask("/catalog/v1/moves", {
              method: "POST",
              headers: { authorization: `Bearer ${key}` },
              body: JSON.stringify({ url, move, note: "internal reasons" })
            })
          expect((yield* move("remove", "no-such-operator-key")).status).toBe(401)
          expect((yield* move("explode")).status).toBe(400)
          expect((yield* move("remove")).json).toEqual({ resource: url, from: "active", to: "removed" })
          expect((yield* resolve(facilitator, url)).status).toBe(404)
          expect((yield* verified(facilitator, body)).outcome).toEqual({
            status: "rejected",
            rejectedReason: "catalog_unavailable"
          })
          yield* move("restore")
          expect((yield* resolve(facilitator, url)).json.resource.status).toBe("active")
          yield* move("quarantine")
          expect(yield* status).toBe("quarantined")
          const why = yield* explain(facilitator, url)
          expect(why["listings"][0].decisions.map(({ by, move, from, to }: Json) => [by, move, from, to])).toEqual([
            ["operator", "quarantined", "active", "quarantined"],
            ["operator", "restored", "removed", "active"],
            ["operator", "removed", "active", "removed"],
            ["facilitator", "returned", "stale", "active"],
            ["facilitator", "listed", undefined, "active"]
          ])
          expect(JSON.stringify(why)).not.toContain("internal reasons")
        })
    )
  })
})
