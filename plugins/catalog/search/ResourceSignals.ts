// What a ranking takes into account besides the query: the signals of the best hits, read at most once in a while for
// one resource, since they move slowly and searches show the same resources again and again.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { SearchSettings } from "../contract.ts"
import type { Fused } from "./fuse.ts"
import { consideredMax, type Signals, weigh, type Weighed } from "./signals.ts"

const keptMillis = 60_000
const keptMax = 50_000

export class ResourceSignals extends Context.Service<
  ResourceSignals,
  {
    /** The hits anew, best first. */
    readonly apply: (hits: ReadonlyArray<Fused>) => Effect.Effect<ReadonlyArray<Weighed>, SqlError.SqlError>
  }
>()("tollkeeper/catalog/ResourceSignals") {
  static readonly layer = Layer.effect(
    ResourceSignals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const weights = yield* SearchSettings
      const known = new Map<bigint, { readonly signals: Signals; readonly at: number }>()
      const isOff = weights.popularity_weight === 0 && weights.freshness_weight === 0 && weights.origin_decay === 1

      const read = (ids: ReadonlyArray<bigint>) =>
        ids.length === 0
          ? Effect.succeed([])
          : sql<Signals>`select r.id, r.origin, a.earned as payers, a.last_seen_at as "lastSeenAt"
            from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) unread
            join catalog_resources r on r.id = unread::bigint join catalog_activity a on a.resource_id = r.id`

      const apply = Effect.fn("Catalog.signals")(function* (
        hits: ReadonlyArray<Fused>
      ): Effect.fn.Return<ReadonlyArray<Weighed>, SqlError.SqlError> {
        if (hits.length < 2 || isOff) return hits
        const now = yield* Clock.currentTimeMillis
        const ids = hits.slice(0, consideredMax).map(({ id }) => id)
        for (const signals of yield* read(ids.filter((id) => now - (known.get(id)?.at ?? -Infinity) >= keptMillis))) {
          known.delete(signals.id)
          known.set(signals.id, { signals, at: now })
          if (known.size > keptMax) known.delete(known.keys().next().value!)
        }
        const present = ids.flatMap((id) => known.get(id) ?? [])
        return weigh(hits, new Map(present.map(({ signals }) => [signals.id, signals])), weights, now)
      })

      return ResourceSignals.of({ apply })
    })
  )
}
