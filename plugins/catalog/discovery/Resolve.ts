// One current resource by its type, URL and, for MCP, its tool's name. A concrete URL of a dynamic route leads to the
// route's entry; of several templates that fit, an owner's goes before a stranger's, then the one with the most literal
// segments (S110–S112, S315).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import type { ResourceType } from "../contract.ts"
import { matchesTemplate, spellResourceUrl } from "../declaration/resourceUrl.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { visible } from "./conditions.ts"
import { bodyColumns, bodyFrom, type BodyRow, toBody } from "./gatherBodies.ts"

/** Dynamic routes of one origin that are looked through. */
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

      const find = Effect.fn("Catalog.resolve")(function* (request: ResolveRequest) {
        const read = spellResourceUrl(request.type, request.url)
        if (read === undefined) return Option.none<BodyRow>()
        const { type, toolName } = request
        const [exact] = yield* byKey(identityKey(crypto, { type, resource: read.resource, toolName }))
        if (exact !== undefined) return Option.some(exact)
        if (type === "mcp" || read.origin === undefined) return Option.none<BodyRow>()
        const dynamic = yield* sql<Template>`select r.key, r.ownership,
            r.declaration->'about'->>'routeTemplate' as template
          from catalog_resources r
          where r.origin = ${read.origin} and r.type = 'http' and r.declaration->'about' ? 'routeTemplate'
            and ${visible(sql, config)} order by r.ownership desc, r.id limit ${templatesMax}`
        const path = read.resource.slice(read.origin.length)
        const [best] = dynamic.filter(({ template }) => matchesTemplate(template, path)).sort(byFitness)
        if (best === undefined) return Option.none<BodyRow>()
        const [found] = yield* byKey(best.key)
        return Option.fromUndefinedOr(found)
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
