// Applies each verdict on an origin's statement, in the caller's transaction: the owner is proven, displaced with the
// origin's own words or the claimant's declaration, or contradicted; each with its decision and its fact. If the origin
// only names a recipient, that is not evidence for words, price or URL. If the origin names another recipient than
// before, the seller has changed its account: words that have evidence stay, with the new recipient.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration, type DeclaredText, type NamedOption } from "../store/mergeDeclaration.ts"
import {
  liveOptions,
  type StateChange,
  moveState,
  recordMove,
  type ResourceRow,
  publishChange
} from "../store/Resources.ts"
import { Versions } from "../store/Versions.ts"
import { isOutsideCircles, weighEvidence } from "../store/weighEvidence.ts"
import type { Verdict } from "./decideOwnership.ts"

export interface ClaimRow {
  readonly pay_to: string
  readonly declaration: Declaration
}

/** The state of a resource before a verdict, in addition to its row. */
interface Evidence {
  readonly claims: ReadonlyArray<ClaimRow>
  /** The origin's own text for the resource. */
  readonly words: DeclaredText | undefined
}

const setOwner = (sql: SqlClient.SqlClient, id: bigint, payTos: ReadonlyArray<string>, now: Date) =>
  Effect.gen(function* () {
    yield* sql`update catalog_resources set ownership = 'proven', pay_tos = ${payTos} where id = ${id}`
    yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to = any(${payTos})`
    // Retire options that pay other recipients.
    yield* sql`update catalog_options set retired_at = ${now} where resource_id = ${id} and retired_at is null
      and pay_to <> all(${payTos})`
  })

/** The words that the listing has, paid to another recipient. */
const paidTo = (row: ResourceRow, live: ReadonlyArray<NamedOption>, payTo: string): DeclaredText => ({
  grade: row.grade,
  identity: { type: row.type, resource: row.resource, toolName: row.tool_name, origin: row.origin ?? undefined },
  kept: row.declaration,
  isFree: true,
  options: live.map((one) => ({ ...one, payTo, option: { ...one.option, payTo } }))
})

/** Text from the claimant's payments: from settled ones, otherwise from verified ones. */
const claimedBy = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id }: ResourceRow,
  by: string,
  claims: ReadonlyArray<ClaimRow>
) {
  const [paid] = yield* sql<{ declaration: Declaration }>`select c.declaration from catalog_contenders c
    cross join lateral (select sum(p.risked) as risked from catalog_claim_payers p
      where p.resource_id = c.resource_id and p.claim = c.claim and ${isOutsideCircles(sql)}) n
    where c.resource_id = ${id} and c.pay_to = ${by} and n.risked is not null
    order by n.risked desc, c.first_at limit 1`
  const { declaration } = paid ?? claims.find(({ pay_to }) => pay_to === by)!
  return mergeDeclaration(
    undefined,
    { ...declaration, terms: { ...declaration.terms, amount: Option.none() } },
    "claimed"
  )
})

const removal: Omit<StateChange, "from"> = {
  by: "origin",
  move: "removed",
  to: "removed",
  reason: "delisted_by_origin"
}

/** The origin named its recipient before, and its words have evidence. */
const isRotated = ({ has_evidence, ownership }: ResourceRow): boolean => ownership === "proven" && has_evidence

const displacement = { by: "origin", move: "displaced", to: "active", reason: "origin_names_another" } as const

const contradiction = {
  by: "origin",
  move: "quarantined",
  to: "quarantined",
  reason: "origin_names_another"
} as const

export class Execution extends Context.Service<
  Execution,
  {
    readonly carryOut: (
      row: ResourceRow,
      verdict: Verdict,
      evidence: Evidence,
      now: Date
    ) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Execution") {
  static readonly layer = Layer.effect(
    Execution,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const versions = yield* Versions

      const forgetEvidence = (id: bigint) =>
        sql`update catalog_resources set standing_at = null, established_at = null where id = ${id}`

      const displace = Effect.fnUntraced(function* (
        row: ResourceRow,
        { by, payTos }: { readonly by: string; readonly payTos: ReadonlyArray<string> },
        { claims, words }: Evidence,
        now: Date
      ) {
        const live = yield* liveOptions(sql, row.id)
        yield* setOwner(sql, row.id, payTos, now)
        if (words === undefined && isRotated(row)) yield* versions.apply(row, paidTo(row, live, by), now)
        else if (words === undefined) {
          // The old owner's words are dropped with it. The claimant's own came with a payment, and are claimed.
          yield* versions.apply(row, yield* claimedBy(sql, row, by, claims), now)
          yield* forgetEvidence(row.id)
          yield* weighEvidence(sql, [row.id], now)
        }
        const detail = `${row.pay_tos.join(",")} → ${by}`
        yield* moveState(sql, facts, row.id, now, { ...displacement, from: row.state, detail })
      })

      const prove = Effect.fnUntraced(function* (row: ResourceRow, payTos: ReadonlyArray<string>, now: Date) {
        yield* setOwner(sql, row.id, payTos, now)
        const { state } = row
        const reason = "origin_names_owner"
        yield* recordMove(sql, row.id, now, { by: "origin", move: "proven", from: state, to: state, reason })
        yield* publishChange(facts, row.id, "proven")
      })

      /** Without a declaration from a recipient that the origin names, list the origin's own offer, or nothing. */
      const contradict = Effect.fnUntraced(function* (
        row: ResourceRow,
        payTos: ReadonlyArray<string>,
        words: DeclaredText | undefined,
        now: Date
      ) {
        const live = yield* liveOptions(sql, row.id)
        yield* setOwner(sql, row.id, payTos, now)
        const keepsWords = words === undefined && isRotated(row) && row.state === "active"
        if (keepsWords) yield* versions.apply(row, paidTo(row, live, payTos[0]!), now)
        else if (words === undefined) yield* forgetEvidence(row.id)
        const detail = `${row.pay_tos.join(",")} → ${payTos.join(",")}`
        const move = words === undefined && !keepsWords ? contradiction : displacement
        yield* moveState(sql, facts, row.id, now, { ...move, from: row.state, detail })
      })

      const carryOut = Effect.fnUntraced(function* (row: ResourceRow, verdict: Verdict, evidence: Evidence, now: Date) {
        switch (verdict._tag) {
          case "Nothing":
            return
          case "Removed":
            return yield* moveState(sql, facts, row.id, now, { ...removal, from: row.state })
          case "Proven":
            return yield* prove(row, verdict.payTos, now)
          case "Displaced":
            return yield* displace(row, verdict, evidence, now)
          case "Contradicted":
            return yield* contradict(row, verdict.payTos, evidence.words, now)
        }
      })

      return Execution.of({ carryOut })
    })
  )
}
