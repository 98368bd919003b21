// One current resource by its type, URL and, for MCP, its tool's name. An existing identity, in any state, ends the
// search: a hidden or removed resource resolves to nothing. Two kinds of mere claim do not end it: a claim for a path
// of a template that the origin has named for another recipient, and a claim in another spelling of a resource that is
// listed with evidence for another recipient. Otherwise a concrete URL of a dynamic route leads to the route's entry,
// but only if the origin's owner has shown the template or the recipient that it names, and never for a path that a
// listing or a document of the origin names, in any spelling. If several templates fit, the origin's own goes first,
// then the template with the most literal segments (S110–S112, S315).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import type { ResourceType } from "../contract.ts"
import { loosePath, matchesTemplate, type ResourceUrl, spellResourceUrl } from "../declaration/resourceUrl.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { isYoung, visible } from "./conditions.ts"
import { bodyColumns, bodyFrom, type BodyRow, toBody } from "./batchBodies.ts"

/** Dynamic routes of one origin that are tried. */
const templatesMax = 2_000

export interface ResolveRequest {
  readonly type: ResourceType
  readonly url: string
  /** Empty for HTTP. */
  readonly toolName: string
}

/** Spellings, in lower case, under which a listing of the same path may be stored. */
const spellingsOf = ({ origin = "", resource }: ResourceUrl): ReadonlyArray<string> => {
  const path = resource.slice(origin.length)
  const loose = loosePath(path)
  return [loose, `${loose}/`, path.toLowerCase()].map((one) => origin + one)
}

const literals = (template: string): number => template.split("/").filter((segment) => !segment.includes(":")).length

interface Template {
  readonly key: string
  readonly template: string
  readonly ownership: string
}

interface Found extends BodyRow {
  readonly isEstablished: boolean
  readonly isVisible: boolean
}

const shown = (found: Found | undefined): Option.Option<BodyRow> =>
  found?.isVisible === true ? Option.some(found) : Option.none()

/** Better first. */
const byFitness = (a: Template, b: Template): number =>
  Number(b.ownership === "proven") - Number(a.ownership === "proven") || literals(b.template) - literals(a.template)

/** The template that fits a URL best. */
const fittingOf = (templates: ReadonlyArray<Template>, { origin = "", resource }: ResourceUrl) =>
  templates.filter(({ template }) => matchesTemplate(template, resource.slice(origin.length))).sort(byFitness)[0]

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config

  /** In any state. */
  const byKey = (key: string) =>
    Effect.map(
      sql<Found>`select ${sql.literal(bodyColumns)},
          r.standing_at is not null and not ${isYoung(sql)} as "isEstablished",
          ${visible(sql, config)} as "isVisible" from ${sql.literal(bodyFrom)} where r.key = ${key}`,
      ([row]) => row
    )

  /**
   * True for a claim, or a listing with younger evidence, in another spelling of a resource that is listed for another
   * recipient.
   */
  const isRespelled = (id: bigint, read: ResourceUrl) =>
    Effect.map(
      sql`select 1 from catalog_resources r join catalog_resources o on o.origin = r.origin and o.type = r.type
          and o.tool_name = r.tool_name and o.id <> r.id and not o.pay_tos && r.pay_tos
          and o.standing_at < coalesce(r.standing_at, 'infinity')
        where r.id = ${id} and lower(o.resource) = any(${spellingsOf(read)}) limit 1`,
      (rows) => rows.length > 0
    )

  /** A listing in any state, or a document of the origin, names this path, perhaps in another spelling. */
  const isNamed = Effect.fnUntraced(function* (origin: string, resource: string) {
    const path = loosePath(resource.slice(origin.length))
    const spellings = spellingsOf({ origin, resource })
    const rows = yield* sql`select 1 from catalog_named_paths where origin = ${origin} and path = ${path}
      union all (select 1 from catalog_resources r where r.origin = ${origin} and r.type = 'http'
        and lower(r.resource) = any(${spellings}) and not (r.declaration->'about' ? 'routeTemplate') limit 1)`
    return rows.length > 0
  })

  /** Its words have evidence. If that is young, no listing of the origin for another recipient has older evidence. */
  const isSenior = sql`(r.standing_at is not null and (not ${isYoung(sql)} or not exists (
    select 1 from catalog_resources o where o.origin = r.origin and not o.pay_tos && r.pay_tos
      and o.standing_at < r.standing_at)))`

  /**
   * Templates of an origin that may answer. Each has evidence for its words, and either the origin has named it, or it
   * pays a recipient that the origin has named, or it has evidence from a key or a settlement (an account signs at no
   * cost) and no listing of the origin pays another recipient, except claims that came later.
   */
  const templatesOf = (origin: string) =>
    sql<Template>`select r.key, r.ownership, r.declaration->'about'->>'routeTemplate' as template
      from catalog_resources r
      where r.origin = ${origin} and r.type = 'http' and r.declaration->'about' ? 'routeTemplate'
        and ${isSenior} and (r.ownership = 'proven' or exists (select 1 from catalog_resources o
            where o.origin = ${origin} and o.ownership = 'proven' and o.pay_tos && r.pay_tos)
          or (r.standing_at is not null and not exists (select 1 from catalog_resources o
              where o.origin = ${origin} and not o.pay_tos && r.pay_tos
                and (o.standing_at is not null or o.first_seen_at < greatest(r.standing_at, r.first_seen_at)))))
        and ${visible(sql, config)} order by r.ownership desc, r.id limit ${templatesMax}`

  /** The templates that the origin has named for another recipient than this resource's. */
  const templatesBeside = (id: bigint) =>
    sql<Template>`select o.key, o.ownership,
      o.declaration->'about'->>'routeTemplate' as template
    from catalog_resources r join catalog_resources o on o.origin = r.origin and o.type = 'http'
    where r.id = ${id} and o.declaration->'about' ? 'routeTemplate' and o.ownership = 'proven'
      and not o.pay_tos && r.pay_tos order by o.id limit ${templatesMax}`

  return { byKey, isNamed, isRespelled, templatesBeside, templatesOf }
})

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
      const crypto = yield* Crypto
      const { byKey, isNamed, isRespelled, templatesBeside, templatesOf } = yield* makeReads

      const byTemplate = Effect.fnUntraced(function* (read: ResourceUrl) {
        const { origin, resource } = read
        if (origin === undefined) return undefined
        const best = fittingOf(yield* templatesOf(origin), read)
        return best === undefined || (yield* isNamed(origin, resource)) ? undefined : yield* byKey(best.key)
      })

      /** The origin's own template for a path that a mere claim names for another recipient. */
      const ownTemplate = Effect.fnUntraced(function* (id: bigint, read: ResourceUrl) {
        const best = fittingOf(yield* templatesBeside(id), read)
        return best === undefined ? undefined : yield* byKey(best.key)
      })

      const find = Effect.fn("Catalog.resolve")(function* (request: ResolveRequest) {
        const read = spellResourceUrl(request.type, request.url)
        if (read === undefined) return Option.none<BodyRow>()
        const { type, toolName } = request
        const exact = yield* byKey(identityKey(crypto, { type, resource: read.resource, toolName }))
        if (exact?.isEstablished === false) {
          const own = type === "mcp" ? undefined : yield* ownTemplate(exact.id, read)
          if (own !== undefined) return shown(own)
          if (yield* isRespelled(exact.id, read)) return Option.none<BodyRow>()
        }
        if (exact !== undefined) return shown(exact)
        return type === "mcp" ? Option.none<BodyRow>() : shown(yield* byTemplate(read))
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
