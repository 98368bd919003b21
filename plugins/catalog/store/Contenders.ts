// Claims that contend for one listing. Words that no payment was made under are replaced by words that settled, to the
// payTo and at the price that they name. Words that were paid under stay: no number of payers displaces them, since
// accounts and payments to oneself cost next to nothing; the origin or the recipient's signature changes them (rules
// 4). Only if nothing was paid under them for thirty days, words that were paid under for as long replace them.
// Payments cannot change declared and origin words. Every claim that differs from the shown words is kept here,
// bounded. Payers are stored with sales, and a listing changes its words, and its recipient while its ownership is
// provisional, in a separate transaction.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { claimOf, mergeDeclaration } from "./mergeDeclaration.ts"
import type { Carrier } from "./Recorded.ts"
import { lockResource, recordMove, requestProbe, type ResourceRow, revive, publishChange } from "./Resources.ts"
import { Versions } from "./Versions.ts"
import { fullAgeDays, isOutsideCircles, weighEvidence } from "./weighEvidence.ts"

/** Maximum claims of one resource. Settled claims evict verified ones, then the newest evict the oldest. */
const contendersMax = 16

interface Contender {
  readonly claim: string
  readonly pay_to: string
  readonly declaration: Declaration
}

/**
 * Whether payments may decide: over claims, and over words that an account signed at no cost, for another recipient's
 * words.
 */
const isOpen = ({ grade, has_evidence }: ResourceRow): boolean => grade === "claimed" || !has_evidence

/** The claim that replaces the shown words; at equal risk, the first. */
const winnerOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { id, version_hash }: ResourceRow, now: Date) {
  const since = new Date(now.getTime() - fullAgeDays * 86_400_000)
  const [winner] = yield* sql<Contender>`with paid as (
      select p.claim, sum(p.risked) as risked, min(p.first_at) as first_at from catalog_claim_payers p
      where p.resource_id = ${id} and p.at > ${since} and ${isOutsideCircles(sql)} group by p.claim
    ) select c.claim, c.pay_to, c.declaration from catalog_contenders c
      join paid n on n.claim = c.claim join catalog_resources r on r.id = c.resource_id
    where c.resource_id = ${id} and c.claim <> ${version_hash}
      and (r.ownership = 'provisional' or c.pay_to = any(r.pay_tos))
      and (r.grade = 'claimed' or c.pay_to <> all(r.pay_tos))
      and (r.standing_at is null or n.first_at <= ${since})
      and not exists (select 1 from paid where claim = ${version_hash})
    order by n.risked desc, c.first_at limit 1`
  return winner
})

/** The recipient changes: sales count for the recipient that they paid, and it was seen with them. */
const moveOwner = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  row: ResourceRow,
  { claim, pay_to }: Contender,
  now: Date
) {
  const { id, state } = row
  yield* sql`update catalog_resources set pay_tos = ${[pay_to]} where id = ${id}`
  yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to = ${pay_to}`
  yield* sql`update catalog_sales set counts = false where resource_id = ${id}`
  yield* sql`delete from catalog_payers where resource_id = ${id}`
  yield* sql`insert into catalog_payers (resource_id, payer, settled, last_settled_at, counts, risked)
    select resource_id, payer, 1, at, true, risked from catalog_claim_payers
    where resource_id = ${id} and claim = ${claim}`
  yield* sql`update catalog_activity a set settled = p.payers, payers = p.payers, earned = p.payers,
      recent_settled = p.payers, recent_payers = p.payers, recent_at = ${now}, last_settled_at = p.at,
      last_seen_at = greatest(a.last_seen_at, p.at), risked = p.risked
    from (select count(*) as payers, max(at) as at, sum(risked) as risked from catalog_claim_payers
      where resource_id = ${id} and claim = ${claim}) p where a.resource_id = ${id}`
  const detail = `${row.pay_tos.join(",")} → ${pay_to}`
  const move = { by: "facilitator", move: "displaced", from: state, to: state, reason: "settled_claim" } as const
  yield* recordMove(sql, id, now, { ...move, detail })
})

export class Contenders extends Context.Service<
  Contenders,
  {
    /** Keeps a claim that differs from the shown words, and returns its hash. In the caller's transaction. */
    readonly keep: (
      id: bigint,
      declaration: Declaration,
      carrier: Pick<Carrier, "isDust" | "now" | "stage">
    ) => Effect.Effect<string, SqlError.SqlError>
    /** Shows a paid claim instead of words that no payment was made under; true if any listing changed. */
    readonly contest: (ids: ReadonlyArray<bigint>, now: Date) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Contenders") {
  static readonly layer = Layer.effect(
    Contenders,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const crypto = yield* Crypto
      const versions = yield* Versions

      const keep = Effect.fnUntraced(function* (
        id: bigint,
        declaration: Declaration,
        { isDust, now, stage }: Pick<Carrier, "isDust" | "now" | "stage">
      ) {
        const claim = claimOf(crypto, declaration)
        yield* sql`delete from catalog_contenders where resource_id = ${id} and claim in (
          select claim from catalog_contenders where resource_id = ${id} and claim <> ${claim}
          order by settled_at desc nulls last, last_at desc offset ${contendersMax - 1})`
        yield* sql`insert into catalog_contenders ${sql.insert({
          resource_id: id,
          claim,
          pay_to: declaration.terms.payTo,
          declaration: JSON.stringify({ ...declaration, terms: { ...declaration.terms, amount: null } }),
          first_at: now,
          last_at: now,
          settled_at: stage === "settled" && isDust !== true ? now : null
        })} on conflict (resource_id, claim) do update set last_at = excluded.last_at,
          settled_at = coalesce(excluded.settled_at, catalog_contenders.settled_at)`
        return claim
      })

      const contestOne = Effect.fnUntraced(function* (id: bigint, now: Date) {
        yield* sql`select 1 from catalog_activity where resource_id = ${id} for update`
        const row = yield* lockResource(sql, { id })
        if (row === undefined || !isOpen(row) || (row.state !== "active" && row.state !== "stale")) return false
        const winner = yield* winnerOf(sql, row, now)
        if (winner === undefined) return false
        const { declaration } = winner
        const terms = { ...declaration.terms, amount: Option.none() }
        yield* versions.apply(row, mergeDeclaration(undefined, { ...declaration, terms }, "claimed"), now)
        if (!row.pay_tos.includes(winner.pay_to)) yield* moveOwner(sql, row, winner, now)
        // The evidence was for other words, so it restarts.
        yield* sql`update catalog_resources set verification = 'payment_observed', standing_at = null,
          established_at = null where id = ${id}`
        yield* weighEvidence(sql, [id], now)
        if (row.state === "stale") yield* revive(sql, facts, row, now, "payment_settled")
        yield* requestProbe(sql, id, config, { isFree: false, now })
        yield* publishChange(facts, id, "version")
        return true
      })

      const contest = Effect.fnUntraced(function* (ids: ReadonlyArray<bigint>, now: Date) {
        const open = yield* sql<{ id: bigint }>`select r.id from catalog_resources r
          where (r.grade = 'claimed' or r.standing_at is null)
          and r.id in (select value::bigint from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb))
          and exists (select 1 from catalog_contenders c where c.resource_id = r.id and c.claim <> r.version_hash)
          order by r.id`
        const changed = yield* Effect.forEach(open, ({ id }) => inTransaction(contestOne(id, now)))
        return changed.some(Boolean)
      })

      return Contenders.of({
        keep,
        contest: (ids, now) => Effect.provideService(contest(ids, now), SqlClient.SqlClient, sql)
      })
    })
  ).pipe(Layer.provide(Versions.layer))
}
