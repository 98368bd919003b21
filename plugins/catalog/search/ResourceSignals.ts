// What a ranking takes into account besides the query: the signals of the best hits, read at most once in a while for
// one resource, since they move slowly and searches show the same resources again and again.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { spanned } from "../../../kernel/spanned.ts"
import { SearchSettings } from "../contract.ts"
import { PricedAssets } from "../ownership/PricedAssets.ts"
import type { Fused } from "./fuse.ts"
import { assetOf } from "./readIntent.ts"
import { type Signals, type Weighed, weigh } from "./signals.ts"
import { type Seller, type Spread, spreadSellers } from "./spreadSellers.ts"

const keptMillis = 60_000
const keptMax = 50_000

export interface Wish {
  /** A filter names the recipient. */
  readonly isOfOneSeller: boolean
  readonly prefersCheap: boolean
}

export class ResourceSignals extends Context.Service<
  ResourceSignals,
  {
    /** The hits anew, best first; on a first page few of one seller, unless one is asked for. */
    readonly apply: (hits: ReadonlyArray<Fused>, wish: Wish) => Effect.Effect<Spread<Weighed>, SqlError.SqlError>
  }
>()("tollkeeper/catalog/ResourceSignals") {
  static readonly layer = Layer.effect(
    ResourceSignals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const weights = yield* SearchSettings
      const { assets } = yield* PricedAssets
      const dollar = assetOf("USD", assets) ?? { contract: "", decimals: 0 }
      const known = new Map<bigint, { readonly signals: Signals & Seller; readonly at: number }>()

      const read = (ids: ReadonlyArray<bigint>) =>
        ids.length === 0
          ? Effect.succeed([])
          : sql<
              Signals & Seller
            >`select r.id, r.origin, r.pay_tos as "payTos", a.earned as payers, a.last_seen_at as "lastSeenAt",
              r.standing_at is not null as stands,
              (select min(o.amount) from catalog_options o where o.resource_id = r.id and o.retired_at is null
                and o.asset = ${dollar.contract})::float8 / ${10 ** dollar.decimals}::float8 as price
            from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) unread
            join catalog_resources r on r.id = unread::bigint join catalog_activity a on a.resource_id = r.id`

      const apply = Effect.fnUntraced(function* (
        hits: ReadonlyArray<Fused>,
        { isOfOneSeller, prefersCheap }: Wish
      ): Effect.fn.Return<Spread<Weighed>, SqlError.SqlError> {
        if (hits.length < 2) return { hits, isCrowded: false }
        const now = yield* Clock.currentTimeMillis
        const ids = hits.map(({ id }) => id)
        for (const signals of yield* read(ids.filter((id) => now - (known.get(id)?.at ?? -Infinity) >= keptMillis))) {
          known.delete(signals.id)
          known.set(signals.id, { signals, at: now })
          if (known.size > keptMax) known.delete(known.keys().next().value!)
        }
        const present = ids.flatMap((id) => known.get(id) ?? [])
        const byId = new Map(present.map(({ signals }) => [signals.id, signals]))
        const weighed = weigh(hits, byId, { ...weights, prefersCheap }, now)
        return isOfOneSeller ? { hits: weighed, isCrowded: false } : spreadSellers(weighed, (id) => byId.get(id))
      }, spanned("Catalog.signals"))

      return ResourceSignals.of({ apply })
    })
  )
}
