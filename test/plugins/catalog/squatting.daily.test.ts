// Other spellings of another seller's URL, and templates laid over another seller's routes: one path has one listing,
// and an owner's declaration precedes a stranger's.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import {
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

const owned = "https://shop.example.com/v1/item"

/** Spellings that denote the owner's URL. */
const same = [
  "https://SHOP.Example.COM/v1/item",
  "HTTPS://shop.example.com/v1/item",
  "https://shop.example.com./v1/item",
  "https://shop.example.com:443/v1/item",
  "https://shop.example.com/v1/item?x=1",
  "https://shop.example.com/v1/item#top",
  "https://shop.example.com/v1/%69tem",
  "https://shop.example.com/%76%31/item",
  "https://shop.example.com/v1/./item",
  "https://shop.example.com/v1/x/../item",
  "https://shop.example.com/v1/x/%2e%2e/item",
  "https://shop.example.com\\v1\\item",
  "https://shop%2eexample.com/v1/item",
  "https://ｓｈｏｐ.example.com/v1/item",
  "https://shop。example.com/v1/item",
  "  https://shop.example.com/v1/item  "
]

/** A different resource of the same or another origin, or none; then the origin identifies the owner. */
const other = [
  "https://shop.example.com/v1/Item",
  "https://shop.example.com/v1/item/",
  "https://shop.example.com/v1//item",
  "https://shop.example.com:8443/v1/item",
  "https://shop.example.com/v1%2Fitem",
  "https://shоp.example.com/v1/item"
]

const refusedUrls = [
  "https://evil@shop.example.com/v1/item",
  "https://shop.example.com../v1/item",
  "https://shop.exa\u200bmple.com/v1/item",
  "https://shop.example.com/v1/item\u202e"
]

describe.each(databaseKinds)("squatting on %s", (database) => {
  it.live(
    "another spelling of a listed URL conflicts or lists as another resource [S31][S40][S256]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const {
            facilitator,
            payer,
            payTo: owner
          } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_origins=false"]
          })
          const squatter = (yield* facilitator.account()).publicKey()
          yield* verified(facilitator, yield* declaring(facilitator, { payer, payTo: owner, url: owned }))
          const declare = Effect.fnUntraced(function* (url: string, extension: unknown = queryDeclaration()) {
            const body = yield* declaring(facilitator, { payer, payTo: squatter, url, extension })
            return (yield* verified(facilitator, body)).outcome
          })
          for (const url of same)
            expect([url, yield* declare(url)]).toEqual([url, { status: "rejected", rejectedReason: "payto_conflict" }])
          for (const url of refusedUrls)
            expect([url, yield* declare(url)]).toEqual([
              url,
              { status: "rejected", rejectedReason: "missing_resource_url" }
            ])
          for (const url of other) expect([url, yield* declare(url)]).toEqual([url, { status: "success" }])
          // A tool is a separate resource under the endpoint's URL.
          expect(yield* declare(owned, mcpDeclaration("add"))).toEqual({ status: "success" })
          const { items } = yield* browse(facilitator, `?payTo=${owner}`)
          expect(items.map(({ resource }: Json) => resource)).toEqual([owned])
          for (const url of same) {
            const found = (yield* resolve(facilitator, url)).json.resource
            expect([url, found.resource, found.accepts[0].payTo]).toEqual([url, owned, owner])
          }
          // Once the owner's listing has evidence, a mere claim in another spelling of its path does not answer.
          const statusOf = (url: string) => Effect.map(resolve(facilitator, url), ({ status }) => status)
          const respelled = other.filter((url) => new URL(url).host === "shop.example.com")
          for (const url of other) expect([url, yield* statusOf(url)]).toEqual([url, 200])
          yield* facilitator.sql`update catalog_resources set standing_at = now() where pay_tos = array[${owner}]`
          for (const url of other)
            expect([url, yield* statusOf(url)]).toEqual([url, respelled.includes(url) ? 404 : 200])
        })
      ),
    240_000
  )

  it.live(
    "a squatter's route template never precedes what the owner listed [S111][S112]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const {
            facilitator,
            payer,
            payTo: owner
          } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_origins=false"]
          })
          const squatter = (yield* facilitator.account()).publicKey()
          const declare = (payTo: string, path: string, routeTemplate?: string) =>
            Effect.flatMap(
              declaring(facilitator, {
                payer,
                payTo,
                url: `https://shop.example.com${path}`,
                extension: queryDeclaration(routeTemplate === undefined ? {} : { routeTemplate })
              }),
              (body) => Effect.map(verified(facilitator, body), ({ outcome }) => outcome)
            )
          const foundAt = (path: string) =>
            Effect.map(resolve(facilitator, `https://shop.example.com${path}`), ({ json }) =>
              json.resource?.resource.slice("https://shop.example.com".length)
            )
          const listed = { status: "success" }
          // The squatter comes first, with templates that match what the owner will list.
          expect(yield* declare(squatter, "/users/7", "/:any/:thing")).toEqual(listed)
          expect(yield* declare(squatter, "/users/7", "/users/7")).toEqual(listed)
          expect(yield* declare(owner, "/users/8", "/users/:id")).toEqual(listed)
          expect(yield* declare(owner, "/prices")).toEqual(listed)
          // The same paths with another parameter name are the owner's.
          expect(yield* declare(squatter, "/users/8", "/users/:uid")).toEqual({
            status: "rejected",
            rejectedReason: "payto_conflict"
          })
          // Even the owner's payments do not rename it: the payer that submits them is unknown.
          expect(yield* declare(owner, "/users/8", "/users/:userId")).toEqual({ status: "processing" })
          expect((yield* browse(facilitator, `?payTo=${owner}`))["pagination"].total).toBe(2)
          expect(yield* declare(squatter, "/prices", "/:page")).toEqual(listed)
          expect([yield* foundAt("/users/9"), yield* foundAt("/prices"), yield* foundAt("/users/:x")]).toEqual([
            undefined,
            "/prices",
            "/users/:id"
          ])
          // Until the origin's owner is known no template answers for a path; then the owner's does.
          expect(yield* declare(squatter, "/users/a1", "/users/a:rest")).toEqual(listed)
          expect(yield* declare(owner, "/items/1/parts", "/items/:item/:part")).toEqual(listed)
          expect(yield* declare(squatter, "/items/1/parts", "/items/:item/parts")).toEqual(listed)
          expect(yield* foundAt("/items/2/parts")).toBe(undefined)
          // The owner's recipient does not make the template's words the owner's.
          yield* facilitator.sql`update catalog_resources set ownership = 'proven' where pay_tos = array[${owner}]`
          expect(yield* foundAt("/items/2/parts")).toBe(undefined)
          yield* facilitator.sql`update catalog_resources set standing_at = now() where pay_tos = array[${owner}]`
          expect(yield* foundAt("/items/2/parts")).toBe("/items/:item/:part")
          // A mere claim of one of its paths neither answers for it nor ends the search.
          expect(yield* declare(squatter, "/items/3/parts")).toEqual(listed)
          expect(yield* foundAt("/items/3/parts")).toBe("/items/:item/:part")
          yield* facilitator.sql`update catalog_resources set state = 'stale' where resource like '%/items/3/parts'`
          expect(yield* foundAt("/items/3/parts")).toBe("/items/:item/:part")
          yield* facilitator.sql`update catalog_resources set state = 'active' where resource like '%/items/3/parts'`
          const squatted = facilitator.sql`pay_tos = array[${squatter}]`
          // Nor does a payment of dust make the claim answer, before it is old.
          yield* facilitator.sql`update catalog_resources set standing_at = now() where ${squatted}`
          expect(yield* foundAt("/items/3/parts")).toBe("/items/:item/:part")
          yield* facilitator.sql`update catalog_resources set standing_at = 'epoch' where ${squatted}`
          expect(yield* foundAt("/items/3/parts")).toBe("/items/3/parts")
        })
      ),
    240_000
  )

  it.live(
    "a template answers by evidence, whatever is signed or claimed at no cost",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const {
            facilitator,
            payer,
            payTo: owner
          } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_origins=false"]
          })
          const squatter = yield* facilitator.account()
          const mine = squatter.publicKey()
          const declare = (payTo: string, url: string, template?: string, more: Json = {}) =>
            declaring(facilitator, {
              payer,
              payTo,
              url,
              extension: { ...queryDeclaration(template === undefined ? {} : { routeTemplate: template }), ...more }
            })
          const claim = (...given: Parameters<typeof declare>) =>
            Effect.flatMap(declare(...given), (body) => verified(facilitator, body))
          const settle = Effect.fnUntraced(function* (...given: Parameters<typeof declare>) {
            expect((yield* facilitator.settle(yield* declare(...given))).json).toMatchObject({ success: true })
          })
          const paidAt = (url: string) =>
            Effect.map(resolve(facilitator, url), ({ json }) => json.resource?.accepts[0].payTo as string | undefined)
          // Signed by its payee's account, which costs nothing: it does not answer for another seller's URL.
          const signed = "https://signed.example.com/v1/:page"
          yield* claim(mine, "https://signed.example.com/v1/a", "/v1/:page")
          const [listing] = (yield* explain(facilitator, signed))["listings"]
          const digest = createHash("sha256").update(`Stellar Signed Message:\n${listing.versionHash}`).digest()
          const signature = Buffer.from(squatter.sign(digest)).toString("base64")
          yield* claim(mine, "https://signed.example.com/v1/a", "/v1/:page", { signature })
          expect((yield* resolve(facilitator, signed)).json.resource.grade).toBe("declared")
          expect(yield* paidAt("https://signed.example.com/v1/b")).toBe(undefined)
          // A settled template answers, and a later claim of the origin for another recipient does not silence it.
          yield* settle(owner, "https://routes.example.com/users/1", "/users/:id")
          yield* eventually(paidAt("https://routes.example.com/users/2"), (to) => to === owner)
          yield* claim(mine, "https://routes.example.com/other")
          expect(yield* paidAt("https://routes.example.com/other")).toBe(mine)
          expect(yield* paidAt("https://routes.example.com/users/2")).toBe(owner)
          // A settlement adds no template to an origin that its seller had listed before.
          yield* claim(owner, "https://early.example.com/prices")
          yield* settle(mine, "https://early.example.com/users/1", "/users/:id")
          const counted = facilitator.sql`select 1 from catalog_resources
            where resource = 'https://early.example.com/users/:id' and standing_at is not null`
          yield* eventually(counted, (rows) => rows.length === 1)
          expect(yield* paidAt("https://early.example.com/users/2")).toBe(undefined)
        })
      ),
    240_000
  )
})
