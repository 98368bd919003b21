// The versions of a resource and the options that come and go with them, written in the caller's transaction. A version
// is the public body that was served; its hash identifies it. The newest words of each grade are stored separately.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type LiveOption, type NamedOption, optionName, type DeclaredText } from "./mergeDeclaration.ts"
import { liveOptions, type ResourceRow } from "./Resources.ts"
import { encodeBody, identityKey, resourceKey, versionHash } from "./ResourceWire.ts"

interface Body {
  readonly document: string
  readonly hash: string
}

/** For a resource that has had evidence since it was listed. */
const fromTheStart = new Date(0)

interface OwnershipColumns extends Pick<ResourceRow, "verification" | "ownership" | "pay_tos"> {
  /** The payer that listed it with a free payment. */
  readonly listed_by: string | null
}

/** Dead probes belong to the words and operations that were listed then. */
const voidDeadProbes = (sql: SqlClient.SqlClient, id: bigint, { grade, kept }: DeclaredText) =>
  sql`update catalog_probes p set dead = 0 from catalog_resources r where r.id = ${id} and p.resource_id = r.id
    and p.dead > 0 and (r.grade <> ${grade} or jsonb_path_query_array(r.declaration, '$.operations[*].method')
      <> ${JSON.stringify(kept.operations.map(({ method }) => method))}::jsonb)`

const rowOf = (
  crypto: Crypto["Service"],
  words: DeclaredText,
  { document, hash }: Body,
  ownership: OwnershipColumns,
  now: Date
) => {
  const { identity, kept } = words
  return {
    key: identityKey(crypto, identity),
    resource_key: resourceKey(crypto, identity.resource),
    type: identity.type,
    resource: identity.resource,
    tool_name: identity.toolName,
    origin: identity.origin ?? null,
    state: "active",
    state_changed_at: now,
    ...ownership,
    grade: words.grade,
    standing_at: evidenceSince(words, fromTheStart),
    established_at: evidenceSince(words, fromTheStart),
    version: 1,
    version_hash: hash,
    declaration: JSON.stringify(kept),
    extensions: kept.extensions,
    document,
    words_at: now,
    first_seen_at: now,
    updated_at: now
  }
}

export class Versions extends Context.Service<
  Versions,
  {
    readonly bodyOf: (words: Omit<DeclaredText, "grade">) => Body
    /** The row of a first listing with its words; undefined when another transaction has listed it. */
    readonly insert: (
      words: DeclaredText,
      ownership: OwnershipColumns,
      now: Date
    ) => Effect.Effect<bigint | undefined, SqlError.SqlError>
    /** Makes the words the newest version; the caller has locked the row and checked the grade. */
    readonly apply: (
      row: Pick<ResourceRow, "id" | "version">,
      words: DeclaredText,
      now: Date
    ) => Effect.Effect<void, SqlError.SqlError>
    /** Stores words of a grade that equal those shown. */
    readonly keep: (id: bigint, words: DeclaredText, now: Date) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Versions") {
  static readonly layer = Layer.effect(
    Versions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto

      const bodyOf = ({ identity, kept, options }: Omit<DeclaredText, "grade">): Body => {
        const body = encodeBody(identity, kept, options)
        return { document: JSON.stringify(body), hash: versionHash(crypto, body) }
      }

      const insert = Effect.fnUntraced(function* (words: DeclaredText, ownership: OwnershipColumns, now: Date) {
        const body = bodyOf(words)
        const columns = rowOf(crypto, words, body, ownership, now)
        const [row] = yield* sql<{ id: bigint }>`insert into catalog_resources ${sql.insert(columns)}
          on conflict (key) do nothing returning id`
        if (row === undefined) return undefined
        yield* changeOptions(sql, row.id, [], words.options, now)
        yield* insertVersion(sql, row.id, 1, words, body, now)
        yield* keepWords(sql, row.id, words, body, now)
        return row.id
      })

      const apply = Effect.fnUntraced(function* (
        { id, version }: Pick<ResourceRow, "id" | "version">,
        words: DeclaredText,
        now: Date
      ) {
        const { identity, kept } = words
        const body = bodyOf(words)
        yield* voidDeadProbes(sql, id, words)
        const isRepriced = yield* changeOptions(sql, id, yield* liveOptions(sql, id), words.options, now)
        yield* insertVersion(sql, id, version + 1, words, body, now)
        yield* keepWords(sql, id, words, body, now)
        // A dynamic route may rename its parts; it is the same route.
        const { resource } = identity
        yield* sql`update catalog_resources set resource = ${resource}, resource_key = ${resourceKey(crypto, resource)},
          version = ${version + 1}, version_hash = ${body.hash}, declaration = ${JSON.stringify(kept)}::jsonb,
          grade = ${words.grade}, extensions = ${kept.extensions}, document = ${body.document}, updated_at = ${now},
          standing_at = coalesce(standing_at, ${evidenceSince(words, now)}),
          established_at = coalesce(established_at, ${evidenceSince(words, now)}),
          words_at = case when ${saidOf(sql, "declaration->'about'")} is distinct from
            ${saidOf(sql, sql`${JSON.stringify(kept.about)}::jsonb`)} then ${now} else words_at end,
          price_changed_at = case when ${isRepriced} then ${now} else price_changed_at end
          where id = ${id}`
      })

      const keep = Effect.fnUntraced(function* (id: bigint, words: DeclaredText, now: Date) {
        yield* voidDeadProbes(sql, id, words)
        yield* keepWords(sql, id, words, bodyOf(words), now)
        yield* sql`update catalog_resources set grade = ${words.grade},
          standing_at = coalesce(standing_at, ${evidenceSince(words, now)}),
          established_at = coalesce(established_at, ${evidenceSince(words, now)}) where id = ${id}`
      })

      return Versions.of({ bodyOf, insert, apply, keep })
    })
  )
}

/** The text of a listing, of its description as JSON; a copy has the same. */
const saidOf = (sql: SqlClient.SqlClient, about: string | Statement.Fragment) => {
  const said = typeof about === "string" ? sql.literal(about) : about
  return sql`concat_ws(' ', ${said}->>'serviceName', ${said}->>'description', ${said}->>'tags')`
}

const evidenceSince = ({ grade, isFree }: DeclaredText, now: Date): Date | null =>
  grade === "claimed" || isFree === true ? null : now

const sameOption = (a: NamedOption, b: NamedOption): boolean =>
  optionName(a) === optionName(b) && canonicalJson(a.option) === canonicalJson(b.option)

const pricesOf = (options: ReadonlyArray<NamedOption>): string =>
  canonicalJson(options.map((one) => [optionName(one), one.amount].join(" ")).toSorted())

/** Retires withdrawn options and adds new ones; true if the price has changed. */
const changeOptions = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  id: bigint,
  live: ReadonlyArray<LiveOption>,
  options: ReadonlyArray<NamedOption>,
  now: Date
) {
  const gone = live.filter((old) => !options.some((option) => sameOption(option, old)))
  for (const one of gone) yield* sql`update catalog_options set retired_at = ${now} where id = ${one.id}`
  for (const one of options.filter((option) => !live.some((old) => sameOption(option, old)))) {
    const { amount, asset, network, operation, option, payTo, scheme } = one
    yield* sql`insert into catalog_options ${sql.insert({
      resource_id: id,
      operation,
      scheme,
      network,
      asset,
      amount,
      pay_to: payTo,
      option: JSON.stringify(option),
      first_seen_at: now
    })}`
  }
  return live.length > 0 && pricesOf(live) !== pricesOf(options)
})

const payToOf = ({ options }: DeclaredText): string => options[0]?.payTo ?? ""

const insertVersion = (
  sql: SqlClient.SqlClient,
  id: bigint,
  version: number,
  words: DeclaredText,
  { document, hash }: Body,
  now: Date
) =>
  sql`insert into catalog_versions ${sql.insert({
    resource_id: id,
    version,
    version_hash: hash,
    document,
    pay_to: payToOf(words),
    grade: words.grade,
    at: now
  })}`

const keepWords = (sql: SqlClient.SqlClient, id: bigint, words: DeclaredText, { document, hash }: Body, now: Date) =>
  sql`insert into catalog_words ${sql.insert({
    resource_id: id,
    grade: words.grade,
    pay_to: payToOf(words),
    version_hash: hash,
    document,
    at: now
  })} on conflict (resource_id, grade) do update set pay_to = excluded.pay_to, version_hash = excluded.version_hash,
    document = excluded.document, at = excluded.at`
