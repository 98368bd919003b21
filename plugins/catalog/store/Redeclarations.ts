// A second declaration of a listed resource; the caller has locked its row. A declaration by another recipient is kept
// as a claim and the origin is probed. An equal one writes nothing. A different one creates a version only if its grade
// permits; otherwise the listing stays unchanged and the origin is probed (rules 4).
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { type CatalogValues, Config } from "../Config.ts"
import { type Declaration, type Identity, isSellersExtension } from "../declaration/Declaration.ts"
import { type Grade, mayDisplace } from "../declaration/Grade.ts"
import { Changes } from "./Changes.ts"
import { mergeDeclaration, type DeclaredText } from "./mergeDeclaration.ts"
import { type Claimant, Quotas } from "./Quotas.ts"
import { type Carrier, claimantOf, isFree, oversizedOf, type Recorded, rejected, unavailable } from "./Recorded.ts"
import {
  isDead,
  liveOptions,
  moveState,
  recordMove,
  requestProbe,
  type ResourceRow,
  revive,
  publishChange
} from "./Resources.ts"
import { Contenders } from "./Contenders.ts"
import { Versions } from "./Versions.ts"

/** Claims kept of one resource: enough for the origin to choose from, too few to fill a disk with. */
const claimsMax = 8

/**
 * True for words of a claim without a settlement if probes refuted their operation. A claim of another operation may
 * replace them. A dead origin does not refute anything.
 */
const isRefuted = (row: ResourceRow, { operation }: Declaration): boolean =>
  isDead(row) &&
  row.state_reason !== "origin_gone" &&
  row.grade === "claimed" &&
  row.ownership === "provisional" &&
  !row.has_evidence &&
  row.declaration.operations.every(({ method }) => method !== operation.method)

/** A resource that went stale unseen returns with a payment; a dead one returns when its origin answers. */
const isRevived = ({ state, state_reason }: ResourceRow): boolean =>
  state === "quarantined" || (state === "stale" && (state_reason ?? "not_seen") === "not_seen")

/**
 * The words that a declaration of this grade adds to. Words of a higher grade start from scratch. So do the first words
 * with evidence, if the listing still lacks an observed payment of the configured kind, or shows the words of a
 * recipient that the origin does not list. Words that the origin has served since its quarantine stay.
 */
const baseWords = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  row: ResourceRow,
  declaration: Declaration,
  grade: Grade,
  listable: boolean
) {
  const isFirst =
    (row.state === "quarantined" && !row.has_evidence) ||
    (listable && isRefuted(row, declaration)) ||
    (row.verification === "unverified" && row.grade !== "origin" && listable)
  if (isFirst) return { before: undefined, isFirst }
  const before = { kept: row.declaration, options: yield* liveOptions(sql, row.id) }
  return { before: grade === row.grade || grade === "claimed" ? before : undefined, isFirst }
})

/** Quarantined for another reason than that the recipient the origin names had not been paid. */
const isClosed = ({ state, state_reason }: ResourceRow): boolean =>
  state === "quarantined" && state_reason !== "origin_names_another"

const returning = {
  by: "facilitator",
  move: "returned",
  to: "active",
  reason: "payment_observed"
} as const

/** Keeps another recipient's claim; a free claim never replaces a kept one of that recipient. */
const keepClaim = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  id: bigint,
  declaration: Declaration,
  carrier: Carrier
) {
  const { now } = carrier
  const { payTo } = declaration.terms
  yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to in (
    select pay_to from catalog_claims where resource_id = ${id} and pay_to <> ${payTo}
    order by last_seen_at desc offset ${claimsMax - 1})`
  yield* sql`insert into catalog_claims ${sql.insert({
    resource_id: id,
    pay_to: payTo,
    declaration: JSON.stringify({ ...declaration, terms: { ...declaration.terms, amount: null } }),
    option: "{}",
    first_seen_at: now,
    last_seen_at: now
  })} on conflict (resource_id, pay_to) do update set last_seen_at = excluded.last_seen_at,
    declaration = case when ${isFree(carrier)} then catalog_claims.declaration else excluded.declaration end`
})

/** Rewrites the row of an earlier version without the extensions that a buyer may add. */
const restated = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  versions: Versions["Service"],
  row: ResourceRow,
  { origin }: Identity,
  now: Date
) {
  const extensions = row.declaration.extensions.filter(isSellersExtension)
  if (extensions.length === row.declaration.extensions.length) return row
  const kept = { ...row.declaration, extensions }
  const identity: Identity = { type: row.type, resource: row.resource, toolName: row.tool_name, origin }
  const words: DeclaredText = { grade: row.grade, identity, kept, options: yield* liveOptions(sql, row.id) }
  yield* versions.apply(row, words, now)
  return { ...row, declaration: kept, version: row.version + 1, version_hash: versions.bodyOf(words).hash }
})

const conflicting = (row: ResourceRow, payTo: string): Recorded =>
  rejected("payto_conflict", `declared by ${payTo}, owned by another recipient (${row.ownership})`, row.id)

const differing = (row: ResourceRow, { grade }: Carrier): Recorded => ({
  decision: "held",
  reason: "awaits_origin",
  detail: `${grade} words differ from the ${row.grade} ones that are listed`,
  resourceId: row.id
})

const operationsOf = ({ operations }: Pick<DeclaredText["kept"], "operations">): string =>
  operations.map(({ method }) => method).join(" ")

/** Words of a higher grade or of another operation void the probes that found the former ones dead. */
const isOther = (row: ResourceRow, { grade, kept }: DeclaredText, changed: boolean): boolean =>
  (mayDisplace(grade, row.grade) && grade !== row.grade) ||
  (changed && operationsOf(row.declaration) !== operationsOf(kept))

const taken = (decision: Recorded["decision"], { id, stateHash }: ResourceRow, versionHash: string): Recorded => ({
  decision,
  resourceId: id,
  versionHash,
  // Whatever their grade, payments under these words are evidence for them.
  claim: versionHash,
  ...(decision === "unchanged" ? { stateHash } : {})
})

/**
 * Whether a settlement under these words may displace the shown ones. On a claimed listing: any claim, and another
 * recipient's words at any grade. On other words without evidence, such as those that an account signed at no cost:
 * only another recipient's declared words.
 */
const isOpen = (row: ResourceRow, { terms }: Declaration, { grade }: Carrier): boolean => {
  const isOfAnother = !row.pay_tos.includes(terms.payTo)
  if (row.grade === "claimed") return isOfAnother || grade === "claimed"
  return isOfAnother && grade === "declared" && !row.has_evidence
}

/** Records words whose settlement may displace the shown ones. */
const contend = Effect.fnUntraced(function* (
  contenders: Contenders["Service"],
  row: ResourceRow,
  declaration: Declaration,
  carrier: Carrier,
  recorded: Recorded
) {
  if (!isOpen(row, declaration, carrier)) return recorded
  const claim = yield* contenders.keep(row.id, declaration, carrier)
  return { ...recorded, claim, isContender: true as const }
})

/** The recipient that was listed has authorized another one. */
const moveRecipient = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, pay_tos, state }: ResourceRow,
  payTo: string,
  now: Date
) {
  yield* sql`update catalog_resources set pay_tos = ${[payTo]} where id = ${id}`
  yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to = ${payTo}`
  const move = { by: "facilitator", move: "displaced", reason: "recipient_authorized" } as const
  yield* recordMove(sql, id, now, { ...move, from: state, to: state, detail: `${pay_tos.join(",")} → ${payTo}` })
})

/** Makes its words the newest version, as far as the day's quotas go. */
const replace = Effect.fnUntraced(function* (
  {
    config,
    quotas,
    versions
  }: {
    readonly config: CatalogValues
    readonly quotas: Quotas["Service"]
    readonly versions: Versions["Service"]
  },
  row: ResourceRow,
  words: DeclaredText,
  claimant: Claimant
) {
  const { document } = versions.bodyOf(words)
  const oversized = oversizedOf(document, config, row.id)
  if (oversized !== undefined) return oversized
  if (!(yield* quotas.takeVersion(row.id, claimant.now)))
    return unavailable("today's versions of this resource are used up", row.id)
  const share = yield* quotas.takeBytes(claimant, document.length)
  if (share !== "taken") return unavailable("today's bytes are used up", row.id)
  return yield* versions.apply(row, words, claimant.now)
})

/** Other effects of a declaration by the owner, whether or not its words were accepted. */
const settleRow = Effect.fnUntraced(function* (
  { facts, sql }: { readonly facts: Facts["Service"]; readonly sql: SqlClient.SqlClient },
  row: ResourceRow,
  changed: boolean,
  listable: boolean,
  now: Date
) {
  const observedNow = row.verification === "unverified" && listable
  if (observedNow) yield* sql`update catalog_resources set verification = 'payment_observed' where id = ${row.id}`
  if (isRevived(row)) {
    yield* moveState(sql, facts, row.id, now, { ...returning, from: row.state })
  } else if (changed || observedNow) yield* publishChange(facts, row.id, changed ? "version" : "observed")
  if (changed) return "updated"
  if (observedNow) return "listed"
  return row.verification === "unverified" ? "held" : "unchanged"
})

export class Redeclarations extends Context.Service<
  Redeclarations,
  {
    /** The recipient that is listed has authorized it: it names another one. */
    readonly rotate: (
      row: ResourceRow,
      declaration: Declaration,
      carrier: Carrier
    ) => Effect.Effect<Recorded, SqlError.SqlError>
    readonly take: (
      row: ResourceRow,
      declaration: Declaration,
      carrier: Carrier
    ) => Effect.Effect<Recorded, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Redeclarations") {
  static readonly layer = Layer.effect(
    Redeclarations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const quotas = yield* Quotas
      const { asked } = yield* Changes
      const versions = yield* Versions
      const contenders = yield* Contenders

      /** Schedules a probe of the origin, because it may have changed; the listing stays unchanged. */
      const ask = Effect.fnUntraced(function* <A>(row: ResourceRow, isFree: boolean, now: Date, recorded: A) {
        yield* requestProbe(sql, row.id, config, { isFree, now })
        yield* asked
        return recorded
      })

      const claim = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, carrier: Carrier) {
        const { payTo } = declaration.terms
        yield* keepClaim(sql, row.id, declaration, carrier)
        // A payer that pays another recipient may pay itself.
        return yield* ask(row, true, carrier.now, conflicting(row, payTo))
      })

      /** Changes the listing's recipient: its words are new, and its evidence stays. */
      const rotate = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, carrier: Carrier) {
        const words = { ...mergeDeclaration(undefined, declaration, "declared"), isFree: true }
        const faulty = yield* replace({ config, quotas, versions }, row, words, claimantOf(declaration, carrier))
        if (faulty !== undefined) return faulty
        yield* moveRecipient(sql, row, declaration.terms.payTo, carrier.now)
        yield* settleRow({ facts, sql }, row, true, true, carrier.now)
        return yield* ask(row, true, carrier.now, taken("updated", row, versions.bodyOf(words).hash))
      })

      const take = Effect.fnUntraced(function* (found: ResourceRow, declaration: Declaration, carrier: Carrier) {
        const { grade, now, stage } = carrier
        if (found.state === "removed") return unavailable(`removed: ${found.state_reason}`, found.id)
        if (!found.pay_tos.includes(declaration.terms.payTo))
          return yield* contend(contenders, found, declaration, carrier, yield* claim(found, declaration, carrier))
        if (isClosed(found)) return unavailable(`quarantined: ${found.state_reason}`, found.id)
        const row = yield* restated(sql, versions, found, declaration.identity, now)
        const listable = config.indexOn === "verified" || stage === "settled"
        const { before, isFirst } = yield* baseWords(sql, row, declaration, grade, listable)
        const words = { ...mergeDeclaration(before, declaration, grade), isFree: isFree(carrier) }
        const { hash } = versions.bodyOf(words)
        const changed = hash !== row.version_hash
        if (changed && !listable) return { decision: "held", resourceId: row.id } as Recorded
        if (changed && !isFirst && !mayDisplace(grade, row.grade)) {
          if (row.state !== "active" || row.verification === "unverified")
            yield* settleRow({ facts, sql }, row, false, listable, now)
          return yield* contend(
            contenders,
            row,
            declaration,
            carrier,
            yield* ask(row, isFree(carrier), now, differing(row, carrier))
          )
        }
        const faulty = changed
          ? yield* replace({ config, quotas, versions }, row, words, claimantOf(declaration, carrier))
          : undefined
        if (faulty !== undefined) return faulty
        if (!changed && mayDisplace(grade, row.grade) && grade !== row.grade) yield* versions.keep(row.id, words, now)
        if (isDead(row) && isOther(row, words, changed)) yield* revive(sql, facts, row, now, "words_changed")
        const decision = yield* settleRow({ facts, sql }, row, changed, listable, now)
        return taken(decision, found, hash)
      })

      return Redeclarations.of({ rotate, take })
    })
  ).pipe(Layer.provide(Contenders.layer))
}
