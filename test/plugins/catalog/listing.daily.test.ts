import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import {
  bindRecipients,
  bodyDeclaration,
  browse,
  declaring,
  explain,
  mcpDeclaration,
  outcomes,
  queryDeclaration,
  resolve,
  sellerKey,
  verified,
  withKey
} from "./support.ts"
import { catalogWorld } from "./catalogWorld.ts"

describe.each(databaseKinds)("listing on %s", (database) => {
  it.live(
    "a verified payment's declaration is listed and published in every public form [S9][S17][S18][S22][S23][S31][S33][S34][S35][S36][S37][S38][S39][S40][S79][S306]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld({
            database,
            set: ["catalog_security.probe_origins=false"]
          })
          const body = yield* declaring(facilitator, {
            payer,
            payTo,
            url: "https://Weather.Example.com/v1/weather?city=Riga#top",
            about: {
              description: "Weather of a city",
              serviceName: "Weather",
              tags: ["weather", "Weather", "city"],
              mimeType: "application/json"
            },
            extensions: {
              "payment-identifier": { info: { required: false, id: "pay_0123456789abcdef0123456789abcdef" } }
            }
          })
          expect((yield* browse(facilitator)).items).toEqual([])
          const { answer, outcome } = yield* verified(facilitator, body)
          expect(outcome).toEqual({ status: "success" })
          expect(answer.json.isValid).toBe(true)
          const page = yield* browse(facilitator)
          expect(page["pagination"]).toEqual({ limit: 20, offset: 0, total: 1, cursor: null })
          expect(page["x402Version"]).toBe(2)
          const [item] = page["items"]
          expect(item).toMatchObject({
            resource: "https://weather.example.com/v1/weather",
            type: "http",
            x402Version: 2,
            description: "Weather of a city",
            serviceName: "Weather",
            tags: ["weather", "city"],
            mimeType: "application/json",
            status: "active",
            verification: "payment_observed",
            ownership: "provisional"
          })
          expect(item.accepts).toEqual([body.paymentRequirements])
          expect(item.extensions).toEqual({
            catalog: { info: queryDeclaration()["info"], schema: queryDeclaration()["schema"] }
          })
          expect(item.lastUpdated).toMatch(/^\d{4}-\d\d-\d\dT/)
          expect(item.versionHash).toMatch(/^[0-9a-f]{64}$/)
          expect(JSON.stringify(page)).not.toMatch(/pay_0123|"id"|provenance|first_seen|principal/)
          const resolved = yield* resolve(facilitator, "https://weather.example.com/v1/weather?city=Oslo")
          expect(resolved.json).toEqual({ x402Version: 2, resource: item })
          const settled = yield* facilitator.settle(body)
          expect(settled.json.success, settled.text).toBe(true)
          expect(outcomes(settled)?.["catalog"].status).toBe("success")
          const paid = yield* eventually(browse(facilitator), ({ items }) => items[0].settlements === 1)
          expect(item.evidence).toEqual({ words: "claimed", recipient: "claimed", weight: "none" })
          const evidence = { words: "paid", recipient: "paid", weight: "young" }
          const sold = { settlements: 1, payers: 1, lastSettledAt: expect.any(String) }
          expect(paid["items"]).toEqual([{ ...item, evidence, ...sold }])
        })
      ),
    240_000
  )

  it.live(
    "methods share one resource, tools have their own, routes list once [S32][S41][S42][S111][S112]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = withKey(
            yield* startFacilitator({
              database,
              set: ["catalog_security.probe_origins=false"],
              environment: { FACILITATOR_API_KEYS: sellerKey }
            })
          )
          const payer = yield* facilitator.account()
          const payTo = (yield* facilitator.account()).publicKey()
          yield* bindRecipients(facilitator, [payTo])
          const declare = (options: { url: string; extension: unknown; key?: string; network?: string }) =>
            Effect.flatMap(declaring(facilitator, { payer, payTo, ...options }), (body) =>
              verified(facilitator, body, options.key)
            )
          yield* declare({ url: "https://a.example.com/report", extension: queryDeclaration() })
          yield* declare({ url: "https://a.example.com/report", extension: bodyDeclaration() })
          const report = (yield* resolve(facilitator, "https://a.example.com/report")).json.resource
          expect(report.operations.map(({ method }: { method: string }) => method)).toEqual(["GET", "POST"])
          expect(report.accepts).toHaveLength(1)
          for (const tool of ["add", "subtract"])
            yield* declare({
              url: "https://a.example.com/mcp",
              extension: mcpDeclaration(tool),
              key: "bazaar",
              network: "stellar:testnet"
            })
          yield* declare({ url: "mcp://calculator/add", extension: mcpDeclaration("add") })
          const add = (yield* resolve(facilitator, "https://a.example.com/mcp", "add")).json.resource
          expect(add).toMatchObject({
            type: "mcp",
            resource: "https://a.example.com/mcp",
            toolName: "add",
            description: "Adds two numbers"
          })
          expect(add.accepts[0].network).toBe("stellar:testnet")
          expect(Object.keys(add.extensions)).toEqual(["bazaar"])
          expect((yield* resolve(facilitator, "mcp://calculator/add", "add")).json.resource.resource).toBe(
            "mcp://calculator/add"
          )
          expect((yield* resolve(facilitator, "https://a.example.com/mcp", "divide")).status).toBe(404)
          for (const id of ["7", "8"]) {
            yield* declare({
              url: `https://a.example.com/users/${id}`,
              extension: queryDeclaration({ routeTemplate: "/users/:id", inputMore: { pathParams: { id } } })
            })
          }
          const user = (yield* resolve(facilitator, "https://a.example.com/users/9")).json.resource
          expect(user).toMatchObject({ resource: "https://a.example.com/users/:id", routeTemplate: "/users/:id" })
          expect(JSON.stringify(user.extensions.catalog.info)).not.toContain("pathParams")
          expect((yield* explain(facilitator, "https://a.example.com/users/7")).listings[0].version).toBe(1)
          const { items, pagination } = yield* browse(facilitator)
          expect(pagination.total).toBe(5)
          expect(new Set(items.map(({ resource, toolName }: any) => `${resource} ${toolName}`)).size).toBe(5)
          expect((yield* resolve(facilitator, "https://a.example.com/other")).json).toEqual({ error: "not_found" })
        })
      ),
    240_000
  )
})
