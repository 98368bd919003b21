// The arithmetic of the exchange: the amounts that change hands when an offer is taken. The side that is worth less is
// used up, and rounding favors the side that stays in the book, by at most one percent unless a path payment asks for
// more (which its limits bound). Pure functions over `bigint` amounts of at most 63 bits.
import { INT64_MAX } from "../Accounts.ts"

/** The price of one unit sold: n units bought for d units sold, both 1 to 2^31 − 1. */
export interface Price {
  readonly n: number
  readonly d: number
}

/** `exact` amounts on the sending or the receiving side are what path payments are about. */
export type Rounding = "normal" | "strictReceive" | "strictSend"

/** The taker sends `sent` of the asset that the offer buys and receives `received` of the asset that it sells. */
export interface ExchangedAmounts {
  readonly received: bigint
  readonly sent: bigint
  /** True when the offer was worth more, and stays with the rest. */
  readonly offerStays: boolean
}

interface Bounds {
  readonly offerSellsMax: bigint
  readonly offerBuysMax: bigint
  readonly takerSendsMax: bigint
  readonly takerReceivesMax: bigint
}

export const least = (first: bigint, ...rest: ReadonlyArray<bigint>): bigint =>
  rest.reduce((a, b) => (b < a ? b : a), first)

const floor = (a: bigint, b: bigint): bigint => a / b
const ceil = (a: bigint, b: bigint): bigint => (a + b - 1n) / b

/** The amounts without the bound on rounding, which is how the liabilities of an offer are counted. */
const rawExchange = (price: Price, bounds: Bounds, rounding: Rounding): ExchangedAmounts => {
  const [n, d] = [BigInt(price.n), BigInt(price.d)]
  const offerWorth = least(bounds.offerSellsMax * n, bounds.offerBuysMax * d)
  const takerWorth = least(bounds.takerSendsMax * d, bounds.takerReceivesMax * n)
  if (offerWorth > takerWorth) {
    if (rounding === "strictSend") {
      return {
        received: floor(takerWorth, n),
        sent: least(bounds.takerSendsMax, bounds.offerBuysMax),
        offerStays: true
      }
    }
    if (n > d || rounding === "strictReceive") {
      const received = floor(takerWorth, n)
      return { received, sent: ceil(received * n, d), offerStays: true }
    }
    const sent = floor(takerWorth, d)
    return { received: floor(sent * d, n), sent, offerStays: true }
  }
  if (n > d) {
    const received = floor(offerWorth, n)
    return { received, sent: floor(received * n, d), offerStays: false }
  }
  const sent = floor(offerWorth, d)
  return { received: ceil(sent * d, n), sent, offerStays: false }
}

/** True when neither side is more than one percent worse off than at the exact price. */
const isFair = ({ n, d }: Price, { received, sent }: ExchangedAmounts): boolean => {
  const [asked, paid] = [BigInt(n) * received, BigInt(d) * sent]
  const error = paid > asked ? paid - asked : asked - paid
  return 100n * error <= asked
}

/**
 * The exchanged amounts; undefined, when rounding would take more than one percent from either side of an ordinary
 * trade.
 */
export const exchange = (price: Price, bounds: Bounds, rounding: Rounding): ExchangedAmounts => {
  const raw = rawExchange(price, bounds, rounding)
  const none = { received: 0n, sent: 0n, offerStays: raw.offerStays }
  if (raw.received === 0n || raw.sent === 0n) return rounding === "strictSend" ? raw : none
  return rounding === "normal" && !isFair(price, raw) ? none : raw
}

/** The maximum that an offer can really sell, given its owner's balance and limit. */
export const adjustedAmount = (price: Price, offerSellsMax: bigint, offerBuysMax: bigint): bigint =>
  exchange(price, { offerSellsMax, offerBuysMax, takerSendsMax: INT64_MAX, takerReceivesMax: INT64_MAX }, "normal")
    .received

/** The liabilities of an offer: `selling` of one asset, room for `buying` of the other. */
export const liabilitiesOf = (price: Price, amount: bigint): { readonly selling: bigint; readonly buying: bigint } => {
  const bounds = {
    offerSellsMax: amount,
    offerBuysMax: INT64_MAX,
    takerSendsMax: INT64_MAX,
    takerReceivesMax: INT64_MAX
  }
  const { received, sent } = rawExchange(price, bounds, "normal")
  return { selling: received, buying: sent }
}

/** The same for an offer that names how much it buys. */
export const liabilitiesOfBuying = (
  price: Price,
  buyAmount: bigint
): { readonly selling: bigint; readonly buying: bigint } => {
  const bounds = {
    offerSellsMax: INT64_MAX,
    offerBuysMax: buyAmount,
    takerSendsMax: INT64_MAX,
    takerReceivesMax: INT64_MAX
  }
  const { received, sent } = rawExchange(price, bounds, "normal")
  return { selling: received, buying: sent }
}
