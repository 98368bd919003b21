// GET /badge/listing.svg, calls.svg and uptime.svg: a listing's public figures as a picture that its seller embeds
// anywhere. They contain only data of the public discovery routes. Caches keep a badge for minutes, no cookie is read
// or set, and requests for badges are not recorded. A listing is identified by its URL and its recipient, both public.
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ReadReplica } from "../../kernel/database/ReadReplica.ts"
import { json, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { Catalog, CatalogRecords } from "../catalog/contract.ts"
import * as routes from "./description.ts"
import { badgeKinds, type BadgeKind, badgeOf, badgeSvg } from "./badge.ts"

type Request = HttpServerRequest.HttpServerRequest

const cacheSeconds = 300
const urlMax = 2_000

const Body = Schema.fromJsonString(
  Schema.Struct({
    ownership: Schema.optionalKey(Schema.String),
    verification: Schema.optionalKey(Schema.String),
    status: Schema.optionalKey(Schema.String),
    settlements: Schema.optionalKey(Schema.Finite),
    uptime: Schema.optionalKey(Schema.Finite)
  })
)
const decodeBody = Schema.decodeUnknownOption(Body)

const wrong = json(
  { error: "invalid_parameter", details: ["url and payTo: the URL of a listed resource, and its recipient"] },
  { status: 400 }
)

const picture = (svg: string) =>
  HttpServerResponse.text(svg, {
    contentType: "image/svg+xml; charset=utf-8",
    headers: {
      "cache-control": `public, max-age=${cacheSeconds}`,
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "cross-origin",
      "access-control-allow-origin": "*",
      "content-security-policy": "default-src 'none'; sandbox"
    }
  })

export const addBadgeRoutes = Effect.gen(function* () {
  const catalog = yield* Catalog
  const records = yield* CatalogRecords
  const { reading } = yield* ReadReplica

  const listingOf = Effect.fnUntraced(function* (url: string, payTo: string) {
    const [found] = yield* records.attribute([{ url, payTo }])
    if (found === undefined) return undefined
    const [body] = yield* catalog.bodies([found.id])
    return body === undefined ? undefined : Option.getOrUndefined(decodeBody(body.json))
  })

  const badge = Effect.fnUntraced(function* (kind: BadgeKind, request: Request) {
    const { given } = readQuery(routes.badge(kind).query, queryOf(request))
    const [url = "", payTo = ""] = [given("url"), given("payTo")]
    if (url === "" || url.length > urlMax || !/^[GCM][A-Z2-7]{55,68}$/.test(payTo)) return wrong
    return picture(badgeSvg(badgeOf(kind, yield* reading(listingOf(url, payTo)))))
  })

  yield* addRoutes(
    routes.group,
    badgeKinds.map((kind) =>
      route(routes.badge(kind), (request) =>
        Effect.catch(badge(kind, request), (error) =>
          Effect.as(Effect.logError("a badge could not read the database", error), temporarilyUnavailable)
        )
      )
    )
  )
})
