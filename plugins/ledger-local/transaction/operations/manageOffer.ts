// The three operations on offers: sell, buy, and sell passively. An offer first takes offers from the book at its price
// or better; the rest of it joins the book with its liabilities counted. Changing an offer releases its liabilities
// first and keeps its number; an amount of zero deletes it. The reserve is taken before anything is traded.
import { AssetType } from "../../engine/xdr/types.ts"
import type { LedgerEntry, OfferEntry } from "../../engine/xdr/Xdr.ts"
import { isAuthorized } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, outer, type OperationRules } from "../Context.ts"
import { convert, type Ending, OFFERS_MAX } from "../exchange/convert.ts"
import { adjustedAmount, least, liabilitiesOf, liabilitiesOfBuying, type Price } from "../exchange/exchangeAmounts.ts"
import { addToBalance, buyableMax, holdingOf, sellableMax } from "../exchange/Holding.ts"
import { acquire, offerKey, offerOf, PASSIVE_FLAG, putOffer, release, sameAsset } from "../exchange/Offers.ts"
import { Threshold } from "../Signatures.ts"
import { createSubentry, removeSubentry, reserveFailure } from "../reserves.ts"
import { type BodyOf, OpCode, OperationType, type OperationResult } from "../Wire.ts"

const Code = {
  malformed: -1,
  sellNoTrust: -2,
  buyNoTrust: -3,
  sellNotAuthorized: -4,
  buyNotAuthorized: -5,
  lineFull: -6,
  underfunded: -7,
  crossSelf: -8,
  notFound: -11,
  lowReserve: -12
} as const
const OfferEffect = { created: 0, updated: 1, deleted: 2 } as const

type OfferOperation = 3 | 4 | 12

/** The three operations in one form. */
interface OfferRequest {
  readonly type: OfferOperation
  readonly selling: OfferEntry["selling"]
  readonly buying: OfferEntry["buying"]
  /** Of the side that is fixed. */
  readonly amount: bigint
  readonly isBuying: boolean
  /** Bought per sold. */
  readonly price: Price
  readonly offerId: bigint
  readonly isPassive: boolean
}

const wishOf = (body: BodyOf<3> | BodyOf<4> | BodyOf<12>): OfferRequest => {
  switch (body.type) {
    case OperationType.manageSellOffer:
      return { type: 3, ...body.manageSellOfferOp, isBuying: false, isPassive: false }
    case OperationType.createPassiveSellOffer:
      return { type: 4, ...body.createPassiveSellOfferOp, offerId: 0n, isBuying: false, isPassive: true }
    case OperationType.manageBuyOffer: {
      const { buyAmount, price, ...rest } = body.manageBuyOfferOp
      return {
        type: 12,
        ...rest,
        amount: buyAmount,
        price: { n: price.d, d: price.n },
        isBuying: true,
        isPassive: false
      }
    }
  }
}

const isMalformed = ({ selling, buying, amount, price, offerId }: OfferRequest): boolean =>
  !isAssetValid(selling) ||
  !isAssetValid(buying) ||
  sameAsset(selling, buying) ||
  amount < 0n ||
  price.n <= 0 ||
  price.d <= 0 ||
  (offerId === 0n && amount === 0n) ||
  offerId < 0n

/** The trustlines' first objection; 0 when there is none. */
const trustProblem = ({ txn, source }: ApplyContext, { selling, buying }: OfferRequest): number => {
  if (selling.type !== AssetType.native && !isIssuer(source, selling)) {
    const line = txn.peekTrustLine(source, selling)
    if (line === undefined) return Code.sellNoTrust
    if (line.balance === 0n) return Code.underfunded
    if (!isAuthorized(line)) return Code.sellNotAuthorized
  }
  if (buying.type !== AssetType.native && !isIssuer(source, buying)) {
    const line = txn.peekTrustLine(source, buying)
    if (line === undefined) return Code.buyNoTrust
    if (!isAuthorized(line)) return Code.buyNotAuthorized
  }
  return 0
}

const offerFrom = (wish: OfferRequest, seller: OfferEntry["sellerId"], amount: bigint, flags: number): OfferEntry => ({
  sellerId: seller,
  offerId: wish.offerId,
  selling: wish.selling,
  buying: wish.buying,
  amount,
  price: wish.price,
  flags,
  ext: { v: 0 }
})

interface Slot {
  readonly flags: number
  /** The payer of the reserve, as the entry has it. */
  readonly ext: LedgerEntry["ext"]
}

/** Takes the old offer out, or the reserve of a new one. */
const takeSlot = (context: ApplyContext, wish: OfferRequest): Slot | OperationResult => {
  const { txn, source } = context
  const key = offerKey(source, wish.offerId)
  if (wish.offerId !== 0n) {
    const entry = txn.load(key)
    const old = offerOf(entry)
    if (entry === undefined || old === undefined) return inner(wish.type, Code.notFound)
    release(context, old)
    txn.erase(key)
    return { flags: old.flags, ext: entry.ext }
  }
  const flags = wish.isPassive ? PASSIVE_FLAG : 0
  const placeholder: LedgerEntry = {
    lastModifiedLedgerSeq: txn.ledgerSeq,
    data: { type: 2, offer: offerFrom(wish, source, 0n, flags) },
    ext: { v: 0 }
  }
  const outcome = createSubentry(context, txn.loadAccount(source)!, placeholder)
  if (outcome !== "ok") return reserveFailure(outcome, inner(wish.type, Code.lowReserve))
  const { ext } = txn.peek(key)!
  txn.erase(key)
  return { flags, ext }
}

const endings: Readonly<Partial<Record<Ending, (type: OfferOperation) => OperationResult>>> = {
  self: (type) => inner(type, Code.crossSelf),
  tooMany: () => outer(OpCode.exceededWorkLimit)
}

/** Takes the book's offers at this price; returns the claims, and the amount that is left to offer. */
const trade = (context: ApplyContext, wish: OfferRequest, isPassive: boolean) => {
  const { source } = context
  const { selling, buying, price } = wish
  const promised = wish.isBuying ? liabilitiesOfBuying(price, wish.amount) : liabilitiesOf(price, wish.amount)
  if (holdingOf(context, source, buying).room < promised.buying) return inner(wish.type, Code.lineFull)
  if (holdingOf(context, source, selling).available < promised.selling) return inner(wish.type, Code.underfunded)
  const limits = (sent: bigint, received: bigint) => {
    const [sends, receives] = [sellableMax(context, source, selling), buyableMax(context, source, buying)]
    return wish.isBuying
      ? { sends, receives: least(receives, wish.amount - received) }
      : { sends: least(sends, wish.amount - sent), receives }
  }
  const first = limits(0n, 0n)
  if (first.receives === 0n) return inner(wish.type, Code.lineFull)
  // An offer of the other side is too dear when it asks for more than this one's price turned round.
  const isTooDear = (other: OfferEntry): boolean => {
    const [asked, given] = [BigInt(other.price.n) * BigInt(price.n), BigInt(other.price.d) * BigInt(price.d)]
    return isPassive ? asked >= given : asked > given
  }
  const traded = convert(context, {
    trader: source,
    send: selling,
    sendMax: first.sends,
    receive: buying,
    receiveMax: first.receives,
    rounding: "normal",
    offersMax: OFFERS_MAX,
    isTooDear
  })
  const failure = endings[traded.ending]
  if (failure !== undefined) return failure(wish.type)
  const { sent, received, claims } = traded
  if (
    received > 0n &&
    !(addToBalance(context, source, buying, received) && addToBalance(context, source, selling, -sent))
  ) {
    throw new Error("a trade went beyond what the trader has or has room for")
  }
  context.events.claimed(context.muxedSource, claims)
  if (traded.ending === "done") return { claims, amount: 0n }
  const left = limits(sent, received)
  return { claims, amount: adjustedAmount(price, left.sends, left.receives) }
}

const apply = (body: BodyOf<3> | BodyOf<4> | BodyOf<12>, context: ApplyContext): OperationResult => {
  const wish = wishOf(body)
  const { txn, source } = context
  const isDeletion = wish.amount === 0n
  const problem = isDeletion ? 0 : trustProblem(context, wish)
  if (problem !== 0) return inner(wish.type, problem)
  const slot = takeSlot(context, wish)
  if ("code" in slot) return slot
  const isPassive = (slot.flags & PASSIVE_FLAG) !== 0
  const traded = isDeletion ? { claims: [], amount: 0n } : trade(context, wish, isPassive)
  if ("code" in traded) return traded
  const done = (offer: unknown): OperationResult =>
    inner(wish.type, 0, { success: { offersClaimed: [...traded.claims], offer } })
  if (traded.amount === 0n) {
    const reserved: LedgerEntry = {
      lastModifiedLedgerSeq: txn.ledgerSeq,
      data: { type: 2, offer: offerFrom(wish, source, 0n, 0) },
      ext: slot.ext
    }
    removeSubentry(context, txn.loadAccount(source)!, reserved)
    return done({ effect: OfferEffect.deleted })
  }
  const isNew = wish.offerId === 0n
  const offer = {
    ...offerFrom(wish, source, traded.amount, slot.flags),
    offerId: isNew ? context.nextOfferId() : wish.offerId
  }
  putOffer(context, offer, slot.ext)
  acquire(context, offer)
  return done({ effect: isNew ? OfferEffect.created : OfferEffect.updated, offer })
}

const rules = {
  threshold: Threshold.medium,
  check: (body: BodyOf<3> | BodyOf<4> | BodyOf<12>) => (isMalformed(wishOf(body)) ? Code.malformed : 0),
  apply
}

export const manageSellOffer: OperationRules<3> = rules
export const createPassiveSellOffer: OperationRules<4> = rules
export const manageBuyOffer: OperationRules<12> = rules
