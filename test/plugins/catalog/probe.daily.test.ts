// Results of probing an origin: its terms in both protocol versions and in the common document formats, and whether the
// resource still answers 402.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import { option, sellingPage, serve, startOrigin } from "./startOrigin.ts"
import { eventually } from "../../support/eventually.ts"
import {
  bodyDeclaration,
  browse,
  declaring,
  explain,
  type Json,
  mcpDeclaration,
  queryDeclaration,
  resolve,
  verified
} from "./support.ts"
import { catalogWorld, startProbing } from "./catalogWorld.ts"

describe.each(databaseKinds)("a probe of an origin on %s", (database) => {
  it.live(
    "a probe lists the live 402's terms, or else the origin's documents [S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld(startProbing(database))
          const origin = yield* startOrigin
          const page = { payTo, asset: testnetUsdc }
          origin.answers.set(
            "/new",
            sellingPage({
              ...page,
              description: "New",
              declaration: queryDeclaration(),
              extensions: { "offer-receipt": { info: {} }, "payment-identifier": { info: {} } }
            })
          )
          origin.answers.set("/old", sellingPage({ ...page, description: "Old", isOld: true }))
          const tool = mcpDeclaration("add")
          serve(origin, "/.well-known/x402.json", {
            x402Version: 2,
            resources: [
              {
                resource: `${origin.url}/report`,
                type: "http",
                description: "Report",
                accepts: [option(payTo)],
                extensions: { catalog: bodyDeclaration() }
              },
              { resource: "/mcp", type: "mcp", toolName: "add", description: "Adds", accepts: [option(payTo)] },
              {
                resource: "/mcp",
                type: "mcp",
                toolName: "sum",
                description: "Sums",
                accepts: [option(payTo)],
                extensions: { bazaar: { ...tool, info: { input: { ...tool["info"].input, toolName: "sum" } } } }
              }
            ]
          })
          const claim = (path: string, extension: unknown) =>
            Effect.flatMap(
              declaring(facilitator, {
                payer,
                payTo,
                url: `${origin.url}${path}`,
                extension,
                about: { description: "Claimed" }
              }),
              (body) => verified(facilitator, body)
            )
          yield* claim("/new", queryDeclaration({ input: { city: "Claimed" } }))
          yield* claim("/old", queryDeclaration())
          yield* claim("/report", bodyDeclaration())
          yield* claim("/mcp", mcpDeclaration("sum"))
          yield* claim("/alone", bodyDeclaration())
          const ofOrigin = (path: string, toolName?: string) =>
            Effect.map(
              eventually(
                resolve(facilitator, `${origin.url}${path}`, toolName),
                ({ json }) => json.resource?.grade === "origin"
              ),
              ({ json }) => json.resource as Json
            )
          const fresh = yield* ofOrigin("/new")
          expect(fresh).toMatchObject({ description: "New", ownership: "proven", uptime: 1 })
          expect(fresh["extensions"].catalog.info.input.queryParams).toEqual({ city: "Riga" })
          expect(Object.keys(fresh["extensions"]).sort()).toEqual(["catalog", "offer-receipt"])
          expect(Date.parse(fresh["lastLookAt"])).toBeGreaterThan(0)
          expect(yield* ofOrigin("/old")).toMatchObject({ description: "Old", mimeType: "text/plain" })
          expect(yield* ofOrigin("/report")).toMatchObject({ description: "Report", operations: [{ method: "POST" }] })
          expect(yield* ofOrigin("/mcp", "sum")).toMatchObject({ description: "Sums" })
          const alone = yield* eventually(explain(facilitator, `${origin.url}/alone`), ({ listings }) =>
            Boolean(listings[0].lastLook)
          )
          expect(alone["listings"][0]).toMatchObject({ grade: "claimed", lastLook: "well-known 404" })
          expect(alone["listings"][0].raisedBy).toContain("/catalog/v1/challenge")
          expect(origin.asked.every((line) => /^(GET|HEAD) /.test(line))).toBe(true)
        })
      ),
    240_000
  )

  it.live(
    "two probes without a 402 make a listing stale until one succeeds",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startProbing(database)
          const origin = yield* startOrigin
          const url = `${origin.url}/page`
          const payer = yield* facilitator.account()
          const payTo = (yield* facilitator.account()).publicKey()
          const alive = sellingPage({ payTo, asset: testnetUsdc, description: "Page", declaration: queryDeclaration() })
          origin.answers.set("/page", alive)
          const body = yield* declaring(facilitator, { payer, payTo, url })
          yield* verified(facilitator, body)
          const probe = facilitator.sql`update catalog_probes set due_at = now()`
          const listing = Effect.map(explain(facilitator, url), ({ listings }) => listings[0] as Json)
          const until = (status: string, reason?: string) =>
            eventually(Effect.andThen(probe, listing), (one) => one["status"] === status && one["reason"] === reason)
          yield* eventually(listing, (one) => one["grade"] === "origin")
          for (const [answer, reason] of [
            [{ status: 404 }, "not_found"],
            [{ status: 200, body: {} }, "no_payment_required"]
          ] as const) {
            origin.answers.set("/page", answer)
            expect(yield* until("stale", reason)).toMatchObject({ status: "stale", reason })
            expect((yield* resolve(facilitator, url)).status).toBe(404)
            // No payer's payment revives a resource that its origin does not serve.
            yield* facilitator.verify(body)
            yield* facilitator.settle(body)
            expect((yield* listing)["status"]).toBe("stale")
            origin.answers.set("/page", alive)
            expect(yield* until("active")).toMatchObject({ status: "active" })
          }
          const shown = (yield* resolve(facilitator, url)).json.resource
          expect(shown.uptime).toBeGreaterThan(0)
          expect(shown.uptime).toBeLessThan(1)
          const moves = (yield* listing)["decisions"].map(({ move, reason }: Json) => `${move} ${reason}`)
          expect(moves).toEqual(
            expect.arrayContaining([
              "went_stale not_found",
              "went_stale no_payment_required",
              "returned origin_answers"
            ])
          )
        })
      ),
    240_000
  )

  it.live(
    "a requested probe lists a new seller unverified, once a minute",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startProbing(database, "discovery.include_unverified=true")
          const origin = yield* startOrigin
          const payTo = (yield* facilitator.account()).publicKey()
          serve(origin, "/.well-known/x402", {
            payTo,
            resources: [{ resource: "/own", accepts: [option(payTo)], description: "Own" }],
            delist: ["/hidden"]
          })
          serve(origin, "/.well-known/x402.json", {
            items: [
              { resource: `${origin.url}/item`, type: "http", accepts: [option(payTo, "5")] },
              { resource: `${origin.url}/hidden`, type: "http", accepts: [option(payTo)] },
              { resource: "https://elsewhere.example.com/x", type: "http", accepts: [option(payTo)] }
            ]
          })
          serve(origin, "/openapi.json", {
            openapi: "3.1.0",
            paths: {
              "/priced": { get: { summary: "Priced", "x-payment-info": { protocols: ["x402"], price: "0.01" } } },
              "/free": { get: { summary: "Free" } },
              "/posted": {
                post: {
                  summary: "Posted",
                  "x-payment-info": { protocols: ["x402"], price: { mode: "fixed", currency: "USD", amount: "0.02" } }
                }
              }
            }
          })
          const page = sellingPage({
            payTo,
            asset: testnetUsdc,
            description: "Priced",
            declaration: queryDeclaration()
          })
          origin.answers.set("/priced", page)
          const ask = (given: string) =>
            facilitator.ask(`/catalog/v1/look?origin=${encodeURIComponent(given)}`, { method: "POST" })
          const answer = yield* ask(origin.url)
          expect(answer.json).toMatchObject({ origin: origin.url, named: 5, listed: 4 })
          // For unlisted entries it gives the reason.
          expect(answer.json.unlisted).toEqual([
            { resource: `${origin.url}/hidden`, reason: "delisted" },
            { resource: "https://elsewhere.example.com/x", reason: "other_origin" }
          ])
          const items = (yield* browse(facilitator))["items"] as ReadonlyArray<Json>
          expect(items.map(({ resource }) => resource.slice(origin.url.length)).sort()).toEqual([
            "/item",
            "/own",
            "/posted",
            "/priced"
          ])
          const posted = items.find(({ resource }) => resource.endsWith("/posted"))
          expect(posted).toMatchObject({
            description: "Posted",
            operations: [{ method: "POST" }],
            accepts: [{ scheme: "exact", amount: "200000", asset: testnetUsdc, payTo }]
          })
          for (const one of items)
            expect(one).toMatchObject({ verification: "unverified", grade: "origin", ownership: "proven" })
          expect((yield* ask(origin.url)).status).toBe(429)
          expect((yield* ask("javascript:alert(1)")).status).toBe(400)
          // The first payment for it marks it as payment observed.
          const payer = yield* facilitator.account()
          yield* facilitator.verify(yield* declaring(facilitator, { payer, payTo, url: `${origin.url}/item` }))
          const paid = yield* eventually(
            resolve(facilitator, `${origin.url}/item`),
            ({ json }) => json.resource.verification === "payment_observed"
          )
          expect(paid.json.resource).toMatchObject({ grade: "origin", accepts: [{ amount: "5" }] })
          const closed = yield* startProbing(database, "catalog_security.allow_local_origins=false")
          const inside = yield* closed.ask(`/catalog/v1/look?origin=${encodeURIComponent(origin.url)}`, {
            method: "POST"
          })
          expect(inside.status).toBe(400)
        })
      ),
    240_000
  )
})
