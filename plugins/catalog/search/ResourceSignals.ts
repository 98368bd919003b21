// What a ranking takes into account besides the query: the signals of the best hits, read at most once in a while for
// one resource, since they move slowly and searches show the same resources again and again.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { elapsedMillis } from "../../../kernel/elapsed.ts"
import { spanned } from "../../../kernel/spanned.ts"
import { putNewest } from "../../../kernel/putNewest.ts"
import { SearchSettings } from "../contract.ts"
import { PricedAssets } from "../ownership/PricedAssets.ts"
import type { Fused } from "./fuse.ts"
import { assetOf } from "./readIntent.ts"
import { consideredMax, type Signals, type Weighed, weigh } from "./signals.ts"
import { type Seller, type Spread, spreadSellers } from "./spreadSellers.ts"
import { sketchOf } from "./textSketch.ts"

const keptMillis = 60_000
const keptMax = 20_000
/** Characters of a listing's words that are held against others'. */
const textMax = 600

export interface Wish {
  /** A filter names the recipient. */
  readonly isOfOneSeller: boolean
  readonly prefersCheap: boolean
  /** What was asked: claims are held against each other by what it matches. */
  readonly query: string
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

      const readSignals = (ids: ReadonlyArray<bigint>) =>
        ids.length === 0
          ? Effect.succeed([])
          : sql<
              Signals & Omit<Seller, "sketch"> & { readonly text: string }
            >`select r.id, r.origin, r.pay_tos as "payTos", a.earned as payers, a.last_seen_at as "lastSeenAt",
              (select left(concat_ws(' ', about->>'serviceName', about->>'description', about->>'tags'), ${textMax})
                from (select r.declaration->'about' as about offset 0) declared) as text,
              r.standing_at is not null as stands, coalesce(r.words_at, r.first_seen_at) as "wordsAt",
              r.listed_by as "listedBy",
              (select min(o.amount) from catalog_options o where o.resource_id = r.id and o.retired_at is null
                and o.asset = ${dollar.contract})::float8 / ${10 ** dollar.decimals}::float8 as price
            from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) unread
            join catalog_resources r on r.id = unread::bigint join catalog_activity a on a.resource_id = r.id`

      const signalsOf = (id: bigint) => known.get(id)?.signals

      /** Reads what is not known, or not known lately. */
      const learn = Effect.fnUntraced(function* (hits: ReadonlyArray<Fused>, now: number) {
        const unread = hits.filter(({ id }) => now - (known.get(id)?.at ?? -Infinity) >= keptMillis)
        for (const { text, ...read } of yield* readSignals(unread.map(({ id }) => id))) {
          const signals = { ...read, sketch: sketchOf(text), ...(read.stands ? {} : { claimed: text }) }
          putNewest(known, keptMax, signals.id, { signals, at: now })
        }
      })

      const apply = Effect.fnUntraced(function* (
        hits: ReadonlyArray<Fused>,
        { isOfOneSeller, prefersCheap, query }: Wish
      ): Effect.fn.Return<Spread<Weighed>, SqlError.SqlError> {
        if (hits.length < 2) return { hits, isCrowded: false }
        const now = yield* Clock.currentTimeMillis
        const at = yield* elapsedMillis
        yield* learn(hits.slice(0, consideredMax), at)
        const weighed = weigh(hits, { get: signalsOf }, { ...weights, prefersCheap }, now)
        if (isOfOneSeller) return { hits: weighed, isCrowded: false }
        const spread = spreadSellers(weighed.slice(0, consideredMax), signalsOf, query)
        const rest = weighed.slice(consideredMax)
        if (rest.length === 0) return spread
        // The page is full: who sells what is behind it decides nothing.
        if (!spread.isCrowded) return { hits: [...spread.hits, ...rest], isCrowded: false }
        yield* learn(rest, at)
        return spreadSellers(weighed, signalsOf, query)
      }, spanned("Catalog.signals"))

      return ResourceSignals.of({ apply })
    })
  )
}
