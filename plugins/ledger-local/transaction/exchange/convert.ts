// Trading one asset for another through the book: the best offers are taken one after the other until an amount is
// reached, the book is empty, or an offer is met at which the trader asked to stop. Every offer met is really changed
// or erased in the operation's unit of change, so a caller that does not like the outcome drops that unit.
import type { Asset, OfferEntry, PublicKey } from "../../engine/xdr/Xdr.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"
import type { ApplyContext } from "../Context.ts"
import type { ClaimAtom } from "../Wire.ts"
import { adjustedAmount, exchange, type Exchanged, least, type Rounding } from "./exchangeAmounts.ts"
import { addToBalance, buyableMax, sellableMax } from "./Holding.ts"
import { acquire, bookOf, eraseOffer, isFrozen, offerKey, putOffer, refusePools, release } from "./Offers.ts"

/** Offers that one operation may take. */
export const OFFERS_MAX = 1_000

export interface Trade {
  readonly trader: PublicKey
  readonly send: Asset
  readonly sendMax: bigint
  readonly receive: Asset
  readonly receiveMax: bigint
  readonly rounding: Rounding
  /** Offers that may still be taken. */
  readonly offersMax: number
  /** True for an offer that is too expensive. */
  readonly isTooDear: (offer: OfferEntry) => boolean
}

/**
 * `done`: an amount was reached; `partial`: the book or an offer ended before; `self`: the next offer is the trader's
 * own.
 */
export type Ending = "done" | "partial" | "tooDear" | "self" | "tooMany"

export interface Traded {
  readonly ending: Ending
  readonly sent: bigint
  readonly received: bigint
  readonly claims: ReadonlyArray<ClaimAtom>
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
): Exchanged & { readonly isGone: boolean } => {
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

const claimOf = ({ sellerId, offerId, selling, buying }: OfferEntry, { received, sent }: Exchanged): ClaimAtom => ({
  type: 1,
  orderBook: { sellerId, offerId, assetSold: selling, amountSold: received, assetBought: buying, amountBought: sent }
})

/** Trades until an amount is reached. Throws `Unsupported` where a liquidity pool would take part. */
export const convert = (context: ApplyContext, trade: Trade): Traded => {
  const claims: Array<ClaimAtom> = []
  let [sent, received] = [0n, 0n]
  const ended = (ending: Ending): Traded => ({ ending, sent, received, claims })
  if (trade.rounding !== "normal") refusePools(context, trade.send, trade.receive)
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
