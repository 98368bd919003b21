// One declaration that a payment carried, taken into the catalog in one short transaction that locks this resource and
// nothing else. A first one lists the resource, provisionally owned by its recipient; one by another recipient is kept
// as a claim and the origin is asked; a changed one makes a version; an unchanged one writes nothing (S18, S22, S23,
// S256, decisions 4).
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Facts } from "../../../kernel/Facts.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { CatalogValues } from "../Config.ts"
import type { Declaration, PublicReason } from "../declaration/Declaration.ts"
import { mergeDeclaration, type LiveOption, type Merged } from "./mergeDeclaration.ts"
import { encodeBody, identityKey, resourceKey, versionHash } from "./ResourceWire.ts"
import {
  liveOptions,
  lockResource,
  moveState,
  recordMove,
  requestProbe,
  type ResourceRow,
  tellChange
} from "./Resources.ts"

export interface Recorded {
  readonly decision: "listed" | "updated" | "unchanged" | "held" | "rejected"
  readonly reason?: PublicReason
  /** For operators. */
  readonly detail?: string
  readonly resourceId: bigint | undefined
  /** Of the resource as it is now, when it is listed. */
  readonly versionHash?: string
}

export interface RecordOptions {
  readonly sql: SqlClient.SqlClient
  readonly facts: Facts["Service"]
  readonly crypto: Crypto["Service"]
  readonly config: CatalogValues
}

export interface Observed {
  readonly stage: "verified" | "settled"
  readonly payer: string
  readonly now: Date
}

/** One payer's part of what a recipient may list in a day. */
const payerPart = 8

const unavailable = (detail: string, resourceId?: bigint): Recorded => ({
  decision: "rejected",
  reason: "catalog_unavailable",
  detail,
  resourceId
})

export const makeRecorder = ({ config, crypto, facts, sql }: RecordOptions) => {
  /** Counts a use of a bounded good; false, and nothing counted, when today's are used up. */
  const takeQuota = (subject: string, now: Date, max: number, amount = 1) =>
    amount > max
      ? Effect.succeed(false)
      : Effect.map(
          sql`insert into catalog_quotas (day, subject, used)
            values (${now.toISOString().slice(0, 10)}::date, ${subject}, ${amount})
        on conflict (day, subject) do update set used = catalog_quotas.used + excluded.used
          where catalog_quotas.used + excluded.used <= ${max} returning 1`,
          (rows) => rows.length > 0
        )

  /**
   * Of the payer first, and of less: whoever pays can name any recipient, and must not use up by itself what that one
   * may list. The payer's share is spent also when the recipient's is used up.
   */
  const takeShares = Effect.fnUntraced(function* (
    good: string,
    declaration: Declaration,
    { now, payer }: Observed,
    max: number,
    amount = 1
  ) {
    return (
      (yield* takeQuota(`${good} of payer ${payer}`, now, Math.max(1, Math.floor(max / payerPart)), amount)) &&
      (yield* takeQuota(`${good} for recipient ${declaration.terms.payTo}`, now, max, amount))
    )
  })

  const takeBytes = (document: string, declaration: Declaration, observed: Observed) =>
    takeShares("bytes", declaration, observed, config.declaredBytesPerDayMax, document.length)

  const isListable = (observed: Observed) => config.indexOn === "verified" || observed.stage === "settled"

  const bodyOf = (declaration: Declaration, merged: Merged) => {
    const body = encodeBody(declaration.identity, merged.kept, merged.options)
    return { document: JSON.stringify(body), hash: versionHash(crypto, body) }
  }

  const insertOption = (id: bigint, declaration: Declaration, { added }: Merged, now: Date) => {
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

  const insertVersion = (id: bigint, version: number, hash: string, document: string, payTo: string, now: Date) =>
    sql`insert into catalog_versions
      ${sql.insert({ resource_id: id, version, version_hash: hash, document, pay_to: payTo, at: now })}`

  /** None when somebody else listed it in the meantime. */
  const list = Effect.fnUntraced(function* (declaration: Declaration, observed: Observed) {
    const { identity, terms } = declaration
    const { now } = observed
    if (!(yield* takeShares("listings", declaration, observed, config.newResourcesPerDayMax)))
      return unavailable("today's new listings are used up")
    const merged = mergeDeclaration(undefined, [], declaration)
    const { document, hash } = bodyOf(declaration, merged)
    if (!(yield* takeBytes(document, declaration, observed))) return unavailable("today's bytes are used up")
    const [row] = yield* sql<{ id: bigint }>`insert into catalog_resources ${sql.insert({
      key: identityKey(crypto, identity),
      resource_key: resourceKey(crypto, identity.resource),
      type: identity.type,
      resource: identity.resource,
      tool_name: identity.toolName,
      origin: identity.origin ?? null,
      state: "active",
      state_changed_at: now,
      verification: isListable(observed) ? "payment_observed" : "unverified",
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
    yield* insertOption(row.id, declaration, merged, now)
    yield* insertVersion(row.id, 1, hash, document, terms.payTo, now)
    yield* sql`insert into catalog_activity ${sql.insert({ resource_id: row.id, last_seen_at: now })}`
    yield* recordMove(sql, row.id, now, {
      by: "facilitator",
      move: "listed",
      from: null,
      to: "active",
      reason: "payment_observed"
    })
    if (config.probeOrigins) yield* requestProbe(sql, row.id, now, config.probePauseSeconds)
    yield* tellChange(facts, row.id, "listed")
    return { decision: isListable(observed) ? "listed" : "held", resourceId: row.id, versionHash: hash } as Recorded
  })

  const claim = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, now: Date) {
    const { payTo } = declaration.terms
    // Eight claims are kept: enough for the origin to choose from, too few to fill a disk with.
    yield* sql`delete from catalog_claims where resource_id = ${row.id} and pay_to in (
      select pay_to from catalog_claims where resource_id = ${row.id} and pay_to <> ${payTo} order by last_seen_at desc
        offset 7)`
    yield* sql`insert into catalog_claims ${sql.insert({
      resource_id: row.id,
      pay_to: payTo,
      declaration: JSON.stringify({ ...declaration, terms: { ...declaration.terms, amount: null } }),
      option: "{}",
      first_seen_at: now,
      last_seen_at: now
    })} on conflict (resource_id, pay_to) do update set declaration = excluded.declaration, last_seen_at =
      excluded.last_seen_at`
    if (config.probeOrigins) yield* requestProbe(sql, row.id, now, config.probePauseSeconds)
    return {
      decision: "rejected",
      reason: "payto_conflict",
      detail: `declared by ${payTo}, owned by another recipient (${row.ownership})`,
      resourceId: row.id
    } as Recorded
  })

  const retire = (option: LiveOption | undefined, now: Date) =>
    option === undefined ? Effect.void : sql`update catalog_options set retired_at = ${now} where id = ${option.id}`

  /** Makes the declaration the resource's newest version; the caller has locked the row and checked the owner. */
  const applyVersion = Effect.fnUntraced(function* (
    row: ResourceRow,
    declaration: Declaration,
    merged: Merged,
    now: Date
  ) {
    const { document, hash } = bodyOf(declaration, merged)
    yield* retire(merged.retired, now)
    yield* insertOption(row.id, declaration, merged, now)
    yield* insertVersion(row.id, row.version + 1, hash, document, declaration.terms.payTo, now)
    // A dynamic route may name its parts otherwise from now on; it is the same route.
    const { resource } = declaration.identity
    yield* sql`update catalog_resources set resource = ${resource}, resource_key = ${resourceKey(crypto, resource)},
      version = ${row.version + 1}, version_hash = ${hash}, declaration = ${JSON.stringify(merged.kept)}::jsonb,
      extensions = ${merged.kept.extensions}, document = ${document}, updated_at = ${now} where id = ${row.id}`
  })

  const update = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, observed: Observed) {
    const { now } = observed
    if (row.state === "removed") return unavailable(`removed: ${row.state_reason}`, row.id)
    if (!row.pay_tos.includes(declaration.terms.payTo)) return yield* claim(row, declaration, now)
    if (row.state === "quarantined" && row.state_reason !== "origin_names_another") {
      return {
        decision: "rejected",
        reason: "catalog_unavailable",
        detail: `quarantined: ${row.state_reason}`,
        resourceId: row.id
      } as Recorded
    }
    const merged = mergeDeclaration(row.declaration, yield* liveOptions(sql, row.id), declaration)
    const { document, hash } = bodyOf(declaration, merged)
    const changed = hash !== row.version_hash
    if (changed && !isListable(observed)) return { decision: "held", resourceId: row.id } as Recorded
    if (changed && !(yield* takeQuota(`versions ${row.id}`, now, config.versionsPerDayMax))) {
      return unavailable("today's versions of this resource are used up", row.id)
    }
    if (changed && !(yield* takeBytes(document, declaration, observed)))
      return unavailable("today's bytes are used up", row.id)
    if (changed) yield* applyVersion(row, declaration, merged, now)
    const observedNow = row.verification === "unverified" && isListable(observed)
    if (observedNow) yield* sql`update catalog_resources set verification = 'payment_observed' where id = ${row.id}`
    const returns = row.state === "stale" || row.state === "quarantined"
    if (returns) {
      yield* moveState(sql, facts, row.id, now, {
        by: "facilitator",
        move: "returned",
        from: row.state,
        to: "active",
        reason: "payment_observed"
      })
    } else if (changed || observedNow) yield* tellChange(facts, row.id, changed ? "version" : "observed")
    const decision = changed
      ? "updated"
      : observedNow
        ? "listed"
        : row.verification === "unverified"
          ? "held"
          : "unchanged"
    return { decision, resourceId: row.id, versionHash: hash } as Recorded
  })

  const record = (declaration: Declaration, observed: Observed): Effect.Effect<Recorded, SqlError.SqlError> => {
    const key = identityKey(crypto, declaration.identity)
    const once = Effect.gen(function* () {
      const row = yield* lockResource(sql, { key })
      return row === undefined ? yield* list(declaration, observed) : yield* update(row, declaration, observed)
    })
    // Listed by somebody else between the look and the insert: then it is there now.
    const twice = Effect.flatMap(once, (recorded) => (recorded === undefined ? once : Effect.succeed(recorded)))
    return inTransaction(twice).pipe(
      Effect.map((recorded) => recorded ?? unavailable("listed and gone at once")),
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.withSpan("catalog.record")
    )
  }

  return { record, applyVersion }
}
