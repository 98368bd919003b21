// The origin route `look` over HTTP: its answers about unlisted entries, and new probes of the origin's listings, so
// that a seller that was down, or was declared with another method, is listed as it answers.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { Network } from "../../../kernel/config/Network.ts"
import { moveText } from "../../../plugins/catalog/ownership/OriginMoves.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import type { Facilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { catalogWorld, startProbing } from "./catalogWorld.ts"
import { option, type Origin, sellingPage, serve, startOrigin } from "./startOrigin.ts"
import { bodyDeclaration, declaring, explain, type Json, queryDeclaration, resolve, verified } from "./support.ts"

const look = (facilitator: Facilitator, { url }: Origin) =>
  Effect.map(
    facilitator.ask(`/catalog/v1/look?origin=${encodeURIComponent(url)}`, { method: "POST" }),
    ({ json }) => json as Json
  )

describe.each(databaseKinds)("a look on %s", (database) => {
  it.live(
    "names entries of other origins and those without a URL, once each and bounded",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startProbing(database)
          const [origin, many] = [yield* startOrigin, yield* startOrigin]
          const payTo = (yield* facilitator.account()).publicKey()
          const accepts = [option(payTo)]
          const elsewhere = "https://elsewhere.example.com/x"
          serve(origin, "/.well-known/x402", { resources: [{ resource: "/own", accepts }, elsewhere, { accepts: [] }] })
          serve(origin, "/.well-known/x402.json", { items: [{ resource: elsewhere, accepts }] })
          serve(origin, "/openapi.json", {
            servers: [{ url: "https://api.example.com/v1" }],
            paths: { "/paid": { get: { "x-payment-info": {} }, post: { "x-payment-info": {} } } }
          })
          expect(yield* look(facilitator, origin)).toMatchObject({
            named: 1,
            listed: 1,
            unlisted: [
              { resource: elsewhere, reason: "other_origin" },
              { resource: '{"accepts":[]}', reason: "unreadable_url" },
              { resource: "https://api.example.com/v1/paid", reason: "other_origin" }
            ]
          })
          serve(many, "/.well-known/x402", {
            resources: Array.from({ length: 150 }, (_, index) => `https://elsewhere.example.com/${index}`)
          })
          const { listed, named, unlisted } = yield* look(facilitator, many)
          expect([named, listed, unlisted.length]).toEqual([0, 0, 100])
        })
      ),
    240_000
  )

  it.live(
    "returns a stale listing of the origin that answers again",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld(startProbing(database))
          const [origin, other] = [yield* startOrigin, yield* startOrigin]
          const url = `${origin.url}/page`
          const alive = sellingPage({ payTo, asset: testnetUsdc, description: "Page", declaration: queryDeclaration() })
          const statusOf = (url: string) => Effect.map(explain(facilitator, url), ({ listings }) => listings[0] as Json)
          const declare = (url: string) =>
            Effect.flatMap(declaring(facilitator, { payer, payTo, url }), (body) => verified(facilitator, body))
          for (const one of [origin, other]) {
            one.answers.set("/page", alive)
            yield* declare(`${one.url}/page`)
          }
          yield* eventually(statusOf(url), (one) => one["grade"] === "origin")
          origin.answers.delete("/page")
          const probe = facilitator.sql`update catalog_probes set due_at = now()`
          yield* eventually(Effect.andThen(probe, statusOf(url)), (one) => one["status"] === "stale")
          origin.answers.set("/page", alive)
          const dueAt = facilitator.sql<{ origin: string; soon: boolean }>`select r.origin,
              p.due_at < now() + interval '1 minute' as soon
            from catalog_probes p join catalog_resources r on r.id = p.resource_id`
          // Nothing is due before tomorrow; the request schedules probes only for its origin's listings.
          yield* facilitator.sql`update catalog_probes set due_at = now() + interval '1 day', leased_until = null`
          expect((yield* dueAt).map(({ soon }) => soon)).toEqual([false, false])
          expect(yield* look(facilitator, origin)).toMatchObject({ named: 0, listed: 0, probedAgain: 1, unlisted: [] })
          yield* eventually(statusOf(url), (one) => one["status"] === "active")
          expect((yield* resolve(facilitator, url)).status).toBe(200)
          expect((yield* dueAt).filter(({ origin }) => origin === other.url)).toEqual([
            { origin: other.url, soon: false }
          ])
          // Listings removed by an operator or the origin are not probed.
          yield* facilitator.sql`update catalog_resources set state = 'removed' where origin = ${other.url}`
          expect((yield* look(facilitator, other))["probedAgain"]).toBe(0)
        })
      ),
    240_000
  )

  it.live(
    "corrects a method that the origin's documents contradict",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld(startProbing(database))
          const origin = yield* startOrigin
          const page = sellingPage({ payTo, asset: testnetUsdc, description: "Page", declaration: queryDeclaration() })
          const only = (method: string, answer: Json) => (request: { readonly method?: string | undefined }) =>
            request.method === method ? (answer as typeof page) : { status: 405 }
          origin.answers.set("/got", only("GET", page))
          origin.answers.set("/read", only("GET", page))
          origin.answers.set("/posted", only("POST", page))
          const methodsOf = (path: string) =>
            Effect.map(resolve(facilitator, origin.url + path), ({ json }) => {
              const operations = json.resource.operations as ReadonlyArray<Json> | undefined
              return [json.resource.grade, ...(operations ?? []).map(({ method }) => method)].join(" ")
            })
          for (const [path, extension] of [
            ["/got", bodyDeclaration()],
            ["/read", queryDeclaration({ method: "HEAD" })],
            ["/posted", queryDeclaration()]
          ] as const) {
            const body = yield* declaring(facilitator, { payer, payTo, url: origin.url + path, extension })
            yield* verified(facilitator, body)
            yield* eventually(explain(facilitator, origin.url + path), ({ listings }) => Boolean(listings[0].lastLook))
          }
          expect(yield* methodsOf("/got")).toBe("claimed POST")
          serve(origin, "/.well-known/x402", {
            resources: [
              { resource: "/got", method: "GET" },
              { resource: "/posted", method: "POST", accepts: [option(payTo)] }
            ]
          })
          serve(origin, "/openapi.json", {
            paths: { "/read": { get: { "x-payment-info": { protocols: ["x402"], price: "0.01" } } } }
          })
          yield* facilitator.sql`update catalog_probes set due_at = now() + interval '1 day', leased_until = null`
          expect(yield* look(facilitator, origin)).toMatchObject({ named: 3, listed: 0, probedAgain: 3 })
          yield* eventually(methodsOf("/got"), (found) => found === "origin GET")
          yield* eventually(methodsOf("/read"), (found) => found === "origin GET")
          yield* eventually(methodsOf("/posted"), (found) => found === "origin POST")
          // No method with an effect is ever requested.
          expect(origin.asked.every((line) => /^(GET|HEAD) /.test(line))).toBe(true)
        })
      ),
    240_000
  )

  it.live(
    "moves a seller's listing by its signature, never by a redirect",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startProbing(database)
          const [payer, seller, stranger] = yield* Effect.all([1, 2, 3].map(() => facilitator.account()))
          const payTo = seller!.publicKey()
          const [old, next, other] = [yield* startOrigin, yield* startOrigin, yield* startOrigin]
          const page = sellingPage({ payTo, asset: testnetUsdc, description: "Page", declaration: queryDeclaration() })
          old.answers.set("/page", page)
          next.answers.set("/page", page)
          const [at, moved] = [`${old.url}/page`, `${next.url}/page`]
          yield* verified(facilitator, yield* declaring(facilitator, { payer: payer!, payTo, url: at }))
          const gradeOf = (url: string) =>
            Effect.map(resolve(facilitator, url), ({ json, status }) => [status, json.resource?.grade].join(" "))
          yield* eventually(gradeOf(at), (found) => found === "200 origin")
          const network = Context.get(facilitator.services as Context.Context<Network>, Network).id
          const movedFrom = (to: string, by: Keypair) => {
            const move = { from: old.url, to, payTo, signedAt: new Date().toISOString() }
            const text = `Stellar Signed Message:\n${moveText(move, network)}`
            const signature = by.sign(createHash("sha256").update(text).digest())
            return [{ ...move, origin: old.url, signature: Buffer.from(signature).toString("base64") }]
          }
          const wellKnown = "/.well-known/x402"
          // A stranger has the old origin's redirects, and the seller's account without the old origin.
          const location = `${other.url}${wellKnown}`
          old.answers.set(wellKnown, { status: 308, headers: { location } })
          old.answers.set("/page", { status: 308, headers: { location: `${other.url}/page` } })
          serve(other, wellKnown, { payTo, movedTo: other.url, movedFrom: movedFrom(other.url, seller!) })
          expect(yield* look(facilitator, other)).toMatchObject({ moved: 0 })
          old.answers.set("/page", page)
          serve(old, wellKnown, { payTo, movedTo: next.url })
          serve(next, wellKnown, {
            payTo,
            movedFrom: [...movedFrom(next.url, stranger!), ...movedFrom(next.url, seller!)]
          })
          const answer = yield* look(facilitator, next)
          expect(answer["asked"]).toContain(`move from ${old.url}: not signed by payTo, move from ${old.url}: 1 moved`)
          expect(answer["moved"]).toBe(1)
          expect((yield* resolve(facilitator, at)).status).toBe(404)
          yield* eventually(gradeOf(moved), (found) => found === "200 origin")
          const { json } = yield* resolve(facilitator, moved)
          expect(json.resource).toMatchObject({ ownership: "proven", verification: "payment_observed" })
        })
      ),
    240_000
  )
})
