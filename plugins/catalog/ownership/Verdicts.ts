// Carries out what an origin's word decides, in one transaction: proves, displaces with the claimant's own declaration,
// quarantines or removes; each with its decision and its fact. The fence of the question's lease is checked in the same
// transaction, so an answer that comes too late changes nothing.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/Facts.ts"
import { type CatalogValues, Config } from "../Config.ts"
import { lockResource, moveState, type ResourceRow } from "../store/Resources.ts"
import { decideOwnership, type Verdict } from "./decideOwnership.ts"
import { type ClaimRow, Execution } from "./Execution.ts"
import type { OriginAnswer } from "./Origins.ts"

/** Time until the origin is asked again: soon while nobody is proven, then ever more rarely. */
const waitSeconds = (
  attempts: number,
  isProven: boolean,
  { probeAgainHours, probePauseSeconds }: CatalogValues
): number => {
  const again = probeAgainHours * 3_600
  return isProven ? again : Math.min(again, Math.max(probePauseSeconds, [1, 600, 3_600][attempts] ?? again))
}

const claimsOf = (sql: SqlClient.SqlClient, id: bigint) =>
  sql<ClaimRow>`select pay_to, declaration from catalog_claims where resource_id = ${id} order by last_seen_at desc`

const verdictOn = (row: ResourceRow, claims: ReadonlyArray<ClaimRow>, { word }: OriginAnswer): Verdict =>
  row.state === "quarantined" && row.state_reason === "operator"
    ? { _tag: "Nothing" }
    : decideOwnership(
        {
          state: row.state,
          reason: row.state_reason,
          ownership: row.ownership,
          payTos: row.pay_tos,
          claimants: claims.map(({ pay_to }) => pay_to)
        },
        word
      )

export class Verdicts extends Context.Service<
  Verdicts,
  {
    /** True when something changed that discovery shows. */
    readonly apply: (
      id: bigint,
      fence: bigint,
      asked: OriginAnswer,
      now: Date
    ) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Verdicts") {
  static readonly layer = Layer.effect(
    Verdicts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const { carryOut } = yield* Execution

      /** Where the origin's name leads inside and that is not allowed, the listing is taken out. */
      const takeOut = (row: ResourceRow, detail: string, now: Date) =>
        moveState(sql, facts, row.id, now, {
          by: "facilitator",
          move: "quarantined",
          from: row.state,
          to: "quarantined",
          reason: "local_origin",
          detail
        })

      const apply = (id: bigint, fence: bigint, asked: OriginAnswer, now: Date) =>
        inTransaction(
          Effect.gen(function* () {
            const [probe] = yield* sql<{ attempts: number }>`select attempts from catalog_probes
              where resource_id = ${id} and fence = ${fence} for update`
            const row = yield* lockResource(sql, { id })
            if (probe === undefined || row === undefined) return false
            const claims = yield* claimsOf(sql, id)
            const verdict = verdictOn(row, claims, asked)
            yield* carryOut(row, verdict, claims, now)
            const isShown = row.state === "active" || row.state === "stale"
            const leadsInside = asked.isLocal && !config.allowLocalOrigins && isShown
            if (leadsInside) yield* takeOut(row, asked.detail, now)
            const isProven = row.ownership === "proven" || verdict._tag !== "Nothing"
            const due = new Date(now.getTime() + waitSeconds(probe.attempts, isProven, config) * 1_000)
            yield* sql`update catalog_probes set asked_at = ${now}, leased_until = null,
              attempts = ${isProven ? 0 : probe.attempts + 1}, outcome = ${verdict._tag}, detail = ${asked.detail},
              due_at = ${due} where resource_id = ${id}`
            return verdict._tag !== "Nothing" || leadsInside
          })
        ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

      return Verdicts.of({ apply })
    })
  )
}
