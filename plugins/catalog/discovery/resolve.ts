// One current resource by its type, URL and, for MCP, its tool's name. A concrete URL of a dynamic route leads to the
// route's entry; of several templates that fit, an owner's goes before a stranger's, then the one with the most literal
// segments (S110–S112, S315).
import { Effect, Option } from "effect"
import type { SqlClient } from "effect/sql"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { CatalogValues } from "../Config.ts"
import type { ResourceType } from "../contract.ts"
import { matchesTemplate, spellResourceUrl } from "../declaration/resourceUrl.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { visible } from "./conditions.ts"
import { bodyColumns, bodyOf, type BodyRow } from "./makeCatalog.ts"

/** Dynamic routes of one origin that are looked through. */
const templatesMax = 2_000

export interface ResolveRequest {
  readonly type: ResourceType
  readonly url: string
  /** Empty for HTTP. */
  readonly toolName: string
}

const literals = (template: string): number => template.split("/").filter((segment) => !segment.includes(":")).length

export const makeResolve = (sql: SqlClient.SqlClient, config: CatalogValues, crypto: Crypto["Service"]) => {
  const byKey = (key: string) =>
    sql<BodyRow>`select ${sql.literal(bodyColumns)} from catalog_resources r where r.key = ${key}
      and ${visible(sql, config)}`

  return Effect.fn("Catalog.resolve")(function* (request: ResolveRequest) {
    const read = spellResourceUrl(request.type, request.url)
    if (read === undefined) return Option.none<string>()
    const { type, toolName } = request
    const [exact] = yield* byKey(identityKey(crypto, { type, resource: read.resource, toolName }))
    if (exact !== undefined) return Option.some(bodyOf(exact))
    if (type === "mcp" || read.origin === undefined) return Option.none<string>()
    const dynamic = yield* sql<{
      key: string
      template: string
      ownership: string
    }>`select r.key, r.ownership, r.declaration->'about'->>'routeTemplate' as template from catalog_resources r
      where r.origin = ${read.origin} and r.type = 'http' and r.declaration->'about' ? 'routeTemplate'
        and ${visible(sql, config)} order by r.ownership desc, r.id limit ${templatesMax}`
    const path = read.resource.slice(read.origin.length)
    const fitting = dynamic
      .filter(({ template }) => matchesTemplate(template, path))
      .sort(
        (a, b) =>
          Number(b.ownership === "proven") - Number(a.ownership === "proven") ||
          literals(b.template) - literals(a.template)
      )
    if (fitting[0] === undefined) return Option.none<string>()
    const [found] = yield* byKey(fitting[0].key)
    return Option.map(Option.fromUndefinedOr(found), bodyOf)
  })
}
