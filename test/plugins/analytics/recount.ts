// Random histories of settlements, and every figure of analytics recomputed from them by filtering and summing a list.
// It shares no code with the product's rollups.
import type { JournalFact } from "./world.ts"

/** Pseudorandom numbers from a seed. */
export const randomFrom = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return { next, below, pick: <A>(items: ReadonlyArray<A>): A => items[below(items.length)]! }
}

export type Random = ReturnType<typeof randomFrom>

export interface Counted {
  readonly id: string
  readonly at: Date
  readonly network: string
  readonly scheme: string
  readonly asset: string
  readonly payer: string
  readonly payTo: string
  readonly status: "pending" | "unknown" | "success" | "failed"
  /** Amount transferred. */
  readonly amount: bigint
  readonly fee: bigint
  readonly hash: string
  readonly facilitator: string
  readonly resource: bigint | undefined
  readonly origin: string | undefined
  readonly organic: boolean
  /** Why it failed or is unresolved. */
  readonly reason: string | null
}

export interface Listing {
  readonly id: bigint
  readonly url: string
  readonly payTo: string
}

const millisPerDay = 86_400_000

/** Settlements over forty days, with their facts in the order they would be published. */
export const historyOf = (
  random: Random,
  size: number,
  people: { readonly buyers: ReadonlyArray<string>; readonly sellers: ReadonlyArray<string> },
  listings: ReadonlyArray<Listing>
) => {
  const counted: Array<Counted> = []
  const reported: Array<{ readonly order: number; readonly fact: JournalFact }> = []
  const now = Date.now()
  const paid = new Set<string>()
  for (let number = 0; number < size; number++) {
    const id = `00000000-0000-4000-a000-${number.toString(16).padStart(12, "0")}`
    const hash = (number + 1).toString(16).padStart(64, "0")
    const pending = random.next() < 0.03
    const at = pending
      ? new Date(now + 60_000)
      : new Date(now - 60_000 - Math.floor(random.next() ** 2 * 40 * millisPerDay))
    const payer = random.pick(people.buyers)
    const payTo = random.pick(people.sellers.filter((seller) => seller !== payer))
    // Some pay in one asset only, which is not the most used one.
    const asset = payer.startsWith("L") ? "CXLM" : random.pick(["CUSDC", "CUSDC", "CXLM"])
    const network = random.pick(["ledger:testnet", "ledger:testnet", "ledger:pubnet"])
    const scheme = random.pick(["exact", "exact", "upto"])
    const facilitator = random.pick(["one", "two"])
    const meant = BigInt(random.below(1_000_000)) * (random.next() < 0.05 ? 10n ** 30n : 1n)
    const listing = random.next() < 0.5 ? random.pick(listings) : undefined
    const organic = !paid.has(`${payTo} ${payer}`)
    paid.add(`${payer} ${payTo}`)
    const begun = number * 10
    reported.push({
      order: begun,
      fact: {
        type: "settlement.recorded",
        subject: id,
        at,
        data: {
          network,
          scheme,
          asset,
          payer,
          payTo,
          amountMax: (meant + 5n).toString(),
          amount: meant.toString(),
          facilitator,
          transaction: hash,
          resourceUrl: listing === undefined ? null : `${listing.url}?q=${number}`,
          principal: "p"
        }
      }
    })
    let status: Counted["status"] = pending ? "pending" : "unknown"
    let [amount, fee] = [0n, 0n]
    let order = begun
    let why: string | null = null
    const end = (state: string, moved: bigint | null, charged: bigint, reason: string | null) => {
      order += 1 + random.below(400)
      reported.push({
        order,
        fact: {
          type: `settlement.${state}`,
          subject: id,
          data: {
            transaction: hash,
            moved: moved?.toString() ?? null,
            feeChargedStroops: charged.toString(),
            ledger: null,
            reason
          }
        }
      })
      fee = charged
      why = reason
    }
    const chance = random.next()
    if (!pending && chance < 0.7) {
      const isReported = random.next() < 0.9
      end("settled", isReported ? meant : null, BigInt(random.below(50_000)), null)
      status = "success"
      amount = meant
    } else if (!pending && chance < 0.85) {
      const reason = random.pick(["settle_ledger_transaction_failed", "settle_ledger_authorization_spent"])
      end(random.pick(["failed", "expired"]), null, BigInt(random.below(2) * 100), reason)
      status = "failed"
    } else if (!pending && chance < 0.93) {
      end("unresolved", null, BigInt(random.below(300)), random.pick([null, "settle_ledger_history_gone"]))
      if (random.next() < 0.6) {
        const settled = random.next() < 0.5
        end(
          settled ? "settled" : "failed",
          settled ? meant : null,
          BigInt(random.below(300)),
          settled ? null : "settle_ledger_transaction_failed"
        )
        status = settled ? "success" : "failed"
        amount = settled ? meant : 0n
      }
    }
    // The URL's listing counts only for its own recipient; otherwise the catalog resolves the purchase of a declared
    // payment.
    let found = listing !== undefined && listing.payTo === payTo ? listing : undefined
    if (status === "success" && found === undefined && random.next() < 0.3) {
      found = random.pick(listings)
      reported.push({
        order: order + 1 + random.below(50),
        fact: {
          type: "catalog.sold",
          subject: found.id.toString(),
          data: { sales: [{ transaction: hash, resourceId: found.id.toString(), origin: new URL(found.url).origin }] }
        }
      })
    }
    counted.push({
      id,
      at,
      network,
      scheme,
      asset,
      payer,
      payTo,
      status,
      amount,
      fee,
      hash,
      facilitator,
      resource: found?.id,
      origin: found === undefined ? undefined : new URL(found.url).origin,
      organic,
      reason: why
    })
  }
  return { counted, facts: reported.sort((a, b) => a.order - b.order).map(({ fact }) => fact) }
}

export const sumOf = (items: ReadonlyArray<Counted>, of: (one: Counted) => bigint): bigint =>
  items.reduce((sum, one) => sum + of(one), 0n)
export const distinct = (items: ReadonlyArray<Counted>, of: (one: Counted) => unknown): string =>
  String(new Set(items.map(of).filter((value) => value !== undefined)).size)

/** The settlements of a window: whole UTC days back from today. */
export const shown = (all: ReadonlyArray<Counted>, days: number): ReadonlyArray<Counted> => {
  const since = days === 0 ? -Infinity : (Math.floor(Date.now() / millisPerDay) - days) * millisPerDay
  return all.filter(({ at, status }) => status !== "pending" && at.getTime() >= since)
}

export const countsOf = (items: ReadonlyArray<Counted>) => {
  const count = (status: string) => String(items.filter((one) => one.status === status).length)
  return {
    total_transactions: String(items.length),
    successful_transactions: count("success"),
    failed_transactions: count("failed"),
    unknown_transactions: count("unknown")
  }
}

const mostUsed = (items: ReadonlyArray<Counted>): string | null =>
  [...Map.groupBy(items, ({ asset }) => asset)].sort(
    ([a, of], [b, other]) => other.length - of.length || (a < b ? -1 : 1)
  )[0]?.[0] ?? null

/** The amount in the given or most used asset, and all amounts. */
export const moneyOf = (items: ReadonlyArray<Counted>, asset: string | null = mostUsed(items)) => ({
  asset,
  total_amount: String(
    sumOf(
      items.filter((one) => one.asset === asset),
      ({ amount }) => amount
    )
  ),
  amounts: [...Map.groupBy(items, (one) => one.asset)]
    .sort(([a, of], [b, other]) => other.length - of.length || (a < b ? -1 : 1))
    .map(([name, of]) => ({
      asset: name,
      amount: String(sumOf(of, ({ amount }) => amount)),
      transactions: String(of.length)
    }))
})

export const organicOf = (items: ReadonlyArray<Counted>, asset: string | null) => {
  const organic = items.filter(({ organic, status }) => organic && status === "success")
  return { successful_transactions: String(organic.length), ...moneyOf(organic, asset) }
}

export const newestFirst = (items: ReadonlyArray<Counted>): ReadonlyArray<Counted> =>
  items.toSorted((a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1))

export const timesOf = (items: ReadonlyArray<Counted>) => {
  const times = items.map(({ at }) => at.getTime()).sort((a, b) => a - b)
  const iso = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString())
  return { first_activity: iso(times[0]), latest_activity: iso(times.at(-1)) }
}
