// The query-independent inputs of a ranking: the signals of the best hits, cached for a while by resource, since they
// move slowly and searches show the same resources repeatedly.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { withSpanIfSampled } from "../../../../kernel/effect/withSpanIfSampled.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { SearchSettings } from "../../contract.ts"
import { PricedAssets } from "../../ownership/PricedAssets.ts"
import type { Fused } from "./fuse.ts"
import { isYoung } from "../../discovery/conditions.ts"
import { assetOf, type Intent } from "../readIntent.ts"
import { consideredMax, type Signals, signalShares, type Weighed, weigh } from "./signals.ts"
import { type Seller, type Spread, spreadSellers } from "./spreadSellers.ts"
import { hashedWords, sketchOf } from "./textSketch.ts"

const keptMillis = 60_000
const keptMax = 20_000
/** A payer counts in full if payers risk a tenth of a cent on average; in ten-millionths of a dollar. */
const payerRisk = 10_000
/** Characters of a listing's words that are read, and how many of them are compared in full with others'. */
const textMax = 4_400
const sketchedMax = 600

/** A time before any young evidence. */
export const established = new Date(0)

interface RankingHints {
  /** A filter names the recipient. */
  readonly isOfOneSeller: boolean
  readonly prefers: Intent["prefers"]
  /** The query: claims are compared by the terms that it matches. */
  readonly query: string
  /** Hits with evidence from a separate request: weighed however far behind a flood of claims they are. */
  readonly evidenced: ReadonlySet<bigint>
}

/** The hits to weigh first, and their number: the best, and then the best of the hits with evidence behind them. */
const considered = (hits: ReadonlyArray<Fused>, evidenced: ReadonlySet<bigint>) => {
  const behind = hits.slice(consideredMax)
  const added = behind.filter(({ id }) => evidenced.has(id)).slice(0, consideredMax)
  const ids = new Set(added.map(({ id }) => id))
  const ordered = [...hits.slice(0, consideredMax), ...added, ...behind.filter(({ id }) => !ids.has(id))]
  return { ordered, count: consideredMax + added.length }
}

const goneLast = (hits: ReadonlyArray<Weighed>, sellerOf: (id: bigint) => Seller | undefined) => {
  const isGone = ({ id }: Weighed) => sellerOf(id)?.isGone === true
  return [...hits.filter((hit) => !isGone(hit)), ...hits.filter(isGone)]
}

export class ResourceSignals extends Context.Service<
  ResourceSignals,
  {
    /** The reordered hits, best first; on a first page only a few of one seller, unless a filter names the seller. */
    readonly apply: (
      hits: ReadonlyArray<Fused>,
      wish: RankingHints
    ) => Effect.Effect<Spread<Weighed>, SqlError.SqlError>
    /** For those of these resources that have evidence: the time since when, or `established`. */
    readonly evidenceSince: (ids: ReadonlyArray<bigint>) => Effect.Effect<ReadonlyMap<bigint, Date>, SqlError.SqlError>
  }
>()("tollkeeper/catalog/ResourceSignals") {
  static readonly layer = Layer.effect(
    ResourceSignals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const weights = { ...signalShares, ...(yield* SearchSettings) }
      const { assets } = yield* PricedAssets
      const dollar = assetOf("USD", assets) ?? { contract: "", decimals: 0 }
      const known = new LruCache<bigint, { readonly signals: Signals & Seller; readonly at: number }>({
        name: "resource-signals",
        capacity: keptMax
      })

      const readSignals = (ids: ReadonlyArray<bigint>) =>
        ids.length === 0
          ? Effect.succeed([])
          : sql<
              Signals & Omit<Seller, "sketch"> & { readonly text: string }
            >`select r.id, r.type, r.origin, r.pay_tos as "payTos", a.last_seen_at as "lastSeenAt",
              least(a.earned, a.risked / ${payerRisk})::float8 as payers,
              case when ${isYoung(sql)} then r.standing_at end as "youngSince",
              (select left(concat_ws(' ', about->>'serviceName', about->>'description', about->>'tags'), ${textMax})
                from (select r.declaration->'about' as about offset 0) declared) as text,
              r.standing_at is not null as "hasEvidence", coalesce(r.words_at, r.first_seen_at) as "wordsAt",
              r.listed_by as "listedBy",
              (select p.gone_at > coalesce(a.last_settled_at, p.gone_at - interval '1 second') from catalog_probes p
                where p.resource_id = r.id) is true as "isGone",
              (select min(o.amount) from catalog_options o where o.resource_id = r.id and o.retired_at is null
                and o.asset = ${dollar.contract})::float8 / ${10 ** dollar.decimals}::float8 as price
            from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) unread
            join catalog_resources r on r.id = unread::bigint join catalog_activity a on a.resource_id = r.id`

      const signalsOf = (id: bigint) => known.peek(id)?.signals

      /** Reads missing and expired entries. */
      const learn = Effect.fnUntraced(function* (hits: ReadonlyArray<Fused>, now: number) {
        const unread = hits.filter(({ id }) => known.get(id, ({ at }) => now - at < keptMillis) === undefined)
        for (const { text, ...read } of yield* readSignals(unread.map(({ id }) => id))) {
          const claimed = read.hasEvidence ? {} : { claimed: hashedWords(text) }
          const signals = { ...read, sketch: sketchOf(text.slice(0, sketchedMax)), ...claimed }
          known.set(signals.id, { signals, at: now })
        }
      })

      const apply = Effect.fnUntraced(function* (
        hits: ReadonlyArray<Fused>,
        { evidenced, isOfOneSeller, prefers, query }: RankingHints
      ): Effect.fn.Return<Spread<Weighed>, SqlError.SqlError> {
        if (hits.length < 2) return { hits, isCrowded: false }
        const now = yield* Clock.currentTimeMillis
        const at = yield* monotonicMillis
        const { count, ordered } = considered(hits, evidenced)
        yield* learn(ordered.slice(0, count), at)
        const weighed = goneLast(weigh(ordered, { get: signalsOf }, { ...weights, prefers }, now, count), signalsOf)
        if (isOfOneSeller) return { hits: weighed, isCrowded: false }
        const spread = spreadSellers(weighed.slice(0, count), signalsOf, query)
        const rest = weighed.slice(count)
        if (rest.length === 0) return spread
        // The page is full: the sellers of later hits do not matter.
        if (!spread.isCrowded) return { hits: [...spread.hits, ...rest], isCrowded: false }
        yield* learn(rest, at)
        return spreadSellers(weighed, signalsOf, query)
      }, withSpanIfSampled("Catalog.signals"))

      const evidenceSince = Effect.fnUntraced(function* (ids: ReadonlyArray<bigint>) {
        const rows = yield* sql<{ id: bigint; since: Date }>`select r.id,
            case when ${isYoung(sql)} then r.standing_at else ${established} end as since from catalog_resources r
          where r.id = any(${`{${ids.join(",")}}`}::int8[]) and r.standing_at is not null`
        return new Map(rows.map(({ id, since }) => [id, since]))
      })

      return ResourceSignals.of({ apply, evidenceSince })
    })
  )
}
