// A declaration of a resource that is listed already, whose row the caller has locked. One by another recipient is kept
// as a claim and the origin is asked; a changed one makes a version; an unchanged one writes nothing.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/Facts.ts"
import { Config } from "../Config.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration } from "./mergeDeclaration.ts"
import { Quotas } from "./Quotas.ts"
import { type Carrier, claimantOf, type Recorded, rejected, unavailable } from "./Recorded.ts"
import { liveOptions, moveState, requestProbe, type ResourceRow, tellChange } from "./Resources.ts"
import { Versions } from "./Versions.ts"

/** Claims kept of one resource: enough for the origin to choose from, too few to fill a disk with. */
const claimsMax = 8

export class Redeclarations extends Context.Service<
  Redeclarations,
  {
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
      const versions = yield* Versions

      const claim = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, now: Date) {
        const { payTo } = declaration.terms
        yield* sql`delete from catalog_claims where resource_id = ${row.id} and pay_to in (
          select pay_to from catalog_claims where resource_id = ${row.id} and pay_to <> ${payTo}
          order by last_seen_at desc offset ${claimsMax - 1})`
        yield* sql`insert into catalog_claims ${sql.insert({
          resource_id: row.id,
          pay_to: payTo,
          declaration: JSON.stringify({ ...declaration, terms: { ...declaration.terms, amount: null } }),
          option: "{}",
          first_seen_at: now,
          last_seen_at: now
        })} on conflict (resource_id, pay_to) do update set declaration = excluded.declaration,
          last_seen_at = excluded.last_seen_at`
        if (config.probeOrigins) yield* requestProbe(sql, row.id, now, config.probePauseSeconds)
        const detail = `declared by ${payTo}, owned by another recipient (${row.ownership})`
        return rejected("payto_conflict", detail, row.id)
      })

      /** What else follows from a declaration of the owner that was taken. */
      const settle = Effect.fnUntraced(function* (row: ResourceRow, changed: boolean, listable: boolean, now: Date) {
        const observedNow = row.verification === "unverified" && listable
        if (observedNow) yield* sql`update catalog_resources set verification = 'payment_observed' where id = ${row.id}`
        if (row.state === "stale" || row.state === "quarantined") {
          yield* moveState(sql, facts, row.id, now, {
            by: "facilitator",
            move: "returned",
            from: row.state,
            to: "active",
            reason: "payment_observed"
          })
        } else if (changed || observedNow) yield* tellChange(facts, row.id, changed ? "version" : "observed")
        if (changed) return "updated"
        if (observedNow) return "listed"
        return row.verification === "unverified" ? "held" : "unchanged"
      })

      const take = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, carrier: Carrier) {
        const { now } = carrier
        if (row.state === "removed") return unavailable(`removed: ${row.state_reason}`, row.id)
        if (!row.pay_tos.includes(declaration.terms.payTo)) return yield* claim(row, declaration, now)
        if (row.state === "quarantined" && row.state_reason !== "origin_names_another")
          return unavailable(`quarantined: ${row.state_reason}`, row.id)
        const merged = mergeDeclaration(row.declaration, yield* liveOptions(sql, row.id), declaration)
        const { document, hash } = versions.bodyOf(declaration, merged)
        const changed = hash !== row.version_hash
        const listable = config.indexOn === "verified" || carrier.stage === "settled"
        if (changed && !listable) return { decision: "held", resourceId: row.id } as Recorded
        if (changed && !(yield* quotas.takeVersion(row.id, now)))
          return unavailable("today's versions of this resource are used up", row.id)
        if (changed && !(yield* quotas.takeBytes(claimantOf(declaration, carrier), document.length)))
          return unavailable("today's bytes are used up")
        if (changed) yield* versions.apply(row, declaration, merged, now)
        const decision = yield* settle(row, changed, listable, now)
        return { decision, resourceId: row.id, versionHash: hash } as Recorded
      })

      return Redeclarations.of({ take })
    })
  )
}
