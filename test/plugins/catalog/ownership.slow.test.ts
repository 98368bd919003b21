import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { paymentRequired, startOrigin } from "./startOrigin.ts"
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
import { catalogWorld } from "./catalogWorld.ts"

const set = ["catalog_security.probe_pause_seconds=0"]

describe.each(databaseKinds)("ownership on %s", (database) => {
  it.live(
    "an owner named by the origin displaces the URL's first lister [S23][S256][S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, set })
          const origin = yield* startOrigin
          const url = `${origin.url}/weather`
          const payer = yield* facilitator.account()
          const squatter = (yield* facilitator.account()).publicKey()
          const owner = (yield* facilitator.account()).publicKey()
          // The page answers 402 without terms.
          origin.answers.set("/weather", { status: 402, body: {} })
          const listing = () => Effect.map(explain(facilitator, url), ({ listings }) => listings[0] as Json)
          const squat = yield* declaring(facilitator, {
            payer,
            payTo: squatter,
            url,
            about: { description: "Mine!" },
            amount: 1n
          })
          expect((yield* verified(facilitator, squat)).outcome).toEqual({ status: "success" })
          expect((yield* resolve(facilitator, url)).json.resource).toMatchObject({
            description: "Mine!",
            ownership: "provisional"
          })

          const real = yield* declaring(facilitator, { payer, payTo: owner, url, about: { description: "Weather" } })
          const conflict = yield* verified(facilitator, real)
          expect(conflict.answer.json.isValid).toBe(true)
          expect(conflict.outcome).toEqual({ status: "rejected", rejectedReason: "payto_conflict" })
          expect((yield* resolve(facilitator, url)).json.resource.description).toBe("Mine!")

          origin.answers.set("/.well-known/x402", { status: 200, body: { x402Version: 2, payTo: [owner] } })
          const displaced = yield* eventually(listing(), (one) => one["ownership"] === "proven")
          expect(displaced).toMatchObject({ status: "active", ownership: "proven" })
          const shown = (yield* resolve(facilitator, url)).json.resource
          expect(shown).toMatchObject({ description: "Weather", ownership: "proven" })
          expect(shown.accepts.map(({ payTo }: Json) => payTo)).toEqual([owner])
          expect(displaced["decisions"].map(({ by, move, reason }: Json) => `${by} ${move} ${reason}`)).toEqual([
            "origin displaced origin_names_another",
            "facilitator listed payment_observed"
          ])
          expect((yield* verified(facilitator, real)).outcome).toEqual({ status: "success" })
          expect((yield* verified(facilitator, squat)).outcome).toEqual({
            status: "rejected",
            rejectedReason: "payto_conflict"
          })
          const { items } = yield* explain(facilitator, url)
          expect(
            items.map(
              ({ decision, payTo, reason }: Json) =>
                `${payTo === owner ? "owner" : "squatter"} ${decision} ${reason ?? ""}`
            )
          ).toEqual(
            expect.arrayContaining([
              "squatter listed ",
              "owner rejected payto_conflict",
              "squatter rejected payto_conflict"
            ])
          )
        })
      ),
    240_000
  )

  it.live(
    "documents are probed first, then the 402 of declared GET or HEAD",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld({
            database,
            set: ["catalog_security.probe_pause_seconds=3600"]
          })
          const origin = yield* startOrigin
          origin.answers.set("/page", paymentRequired(payTo, "stellar:testnet"))
          origin.answers.set("/report", paymentRequired(payTo))
          const declare = (path: string, extension: unknown) =>
            Effect.flatMap(declaring(facilitator, { payer, payTo, url: `${origin.url}${path}`, extension }), (body) =>
              verified(facilitator, body)
            )
          yield* declare("/report", bodyDeclaration())
          yield* declare("/mcp", mcpDeclaration("add"))
          yield* declare("/users/7", queryDeclaration({ routeTemplate: "/users/:id" }))
          yield* declare("/page", queryDeclaration())
          const proven = yield* eventually(
            resolve(facilitator, `${origin.url}/page`),
            ({ json }) => json.resource?.ownership === "proven"
          )
          expect(proven.json.resource.ownership).toBe("proven")
          yield* eventually(
            facilitator.sql<{ n: number }>`select count(*)::int as n from catalog_probes where asked_at is not null`,
            ([row]) => row?.n === 4
          )
          expect(new Set(origin.asked)).toEqual(
            new Set(["GET /.well-known/x402", "GET /.well-known/x402.json", "GET /openapi.json", "GET /page"])
          )
          expect((yield* resolve(facilitator, `${origin.url}/report`)).json.resource.ownership).toBe("provisional")
          expect((yield* resolve(facilitator, `${origin.url}/mcp`, "add")).json.resource.ownership).toBe("provisional")
        })
      ),
    240_000
  )

  it.live(
    "a listing is quarantined while its origin names an unknown recipient [S100][S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, set })
          const origin = yield* startOrigin
          const url = `${origin.url}/thing`
          const payer = yield* facilitator.account()
          const squatter = (yield* facilitator.account()).publicKey()
          const owner = (yield* facilitator.account()).publicKey()
          origin.answers.set("/.well-known/x402", {
            status: 200,
            body: { resources: [{ resource: "/thing", payTo: owner }, `${origin.url}/other`] }
          })
          yield* verified(facilitator, yield* declaring(facilitator, { payer, payTo: squatter, url }))
          const quarantined = yield* eventually(
            explain(facilitator, url),
            ({ listings }) => listings[0].status === "quarantined"
          )
          expect(quarantined["listings"][0]).toMatchObject({ status: "quarantined", reason: "origin_names_another" })
          expect((yield* resolve(facilitator, url)).status).toBe(404)
          expect((yield* browse(facilitator))["items"]).toEqual([])
          expect(
            (yield* verified(facilitator, yield* declaring(facilitator, { payer, payTo: owner, url }))).outcome
          ).toEqual({ status: "success" })
          const shown = (yield* resolve(facilitator, url)).json.resource
          expect(shown).toMatchObject({ status: "active", ownership: "proven" })
          expect(shown.accepts.map(({ payTo }: Json) => payTo)).toEqual([owner])

          origin.answers.set("/.well-known/x402", { status: 200, body: { payTo: owner, delist: ["/thing"] } })
          yield* facilitator.sql`update catalog_probes set due_at = now()`
          const removed = yield* eventually(
            explain(facilitator, url),
            ({ listings }) => listings[0].status === "removed"
          )
          expect(removed["listings"][0]).toMatchObject({ status: "removed", reason: "delisted_by_origin" })
          expect((yield* resolve(facilitator, url)).status).toBe(404)
          const again = yield* verified(
            facilitator,
            yield* declaring(facilitator, { payer, payTo: owner, url, about: { description: "again" } })
          )
          expect(again.outcome).toEqual({ status: "rejected", rejectedReason: "catalog_unavailable" })
        })
      ),
    240_000
  )

  it.live(
    "a probe never dials private addresses, by name or by redirect [S24]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const inside = yield* startOrigin
          const { declare, facilitator } = yield* catalogWorld({
            database,
            set: [...set, "catalog_security.allow_local_origins=false"]
          })
          // A public name that resolves to this machine is inserted as if it had been listed.
          yield* verified(facilitator, yield* declare({ url: "https://shop.example.com/x" }))
          yield* facilitator.sql`update catalog_resources set origin = ${inside.url}, resource = ${`${inside.url}/x`}`
          yield* facilitator.sql`update catalog_probes set due_at = now(), asked_at = null`
          const quarantined = yield* eventually(
            facilitator.sql<{ state_reason: string }>`select state_reason from catalog_resources`,
            ([row]) => row?.state_reason === "local_origin"
          )
          expect(quarantined).toEqual([{ state_reason: "local_origin" }])
          expect(inside.asked).toEqual([])
        })
      ),
    240_000
  )
})
