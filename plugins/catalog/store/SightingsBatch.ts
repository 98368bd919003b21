// The batch of sightings since the last flush, in memory and bounded: last-seen times, sales and observations. Entries
// that do not fit are dropped and counted. Pure except for its own state.
import { Effect } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { measure } from "../../../kernel/telemetry/Measure.ts"
import { BoundedMap } from "../../../kernel/cache/BoundedMap.ts"
import { metrics } from "../metrics.ts"
import type { Recorded } from "./Recorded.ts"

const touchesMax = 20_000
const salesMax = 20_000
const observationsMax = 5_000
/**
 * Rows of observations that one payer may make in a UTC day: a payment that is only verified costs its payer nothing.
 */
const rowsPerPayerMax = 2_000
const payersMax = 50_000

export interface ObservedDeclaration {
  readonly resourceKey: string | undefined
  readonly resourceId: bigint | undefined
  readonly url: string
  readonly type: string | undefined
  readonly toolName: string | undefined
  readonly payTo: string
  /** Not stored. */
  readonly payer: string
  readonly stage: "verified" | "settled"
  readonly decision: Recorded["decision"]
  readonly reason: string | undefined
  readonly detail: string | undefined
  readonly at: Date
  readonly lagMillis: number
}

export interface Touch {
  readonly lastSeenAt: Date
  readonly observed: number
}

export interface Sale {
  /** Inner hash, hex. */
  readonly transaction: string
  readonly payer: string
  readonly payTo: string
  /** Atomic units that were settled. */
  readonly amount: string
  /** That amount in ten-millionths of a dollar (`riskOf`); absent for an asset of unknown worth. */
  readonly risked?: string
  /** The claim that it is evidence for (`Recorded.claim`): it paid the recipient and the price that this names. */
  readonly claim?: string
  /** Paid to a recipient that the listing does not name: evidence only for the claim. */
  readonly isContested?: true
}

export interface Sold extends Sale {
  readonly resourceId: bigint
  readonly at: Date
}

export interface Observed extends ObservedDeclaration {
  readonly times: number
  readonly firstAt: Date
}

/** Contents of one flush. */
export interface Batch {
  readonly touches: ReadonlyMap<bigint, Touch>
  /** By transaction. */
  readonly sales: ReadonlyMap<string, Sold>
  /** By digest. */
  readonly observations: ReadonlyMap<string, Observed>
}

const merged = (older: Touch, newer: Touch | undefined): Touch =>
  newer === undefined
    ? older
    : {
        observed: older.observed + newer.observed,
        lastSeenAt: newer.lastSeenAt > older.lastSeenAt ? newer.lastSeenAt : older.lastSeenAt
      }

const dayOf = (at: Date): string => at.toISOString().slice(0, 10)

/** Observations of a day that differ only in time share a row. */
const digestOf = (crypto: Crypto["Service"], one: ObservedDeclaration): string => {
  const { decision, detail, payTo, reason, resourceId, stage, toolName, type, url } = one
  const reported = [
    dayOf(one.at),
    url,
    type ?? null,
    toolName ?? null,
    payTo,
    stage,
    decision,
    reason ?? null,
    detail ?? null,
    String(resourceId ?? "")
  ]
  return Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson(reported))))
}

const mapped = <K, V>(map: ReadonlyMap<K, V>, change: (value: V) => V): ReadonlyMap<K, V> =>
  new Map([...map].map(([key, value]) => [key, change(value)]))

export class SightingsBatch {
  #touches = new Map<bigint, Touch>()
  #sales = new Map<string, Sold>()
  #observations = new Map<string, Observed>()
  #rows = { day: "", byPayer: new BoundedMap<string, number>(payersMax) }
  readonly #crypto: Crypto["Service"]

  constructor(crypto: Crypto["Service"]) {
    this.#crypto = crypto
  }

  see(id: bigint, at: Date): void {
    const known = this.#touches.get(id)
    if (known !== undefined || this.#touches.size < touchesMax)
      this.#touches.set(id, merged({ observed: 1, lastSeenAt: at }, known))
  }

  touch(id: bigint, at: Date, sale: Sale | undefined): Effect.Effect<void> {
    this.see(id, at)
    if (sale === undefined || this.#sales.has(sale.transaction)) return Effect.void
    if (this.#sales.size >= salesMax) return measure(metrics.dropped, 1)
    this.#sales.set(sale.transaction, { ...sale, resourceId: id, at })
    return Effect.void
  }

  contend(id: bigint, at: Date, sale: Sale): Effect.Effect<void> {
    if (this.#sales.has(sale.transaction)) return Effect.void
    if (this.#sales.size >= salesMax) return measure(metrics.dropped, 1)
    this.#sales.set(sale.transaction, { ...sale, isContested: true, resourceId: id, at })
    return Effect.void
  }

  observe(one: ObservedDeclaration): Effect.Effect<void> {
    const day = dayOf(one.at)
    if (day !== this.#rows.day) this.#rows = { day, byPayer: new BoundedMap(payersMax) }
    const digest = digestOf(this.#crypto, one)
    if ((this.#rows.byPayer.get(one.payer) ?? 0) >= rowsPerPayerMax) return measure(metrics.dropped, 1)
    const known = this.#observations.get(digest)
    if (known === undefined && this.#observations.size >= observationsMax) return measure(metrics.dropped, 1)
    this.#observations.set(digest, { ...one, times: (known?.times ?? 0) + 1, firstAt: known?.firstAt ?? one.at })
    return Effect.void
  }

  /** It holds more than last-seen times. */
  get isPressing(): boolean {
    return this.#sales.size > 0 || this.#observations.size > 0
  }

  /**
   * Empties the batch and returns its contents; undefined if it was empty. A time later than now comes from a clock
   * that is ahead and is cut to now.
   */
  take(now: Date): Batch | undefined {
    if (this.#touches.size === 0 && !this.isPressing) return undefined
    const past = (at: Date): Date => (at > now ? now : at)
    const batch = {
      touches: mapped(this.#touches, (one) => ({ ...one, lastSeenAt: past(one.lastSeenAt) })),
      sales: mapped(this.#sales, (one) => ({ ...one, at: past(one.at) })),
      observations: mapped(this.#observations, (one) => ({ ...one, at: past(one.at), firstAt: past(one.firstAt) }))
    }
    this.#touches = new Map()
    this.#sales = new Map()
    this.#observations = new Map()
    return batch
  }

  /** Returns entries that could not be stored to the batch, as far as they fit. */
  putBack({ observations, sales, touches }: Batch): void {
    if (touches.size + this.#touches.size <= touchesMax)
      for (const [id, one] of touches) this.#touches.set(id, merged(one, this.#touches.get(id)))
    if (observations.size + this.#observations.size <= observationsMax)
      for (const [digest, one] of observations) {
        const times = one.times + (this.#observations.get(digest)?.times ?? 0)
        this.#observations.set(digest, { ...one, times })
      }
    if (sales.size + this.#sales.size <= salesMax) this.#sales = new Map([...sales, ...this.#sales])
  }

  /** A new row was made of this payer's observation. */
  countRow(payer: string): void {
    const { byPayer } = this.#rows
    const count = (byPayer.get(payer) ?? 0) + 1
    byPayer.set(payer, count)
  }
}
