// One current resource by its type, URL and, for MCP, its tool's name. An identity that exists, in any state, ends the
// search: what is hidden or removed resolves to nothing. Otherwise a concrete URL of a dynamic route leads to the
// route's entry, but only where the origin's owner has shown the template or the recipient that it names, and never for
// a path that a listing or a document of the origin names, however it is spelled. Of several templates that fit, the
// origin's own goes first, then the one with the most literal segments (S110–S112, S315).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import type { ResourceType } from "../contract.ts"
import { loosePath, matchesTemplate, type ResourceUrl, spellResourceUrl } from "../declaration/resourceUrl.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { visible } from "./conditions.ts"
import { bodyColumns, bodyFrom, type BodyRow, toBody } from "./batchBodies.ts"

/** Dynamic routes of one origin that are tried. */
const templatesMax = 2_000

export interface ResolveRequest {
  readonly type: ResourceType
  readonly url: string
  /** Empty for HTTP. */
  readonly toolName: string
}

const literals = (template: string): number => template.split("/").filter((segment) => !segment.includes(":")).length

interface Template {
  readonly key: string
  readonly template: string
  readonly ownership: string
}

/** Better first. */
const byFitness = (a: Template, b: Template): number =>
  Number(b.ownership === "proven") - Number(a.ownership === "proven") || literals(b.template) - literals(a.template)

export class Resolve extends Context.Service<
  Resolve,
  {
    readonly find: (request: ResolveRequest) => Effect.Effect<Option.Option<BodyRow>, SqlError.SqlError>
    /** The public body as JSON. */
    readonly one: (request: ResolveRequest) => Effect.Effect<Option.Option<string>, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Resolve") {
  static readonly layer = Layer.effect(
    Resolve,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config
      const crypto = yield* Crypto

      const byKey = (key: string) =>
        sql<BodyRow>`select ${sql.literal(bodyColumns)} from ${sql.literal(bodyFrom)}
          where r.key = ${key} and ${visible(sql, config)}`

      /** A listing in any state, or a document of the origin, names this path, perhaps in another spelling. */
      const isNamed = Effect.fnUntraced(function* (origin: string, resource: string) {
        const path = loosePath(resource.slice(origin.length))
        const spellings = [path, `${path}/`, resource.slice(origin.length).toLowerCase()].map((one) => origin + one)
        const rows = yield* sql`select 1 from catalog_named_paths where origin = ${origin} and path = ${path}
          union all (select 1 from catalog_resources r where r.origin = ${origin} and r.type = 'http'
            and lower(r.resource) = any(${spellings}) and not (r.declaration->'about' ? 'routeTemplate') limit 1)`
        return rows.length > 0
      })

      /**
       * Templates of an origin that may answer: what the origin itself has named, what pays a recipient that it has
       * named, or what a recipient has declared or payers have settled where nothing of the origin pays another one.
       */
      const templatesOf = (origin: string) =>
        sql<Template>`select r.key, r.ownership, r.declaration->'about'->>'routeTemplate' as template
          from catalog_resources r
          where r.origin = ${origin} and r.type = 'http' and r.declaration->'about' ? 'routeTemplate'
            and (r.ownership = 'proven' or exists (select 1 from catalog_resources o
                where o.origin = ${origin} and o.ownership = 'proven' and o.pay_tos && r.pay_tos)
              or ((r.grade = 'declared' or exists (select 1 from catalog_claim_payers c where c.resource_id = r.id))
                and not exists (select 1 from catalog_resources o
                  where o.origin = ${origin} and not o.pay_tos && r.pay_tos)))
            and ${visible(sql, config)} order by r.ownership desc, r.id limit ${templatesMax}`

      const byTemplate = Effect.fnUntraced(function* ({ origin, resource }: ResourceUrl) {
        if (origin === undefined) return undefined
        const path = resource.slice(origin.length)
        const fitting = (yield* templatesOf(origin)).filter(({ template }) => matchesTemplate(template, path))
        const [best] = fitting.sort(byFitness)
        if (best === undefined || (yield* isNamed(origin, resource))) return undefined
        const [found] = yield* byKey(best.key)
        return found
      })

      const find = Effect.fn("Catalog.resolve")(function* (request: ResolveRequest) {
        const read = spellResourceUrl(request.type, request.url)
        if (read === undefined) return Option.none<BodyRow>()
        const { type, toolName } = request
        const key = identityKey(crypto, { type, resource: read.resource, toolName })
        const [exact] = yield* byKey(key)
        if (exact !== undefined) return Option.some(exact)
        const hidden = type === "mcp" ? [] : yield* sql`select 1 from catalog_resources where key = ${key}`
        if (type === "mcp" || hidden.length > 0) return Option.none<BodyRow>()
        return Option.fromUndefinedOr(yield* byTemplate(read))
      })

      return Resolve.of({
        find,
        one: (request) =>
          Effect.map(
            find(request),
            Option.map((row) => toBody(row).json)
          )
      })
    })
  )
}
