// The first declaration of a resource lists it, provisionally owned by its recipient, within the day's quotas of payer
// and recipient; the origin is asked for its word.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/Facts.ts"
import { Config } from "../Config.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { mergeDeclaration } from "./mergeDeclaration.ts"
import { Quotas } from "./Quotas.ts"
import { type Carrier, claimantOf, type Recorded, unavailable } from "./Recorded.ts"
import { recordMove, requestProbe, tellChange } from "./Resources.ts"
import { Versions } from "./Versions.ts"

export class FirstListings extends Context.Service<
  FirstListings,
  {
    /** In the caller's transaction; undefined when somebody else listed it in the meantime. */
    readonly list: (
      declaration: Declaration,
      carrier: Carrier
    ) => Effect.Effect<Recorded | undefined, SqlError.SqlError>
  }
>()("tollkeeper/catalog/FirstListings") {
  static readonly layer = Layer.effect(
    FirstListings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const quotas = yield* Quotas
      const versions = yield* Versions

      const list = Effect.fnUntraced(function* (declaration: Declaration, carrier: Carrier) {
        const { now, stage } = carrier
        const claimant = claimantOf(declaration, carrier)
        if (!(yield* quotas.takeListing(claimant))) return unavailable("today's new listings are used up")
        const merged = mergeDeclaration(undefined, [], declaration)
        const { document, hash } = versions.bodyOf(declaration, merged)
        if (!(yield* quotas.takeBytes(claimant, document.length))) return unavailable("today's bytes are used up")
        const isListable = config.indexOn === "verified" || stage === "settled"
        const id = yield* versions.insert(declaration, merged, isListable ? "payment_observed" : "unverified", now)
        if (id === undefined) return undefined
        yield* sql`insert into catalog_activity ${sql.insert({ resource_id: id, last_seen_at: now })}`
        yield* recordMove(sql, id, now, {
          by: "facilitator",
          move: "listed",
          from: null,
          to: "active",
          reason: "payment_observed"
        })
        if (config.probeOrigins) yield* requestProbe(sql, id, now, config.probePauseSeconds)
        yield* tellChange(facts, id, "listed")
        return { decision: isListable ? "listed" : "held", resourceId: id, versionHash: hash } as Recorded
      })

      return FirstListings.of({ list })
    })
  )
}
