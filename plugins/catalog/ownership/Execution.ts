// Applies each verdict on an origin's statement, in the caller's transaction: the owner is proven, displaced with the
// origin's own words or the claimant's declaration, or contradicted; each with its decision and its fact.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration, type DeclaredText } from "../store/mergeDeclaration.ts"
import { type StateChange, moveState, recordMove, type ResourceRow, publishChange } from "../store/Resources.ts"
import { Versions } from "../store/Versions.ts"
import type { Verdict } from "./decideOwnership.ts"

export interface ClaimRow {
  readonly pay_to: string
  readonly declaration: Declaration
}

/** The state of a resource before a verdict, besides its row. */
export interface Evidence {
  readonly claims: ReadonlyArray<ClaimRow>
  /** What the origin itself says of the resource. */
  readonly words: DeclaredText | undefined
}

const setOwner = (sql: SqlClient.SqlClient, id: bigint, payTos: ReadonlyArray<string>, now: Date) =>
  Effect.gen(function* () {
    yield* sql`update catalog_resources set ownership = 'proven', pay_tos = ${payTos},
      standing_at = coalesce(standing_at, ${now}) where id = ${id}`
    yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to = any(${payTos})`
    // Options that pay other recipients are no longer options of this resource.
    yield* sql`update catalog_options set retired_at = ${now} where resource_id = ${id} and retired_at is null
      and pay_to <> all(${payTos})`
  })

const removal: Omit<StateChange, "from"> = {
  by: "origin",
  move: "removed",
  to: "removed",
  reason: "delisted_by_origin"
}

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

      const displace = Effect.fnUntraced(function* (
        row: ResourceRow,
        { by, payTos }: { readonly by: string; readonly payTos: ReadonlyArray<string> },
        { claims, words }: Evidence,
        now: Date
      ) {
        yield* setOwner(sql, row.id, payTos, now)
        // The old owner's words are dropped with it. The claimant's own came with a payment, and are claimed.
        if (words === undefined) {
          const { declaration } = claims.find(({ pay_to }) => pay_to === by)!
          const terms = { ...declaration.terms, amount: Option.none() }
          yield* versions.apply(row, mergeDeclaration(undefined, { ...declaration, terms }, "claimed"), now)
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

      /** No recipient that the origin names has declared it: what the origin offers is listed, or nothing is. */
      const contradict = Effect.fnUntraced(function* (
        row: ResourceRow,
        payTos: ReadonlyArray<string>,
        words: DeclaredText | undefined,
        now: Date
      ) {
        yield* setOwner(sql, row.id, payTos, now)
        const detail = `${row.pay_tos.join(",")} → ${payTos.join(",")}`
        const move = words === undefined ? contradiction : displacement
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
