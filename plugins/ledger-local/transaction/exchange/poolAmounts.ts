// The arithmetic of a liquidity pool that keeps the product of its two reserves: the amounts of a trade, the amounts
// and shares of a deposit, the value of shares. Thirty basis points of the sent amount stay in the pool; every rounding
// favours the pool. Pure functions over `bigint` amounts of at most 63 bits; `undefined` if the pool cannot do it.
import { INT64_MAX } from "../Accounts.ts"
import type { Price } from "./exchangeAmounts.ts"

/** The only fee that a pool may have, in basis points. */
export const POOL_FEE_BASIS_POINTS = 30
const WHOLE = 10_000n
const AFTER_FEE = WHOLE - BigInt(POOL_FEE_BASIS_POINTS)

const ceil = (a: bigint, b: bigint): bigint => (a + b - 1n) / b

export interface Swap {
  readonly sent: bigint
  readonly received: bigint
}

/** The amount received for exactly `sent`. */
export const swapSending = (reserveIn: bigint, reserveOut: bigint, sent: bigint): Swap | undefined => {
  if (sent > INT64_MAX - reserveIn) return undefined
  const received = (AFTER_FEE * reserveOut * sent) / (WHOLE * reserveIn + AFTER_FEE * sent)
  return received === 0n ? undefined : { sent, received }
}

/** The amount to send for exactly `received`, which may not empty the pool. */
export const swapReceiving = (reserveIn: bigint, reserveOut: bigint, received: bigint): Swap | undefined => {
  if (received >= reserveOut) return undefined
  const sent = ceil(WHOLE * reserveIn * received, (reserveOut - received) * AFTER_FEE)
  return sent > INT64_MAX - reserveIn ? undefined : { sent, received }
}

/** The largest integer with a square of at most `n`. */
const squareRoot = (n: bigint): bigint => {
  if (n < 2n) return n
  let root = 1n << BigInt((n.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + n / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

interface Reserves {
  readonly reserveA: bigint
  readonly reserveB: bigint
  readonly totalPoolShares: bigint
}

interface Deposit {
  readonly amountA: bigint
  readonly amountB: bigint
  readonly shares: bigint
}

/** The amounts that a deposit of at most these amounts takes, and the shares that it earns. */
export const depositOf = (pool: Reserves, mostA: bigint, mostB: bigint): Deposit => {
  const { reserveA, reserveB, totalPoolShares } = pool
  if (totalPoolShares === 0n) return { amountA: mostA, amountB: mostB, shares: squareRoot(mostA * mostB) }
  const [byA, byB] = [(totalPoolShares * mostA) / reserveA, (totalPoolShares * mostB) / reserveB]
  const shares = byA < byB ? byA : byB
  return {
    amountA: ceil(shares * reserveA, totalPoolShares),
    amountB: ceil(shares * reserveB, totalPoolShares),
    shares
  }
}

/** True when a deposit is of nothing, or its price of A in B lies outside the bounds. */
export const isBadPrice = ({ amountA, amountB }: Deposit, least: Price, most: Price): boolean =>
  amountA === 0n ||
  amountB === 0n ||
  amountA * BigInt(least.d) < amountB * BigInt(least.n) ||
  amountA * BigInt(most.d) > amountB * BigInt(most.n)

/** The value of a number of shares in one reserve. */
export const withdrawalOf = (shares: bigint, { totalPoolShares }: Reserves, reserve: bigint): bigint =>
  (shares * reserve) / totalPoolShares
