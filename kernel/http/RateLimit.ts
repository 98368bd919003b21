// A token bucket per principal: a rate per second, with bursts of twice that. Memory is bounded: beyond the maximum
// number of principals the least recently used bucket is evicted, which refills it. A rate of 0 means no limit. If the
// rate is a function, it may change while the process runs.
import { Effect } from "effect"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { BoundedMap } from "../cache/BoundedMap.ts"

interface Bucket {
  tokens: number
  at: number
}

const bucketsMax = 50_000

/**
 * Takes one token, or all `cost` tokens or none; a negative cost returns tokens. Returns the seconds to wait, 0 if the
 * request may pass.
 */
export const makeRateLimit = (
  rate: number | (() => number)
): ((principal: string, cost?: number) => Effect.Effect<number>) => {
  const current = typeof rate === "number" ? () => rate : rate
  const buckets = new BoundedMap<string, Bucket>(bucketsMax)
  return (principal, cost = 1) =>
    Effect.map(monotonicMillis, (now) => {
      const perSecond = current()
      if (perSecond === 0) return 0
      const burst = perSecond * 2
      const bucket = buckets.get(principal) ?? { tokens: burst, at: now }
      const elapsed = Math.max(0, now - bucket.at) / 1_000
      bucket.tokens = Math.min(burst, bucket.tokens + elapsed * perSecond)
      bucket.at = now
      buckets.set(principal, bucket)
      if (bucket.tokens < cost) return Math.max(1, Math.ceil((cost - bucket.tokens) / perSecond))
      bucket.tokens -= cost
      return 0
    })
}
