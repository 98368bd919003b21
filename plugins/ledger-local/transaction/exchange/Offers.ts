// Offers as entries: their keys and order, their liabilities, and the book of a pair of assets. The best offer is the
// cheapest, the oldest among equals; prices compare as the network compares them, as floating-point quotients. Each
// trade reads the book from the whole state. Trades are rare here, and other operations need not maintain a book.
import { AssetType, EntryType } from "../../engine/xdr/types.ts"
import { Unsupported } from "../../engine/host/HostError.ts"
import { accountKeyString, keyOfEntry, trustLineKey, keyString } from "../../engine/state/LedgerKeys.ts"
import {
  type Asset,
  codecAsset,
  equalBytes,
  latin1,
  type LedgerEntry,
  type LedgerKey,
  type OfferEntry,
  type PublicKey
} from "../../engine/xdr/Xdr.ts"
import { isIssuer } from "../ClassicEvents.ts"
import type { ApplyContext } from "../Context.ts"
import { removeSubentry } from "../reserves.ts"
import { liabilitiesOf } from "./exchangeAmounts.ts"
import { addLiabilities } from "./Holding.ts"

/** Of a passive offer, which does not take another at exactly its own price. */
export const PASSIVE_FLAG = 1

/** Every offer's key string begins like this, and no other entry's. */
const OFFER_PREFIX = "\0\0\0\x02"

/** All offers. Throws `Unsupported` on a fork: no RPC lists offers. */
const allOffers = ({ txn }: ApplyContext): Iterable<LedgerEntry> => {
  if (txn.store.isPartial) throw new Unsupported("the order book of a forked network")
  return txn.store.entriesUnder(OFFER_PREFIX)
}

export const offerKey = (sellerId: PublicKey, offerId: bigint): LedgerKey => ({ type: 2, offer: { sellerId, offerId } })

const assetId = (asset: Asset): string => latin1(codecAsset.encode(asset))

export const sameAsset = (a: Asset, b: Asset): boolean => assetId(a) === assetId(b)

export const offerOf = (entry: LedgerEntry | undefined): OfferEntry | undefined =>
  entry?.data.type === EntryType.offer ? entry.data.offer : undefined

const quotient = ({ price }: OfferEntry): number => price.n / price.d

const betterFirst = (a: OfferEntry, b: OfferEntry): number =>
  quotient(a) - quotient(b) || (a.offerId < b.offerId ? -1 : a.offerId > b.offerId ? 1 : 0)

/** The offers that sell `selling` for `buying`, best first. */
export const bookOf = (context: ApplyContext, selling: Asset, buying: Asset): ReadonlyArray<OfferEntry> => {
  const [sold, bought] = [assetId(selling), assetId(buying)]
  const offers: Array<OfferEntry> = []
  for (const entry of allOffers(context)) {
    const offer = offerOf(entry)
    if (offer !== undefined && assetId(offer.selling) === sold && assetId(offer.buying) === bought) offers.push(offer)
  }
  return offers.sort(betterFirst)
}

export const offersAbout = (context: ApplyContext, seller: PublicKey, asset: Asset): ReadonlyArray<OfferEntry> => {
  const offers: Array<OfferEntry> = []
  for (const entry of allOffers(context)) {
    const offer = offerOf(entry)
    if (offer === undefined || !equalBytes(offer.sellerId.ed25519, seller.ed25519)) continue
    if (sameAsset(offer.selling, asset) || sameAsset(offer.buying, asset)) offers.push(offer)
  }
  return offers
}

const promise = (context: ApplyContext, offer: OfferEntry, sign: 1n | -1n): void => {
  const { selling, buying } = liabilitiesOf(offer.price, offer.amount)
  const done =
    addLiabilities(context, offer.sellerId, offer.buying, "buying", sign * buying) &&
    addLiabilities(context, offer.sellerId, offer.selling, "selling", sign * selling)
  if (!done) throw new Error("an offer's liabilities do not fit its owner's holdings")
}

export const acquire = (context: ApplyContext, offer: OfferEntry): void => promise(context, offer, 1n)

/** The promise is taken back. */
export const release = (context: ApplyContext, offer: OfferEntry): void => promise(context, offer, -1n)

/** Removes an offer from the ledger with its reserve; its liabilities are already released. */
export const eraseOffer = (context: ApplyContext, { sellerId, offerId }: OfferEntry): void => {
  const { txn } = context
  const key = offerKey(sellerId, offerId)
  removeSubentry(context, txn.loadAccount(sellerId)!, txn.peek(key)!)
  txn.erase(key)
}

/** True when the network has frozen the seller's account or one of the two trustlines behind an offer. */
export const isFrozen = ({ ledger }: ApplyContext, { sellerId, selling, buying }: OfferEntry): boolean => {
  const { frozenKeys } = ledger.settings
  if (frozenKeys.size === 0) return false
  const isKeyFrozen = (asset: Asset): boolean =>
    asset.type === AssetType.native || isIssuer(sellerId, asset)
      ? false
      : frozenKeys.has(keyString(trustLineKey(sellerId, asset)))
  return frozenKeys.has(accountKeyString(sellerId)) || isKeyFrozen(selling) || isKeyFrozen(buying)
}

/** The entry of an offer, with the number of the ledger that writes it. */
export const putOffer = ({ txn }: ApplyContext, offer: OfferEntry, ext: LedgerEntry["ext"]): void => {
  const entry: LedgerEntry = { lastModifiedLedgerSeq: txn.ledgerSeq, data: { type: 2, offer }, ext }
  txn.store.set(keyString(keyOfEntry(entry)), entry)
}
