// Carries out what an origin's word decides, in one transaction: proves, displaces with the claimant's own declaration,
// quarantines or removes; each with its decision and its fact. The fence of the question's lease is checked in the same
// transaction, so an answer that comes too late changes nothing.
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Facts } from "../../../kernel/Facts.ts"
import type { CatalogValues } from "../Config.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration } from "../store/mergeDeclaration.ts"
import type { makeRecorder } from "../store/recordDeclaration.ts"
import { lockResource, moveState, recordMove, type ResourceRow, tellChange } from "../store/Resources.ts"
import type { Asked } from "./askOrigin.ts"
import { decideOwnership, type Verdict } from "./decideOwnership.ts"

export interface VerdictParts {
  readonly sql: SqlClient.SqlClient
  readonly facts: Facts["Service"]
  readonly config: CatalogValues
  readonly recorder: ReturnType<typeof makeRecorder>
}

interface ClaimRow {
  readonly pay_to: string
  readonly declaration: Declaration
}

/** Time until the origin is asked again: soon while nobody is proven, then ever more rarely. */
const waitSeconds = (
  attempts: number,
  isProven: boolean,
  { probeAgainHours, probePauseSeconds }: CatalogValues
): number => {
  const again = probeAgainHours * 3_600
  return isProven ? again : Math.min(again, Math.max(probePauseSeconds, [1, 600, 3_600][attempts] ?? again))
}

export const makeApplyVerdict = ({ config, facts, recorder, sql }: VerdictParts) => {
  const setOwner = (id: bigint, payTos: ReadonlyArray<string>, now: Date) =>
    Effect.andThen(
      sql`update catalog_resources set ownership = 'proven', pay_tos = ${payTos} where id = ${id}`,
      Effect.andThen(
        sql`delete from catalog_claims where resource_id = ${id} and pay_to = any(${payTos})`,
        // What others are to be paid is no option of this resource any more.
        sql`update catalog_options set retired_at = ${now} where resource_id = ${id} and retired_at is null
          and pay_to <> all(${payTos})`
      )
    )

  const displace = Effect.fnUntraced(function* (
    row: ResourceRow,
    claim: ClaimRow,
    payTos: ReadonlyArray<string>,
    now: Date
  ) {
    const { declaration } = claim
    yield* setOwner(row.id, payTos, now)
    // The old owner's words go with it: nothing of its declaration is merged into the new one.
    yield* recorder.applyVersion(
      row,
      { ...declaration, terms: { ...declaration.terms, amount: Option.none() } },
      mergeDeclaration(undefined, [], declaration),
      now
    )
    yield* moveState(sql, facts, row.id, now, {
      by: "origin",
      move: "displaced",
      from: row.state,
      to: "active",
      reason: "origin_names_another",
      detail: `${row.pay_tos.join(",")} → ${claim.pay_to}`
    })
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
        return yield* moveState(sql, facts, row.id, now, {
          by: "origin",
          move: "removed",
          from: row.state,
          to: "removed",
          reason: "delisted_by_origin"
        })
      case "Proven":
        yield* setOwner(row.id, verdict.payTos, now)
        yield* recordMove(sql, row.id, now, {
          by: "origin",
          move: "proven",
          from: row.state,
          to: row.state,
          reason: "origin_names_owner"
        })
        return yield* tellChange(facts, row.id, "proven")
      case "Displaced":
        return yield* displace(
          row,
          claims.find(({ pay_to }) => pay_to === verdict.by)!,
          verdict.payTos,
          now
        )
      case "Contradicted":
        yield* setOwner(row.id, verdict.payTos, now)
        return yield* moveState(sql, facts, row.id, now, {
          by: "origin",
          move: "quarantined",
          from: row.state,
          to: "quarantined",
          reason: "origin_names_another",
          detail: `${row.pay_tos.join(",")} → ${verdict.payTos.join(",")}`
        })
    }
  })

  /** True when something changed that discovery shows. */
  return (id: bigint, fence: bigint, asked: Asked, now: Date) =>
    inTransaction(
      Effect.gen(function* () {
        const [probe] = yield* sql<{
          attempts: number
        }>`select attempts from catalog_probes where resource_id = ${id} and fence = ${fence} for update`
        const row = yield* lockResource(sql, { id })
        if (probe === undefined || row === undefined) return false
        const claims = yield* sql<ClaimRow>`select pay_to, declaration from catalog_claims where resource_id = ${id}
            order by last_seen_at desc`
        const standing = {
          state: row.state,
          reason: row.state_reason,
          ownership: row.ownership,
          payTos: row.pay_tos,
          claimants: claims.map(({ pay_to }) => pay_to)
        }
        const heldByOperator = row.state === "quarantined" && row.state_reason === "operator"
        const verdict: Verdict = heldByOperator ? { _tag: "Nothing" } : decideOwnership(standing, asked.word)
        yield* carryOut(row, verdict, claims, now)
        const leadsInside =
          asked.isLocal && !config.allowLocalOrigins && (row.state === "active" || row.state === "stale")
        if (leadsInside) {
          yield* moveState(sql, facts, id, now, {
            by: "facilitator",
            move: "quarantined",
            from: row.state,
            to: "quarantined",
            reason: "local_origin",
            detail: asked.detail
          })
        }
        const isProven = row.ownership === "proven" || verdict._tag !== "Nothing"
        const seconds = waitSeconds(probe.attempts, isProven, config)
        yield* sql`update catalog_probes set asked_at = ${now}, leased_until = null, attempts =
          ${isProven ? 0 : probe.attempts + 1}, outcome = ${verdict._tag},
        detail = ${asked.detail}, due_at = ${new Date(now.getTime() + seconds * 1_000)} where resource_id = ${id}`
        return verdict._tag !== "Nothing" || leadsInside
      })
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))
}
