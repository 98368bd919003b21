// Trading one asset for another. Through the book: the best offers are taken one after the other until an amount is
// reached, the book is empty, or the trade reaches an offer at which the trader asked to stop. Every offer on the way
// is really changed or erased in the operation's unit of change, so a caller that rejects the outcome drops that unit.
// A leg of a path payment goes through the pair's liquidity pool as a whole instead, unless the book is strictly
// cheaper.
import type { Asset, OfferEntry, PublicKey } from "../../engine/xdr/Xdr.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"
import type { ApplyContext } from "../Context.ts"
import { Txn } from "../Txn.ts"
import type { ClaimAtom } from "../Wire.ts"
import { adjustedAmount, exchange, type ExchangedAmounts, least, type Rounding } from "./exchangeAmounts.ts"
import { addToBalance, buyableMax, sellableMax } from "./Holding.ts"
import { acquire, bookOf, eraseOffer, isFrozen, offerKey, putOffer, release, sameAsset } from "./Offers.ts"
import { type Swap, swapReceiving, swapSending } from "./poolAmounts.ts"
import { isSwitchedOff, poolIdOfPair, poolKey, poolOf, PoolSwitch, putPool } from "./Pools.ts"

/** Offers that one operation may take. */
export const OFFERS_MAX = 1_000

interface Trade {
  readonly trader: PublicKey
  readonly send: Asset
  readonly sendMax: bigint
  readonly receive: Asset
  readonly receiveMax: bigint
  readonly rounding: Rounding
  /** Offers that may still be taken. */
  readonly offersMax: number
  readonly isTooDear: (offer: OfferEntry) => boolean
}

/**
 * `done`: an amount was reached; `partial`: the book or an offer ended before; `self`: the next offer is the trader's
 * own.
 */
export type Ending = "done" | "partial" | "tooDear" | "self" | "tooMany"

export interface TradeResult {
  readonly ending: Ending
  readonly sent: bigint
  readonly received: bigint
  readonly claims: ReadonlyArray<ClaimAtom>
  /** Its count against the offers that one operation may take. */
  readonly work: number
}

const move = (context: ApplyContext, id: PublicKey, asset: Asset, delta: bigint): void => {
  if (delta !== 0n && !addToBalance(context, id, asset, delta))
    throw new Error("an offer promised what its owner cannot keep")
}

/** Takes as much of one offer as the trade asks for; undefined amounts to nothing having changed hands. */
const take = (
  context: ApplyContext,
  trade: Trade,
  offer: OfferEntry,
  sendMax: bigint,
  receiveMax: bigint
): ExchangedAmounts & { readonly isGone: boolean } => {
  const { txn } = context
  const { sellerId, offerId, selling, buying, price } = offer
  txn.load(offerKey(sellerId, offerId))
  release(context, offer)
  const fitted = (amount: bigint): bigint =>
    adjustedAmount(price, least(amount, sellableMax(context, sellerId, selling)), buyableMax(context, sellerId, buying))
  const bounds = {
    offerSellsMax: least(fitted(offer.amount), sellableMax(context, sellerId, selling)),
    offerBuysMax: buyableMax(context, sellerId, buying),
    takerSendsMax: sendMax,
    takerReceivesMax: receiveMax
  }
  const exchanged = exchange(price, bounds, trade.rounding)
  move(context, sellerId, buying, exchanged.sent)
  move(context, sellerId, selling, -exchanged.received)
  const rest = exchanged.offerStays ? fitted(bounds.offerSellsMax - exchanged.received) : 0n
  if (rest === 0n) eraseOffer(context, offer)
  else {
    const left = { ...offer, amount: rest }
    putOffer(context, left, txn.peek(offerKey(sellerId, offerId))!.ext)
    acquire(context, left)
  }
  return { ...exchanged, isGone: rest === 0n }
}

const claimOf = (
  { sellerId, offerId, selling, buying }: OfferEntry,
  { received, sent }: ExchangedAmounts
): ClaimAtom => ({
  type: 1,
  orderBook: { sellerId, offerId, assetSold: selling, amountSold: received, assetBought: buying, amountBought: sent }
})

/** Trades only through the book. */
const convertByBook = (context: ApplyContext, trade: Trade): TradeResult => {
  const claims: Array<ClaimAtom> = []
  let [sent, received] = [0n, 0n]
  const ended = (ending: Ending): TradeResult => ({ ending, sent, received, claims, work: claims.length })
  if (trade.sendMax <= 0n || trade.receiveMax <= 0n) return ended("done")
  if (trade.offersMax === 0) return ended("tooMany")
  for (const offer of bookOf(context, trade.receive, trade.send)) {
    if (trade.isTooDear(offer)) return ended("tooDear")
    if (equalBytes(offer.sellerId.ed25519, trade.trader.ed25519)) return ended("self")
    if (isFrozen(context, offer)) {
      release(context, offer)
      eraseOffer(context, offer)
      continue
    }
    if (claims.length >= trade.offersMax) return ended("tooMany")
    const taken = take(context, trade, offer, trade.sendMax - sent, trade.receiveMax - received)
    sent += taken.sent
    received += taken.received
    claims.push(claimOf(offer, taken))
    if (taken.offerStays || sent >= trade.sendMax || received >= trade.receiveMax) return ended("done")
    if (!taken.isGone) return ended("partial")
  }
  return ended("partial")
}

/** The exchange through the pair's pool, in full or not. */
const swapBy = (context: ApplyContext, trade: Trade, id: Uint8Array): Swap | undefined => {
  if (trade.rounding === "normal" || trade.offersMax === 0 || isSwitchedOff(context.ledger, PoolSwitch.trading))
    return undefined
  const pool = poolOf(context.txn.peek(poolKey(id)))
  if (pool === undefined || pool.reserveA <= 0n || pool.reserveB <= 0n) return undefined
  const [reserveIn, reserveOut] = sameAsset(trade.send, pool.params.assetA)
    ? [pool.reserveA, pool.reserveB]
    : [pool.reserveB, pool.reserveA]
  return trade.rounding === "strictSend"
    ? swapSending(reserveIn, reserveOut, trade.sendMax)
    : swapReceiving(reserveIn, reserveOut, trade.receiveMax)
}

const throughPool = (context: ApplyContext, trade: Trade, id: Uint8Array, { sent, received }: Swap): ClaimAtom => {
  const pool = poolOf(context.txn.load(poolKey(id)))!
  const [inA, inB] = sameAsset(trade.send, pool.params.assetA) ? [sent, -received] : [-received, sent]
  putPool(context, id, { ...pool, reserveA: pool.reserveA + inA, reserveB: pool.reserveB + inB })
  return {
    type: 2,
    liquidityPool: {
      liquidityPoolId: id,
      assetSold: trade.receive,
      amountSold: received,
      assetBought: trade.send,
      amountBought: sent
    }
  }
}

/** Since this protocol the offers that were tried before a pool was preferred count against the limit. */
const TRIED_OFFERS_COUNT_SINCE = 27

/** Trades until an amount is reached, by the book or by the pair's pool, whichever gives more; the pool when equal. */
export const convert = (context: ApplyContext, trade: Trade): TradeResult => {
  if (trade.rounding === "normal") return convertByBook(context, trade)
  const id = poolIdOfPair(context.ledger, trade.send, trade.receive)
  const swap = swapBy(context, trade, id)
  if (swap === undefined) return convertByBook(context, trade)
  const aside = { ...context, txn: new Txn(context.txn.store, context.txn.ledgerSeq) }
  const booked = convertByBook(aside, trade)
  if (booked.ending === "done" && swap.sent * booked.received > swap.received * booked.sent) {
    aside.txn.commit()
    return booked
  }
  const tried = context.ledger.settings.protocolVersion >= TRIED_OFFERS_COUNT_SINCE ? booked.work : 0
  if (tried >= trade.offersMax) return { ...booked, ending: "tooMany" }
  return { ending: "done", ...swap, claims: [throughPool(context, trade, id, swap)], work: tried + 1 }
}
