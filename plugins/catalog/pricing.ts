// Parses human-readable prices, a decimal amount of a currency, into this ledger's assets, so that an origin's manifest
// and a query's price limit are read in the same way. Pure.

/** An asset of this ledger that can pay a price. */
export interface PricedAsset {
  /** Neutral. */
  readonly network: string
  readonly contract: string
  readonly symbol: string
  readonly decimals: number
}

/** Symbols of assets that represent a currency, by its code. */
const symbolsOf: Readonly<Record<string, ReadonlyArray<string>>> = { USD: ["USDC"], EUR: ["EURC"] }

/** Whether a price in a currency can be paid in the asset of this symbol. */
export const isPaidIn = (currency: string, symbol: string): boolean =>
  symbol === currency || (symbolsOf[currency] ?? []).includes(symbol)

/** A decimal amount in atomic units; undefined when it is not one, or finer than the asset is. */
export const atomicAmount = (text: string, decimals: number): string | undefined => {
  const [, whole, fraction = ""] = /^\$?(\d{1,15})(?:\.(\d{1,38}))?$/.exec(text.trim()) ?? []
  if (whole === undefined || fraction.replace(/0+$/, "").length > decimals) return undefined
  return BigInt(whole + fraction.padEnd(decimals, "0").slice(0, decimals)).toString()
}
