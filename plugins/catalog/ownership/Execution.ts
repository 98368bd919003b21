// What each verdict on an origin's word does to the tables, in the caller's transaction: the owner is proven, displaced
// with the claimant's own declaration, or contradicted; each with its decision and its fact.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/Facts.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration } from "../store/mergeDeclaration.ts"
import { type Move, moveState, recordMove, type ResourceRow, tellChange } from "../store/Resources.ts"
import { Versions } from "../store/Versions.ts"
import type { Verdict } from "./decideOwnership.ts"

export interface ClaimRow {
  readonly pay_to: string
  readonly declaration: Declaration
}

const setOwner = (sql: SqlClient.SqlClient, id: bigint, payTos: ReadonlyArray<string>, now: Date) =>
  Effect.gen(function* () {
    yield* sql`update catalog_resources set ownership = 'proven', pay_tos = ${payTos} where id = ${id}`
    yield* sql`delete from catalog_claims where resource_id = ${id} and pay_to = any(${payTos})`
    // What others are to be paid is no option of this resource any more.
    yield* sql`update catalog_options set retired_at = ${now} where resource_id = ${id} and retired_at is null
      and pay_to <> all(${payTos})`
  })

const removal: Omit<Move, "from"> = { by: "origin", move: "removed", to: "removed", reason: "delisted_by_origin" }

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
      claims: ReadonlyArray<ClaimRow>,
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
        { declaration, pay_to }: ClaimRow,
        payTos: ReadonlyArray<string>,
        now: Date
      ) {
        yield* setOwner(sql, row.id, payTos, now)
        // The old owner's words go with it: nothing of its declaration is merged into the new one.
        const anew = { ...declaration, terms: { ...declaration.terms, amount: Option.none() } }
        yield* versions.apply(row, anew, mergeDeclaration(undefined, [], declaration), now)
        yield* moveState(sql, facts, row.id, now, {
          by: "origin",
          move: "displaced",
          from: row.state,
          to: "active",
          reason: "origin_names_another",
          detail: `${row.pay_tos.join(",")} → ${pay_to}`
        })
      })

      const prove = Effect.fnUntraced(function* (row: ResourceRow, payTos: ReadonlyArray<string>, now: Date) {
        yield* setOwner(sql, row.id, payTos, now)
        const { state } = row
        const reason = "origin_names_owner"
        yield* recordMove(sql, row.id, now, { by: "origin", move: "proven", from: state, to: state, reason })
        yield* tellChange(facts, row.id, "proven")
      })

      const contradict = Effect.fnUntraced(function* (row: ResourceRow, payTos: ReadonlyArray<string>, now: Date) {
        yield* setOwner(sql, row.id, payTos, now)
        const detail = `${row.pay_tos.join(",")} → ${payTos.join(",")}`
        yield* moveState(sql, facts, row.id, now, { ...contradiction, from: row.state, detail })
      })

      const carryOut = Effect.fnUntraced(function* (
        row: ResourceRow,
        verdict: Verdict,
        claims: ReadonlyArray<ClaimRow>,
        now: Date
      ) {
        switch (verdict._tag) {
          case "Nothing":
            return
          case "Removed":
            return yield* moveState(sql, facts, row.id, now, { ...removal, from: row.state })
          case "Proven":
            return yield* prove(row, verdict.payTos, now)
          case "Displaced":
            return yield* displace(
              row,
              claims.find(({ pay_to }) => pay_to === verdict.by)!,
              verdict.payTos,
              now
            )
          case "Contradicted":
            return yield* contradict(row, verdict.payTos, now)
        }
      })

      return Execution.of({ carryOut })
    })
  )
}
