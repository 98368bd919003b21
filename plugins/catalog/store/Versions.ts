// The versions of a resource and the options that come and go with them, written in the caller's transaction. A version
// is the public body as it was served; its hash tells one from the next.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import type { LiveOption, Merged } from "./mergeDeclaration.ts"
import type { ResourceRow } from "./Resources.ts"
import { encodeBody, identityKey, resourceKey, versionHash } from "./ResourceWire.ts"

export interface Body {
  readonly document: string
  readonly hash: string
}

export class Versions extends Context.Service<
  Versions,
  {
    readonly bodyOf: (declaration: Declaration, merged: Merged) => Body
    /** The row of a first listing, its option and its first version; undefined when somebody else has listed it. */
    readonly insert: (
      declaration: Declaration,
      merged: Merged,
      verification: ResourceRow["verification"],
      now: Date
    ) => Effect.Effect<bigint | undefined, SqlError.SqlError>
    /** Makes the declaration the newest version; the caller has locked the row and checked the owner. */
    readonly apply: (
      row: ResourceRow,
      declaration: Declaration,
      merged: Merged,
      now: Date
    ) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Versions") {
  static readonly layer = Layer.effect(
    Versions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto

      const bodyOf = ({ identity }: Declaration, { kept, options }: Merged): Body => {
        const body = encodeBody(identity, kept, options)
        return { document: JSON.stringify(body), hash: versionHash(crypto, body) }
      }

      const insert = Effect.fnUntraced(function* (
        declaration: Declaration,
        merged: Merged,
        verification: ResourceRow["verification"],
        now: Date
      ) {
        const { identity, terms } = declaration
        const { document, hash } = bodyOf(declaration, merged)
        const [row] = yield* sql<{ id: bigint }>`insert into catalog_resources ${sql.insert({
          key: identityKey(crypto, identity),
          resource_key: resourceKey(crypto, identity.resource),
          type: identity.type,
          resource: identity.resource,
          tool_name: identity.toolName,
          origin: identity.origin ?? null,
          state: "active",
          state_changed_at: now,
          verification,
          pay_tos: [terms.payTo],
          version: 1,
          version_hash: hash,
          declaration: JSON.stringify(merged.kept),
          extensions: merged.kept.extensions,
          document,
          first_seen_at: now,
          updated_at: now
        })} on conflict (key) do nothing returning id`
        if (row === undefined) return undefined
        yield* insertOption(sql, row.id, declaration, merged, now)
        yield* insertVersion(sql, row.id, 1, hash, document, terms.payTo, now)
        return row.id
      })

      const apply = Effect.fnUntraced(function* (
        row: ResourceRow,
        declaration: Declaration,
        merged: Merged,
        now: Date
      ) {
        const { document, hash } = bodyOf(declaration, merged)
        const version = row.version + 1
        yield* retire(sql, merged.retired, now)
        yield* insertOption(sql, row.id, declaration, merged, now)
        yield* insertVersion(sql, row.id, version, hash, document, declaration.terms.payTo, now)
        // A dynamic route may name its parts otherwise from now on; it is the same route.
        const { resource } = declaration.identity
        yield* sql`update catalog_resources set resource = ${resource}, resource_key = ${resourceKey(crypto, resource)},
          version = ${version}, version_hash = ${hash}, declaration = ${JSON.stringify(merged.kept)}::jsonb,
          extensions = ${merged.kept.extensions}, document = ${document}, updated_at = ${now} where id = ${row.id}`
      })

      return Versions.of({ bodyOf, insert, apply })
    })
  )
}

const insertOption = (sql: SqlClient.SqlClient, id: bigint, declaration: Declaration, { added }: Merged, now: Date) => {
  if (added === undefined) return Effect.void
  const { amountText, asset, network, payTo, scheme } = declaration.terms
  return sql`insert into catalog_options ${sql.insert({
    resource_id: id,
    operation: added.operation,
    scheme,
    network,
    asset,
    amount: amountText,
    pay_to: payTo,
    option: JSON.stringify(added.option),
    first_seen_at: now
  })}`
}

const insertVersion = (
  sql: SqlClient.SqlClient,
  id: bigint,
  version: number,
  hash: string,
  document: string,
  payTo: string,
  now: Date
) =>
  sql`insert into catalog_versions
    ${sql.insert({ resource_id: id, version, version_hash: hash, document, pay_to: payTo, at: now })}`

const retire = (sql: SqlClient.SqlClient, option: LiveOption | undefined, now: Date) =>
  option === undefined ? Effect.void : sql`update catalog_options set retired_at = ${now} where id = ${option.id}`
