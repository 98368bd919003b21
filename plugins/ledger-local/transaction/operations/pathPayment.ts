// Payments that change the asset on the way: an exact amount arrives (strict receive, computed from the end of the path
// to its beginning) or an exact amount is sent (strict send, the other way round). Every leg goes through the book or a
// pool and must reach its amount in full; the sender's bound on the other side decides last. Equal neighbours on the
// path cost nothing.
import { AssetType } from "../../engine/xdr/types.ts"
import type { Asset, PublicKey } from "../../engine/xdr/Xdr.ts"
import { INT64_MAX } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, outer, type OperationRules } from "../Context.ts"
import { convert, OFFERS_MAX, type TradeResult } from "../exchange/convert.ts"
import type { Rounding } from "../exchange/exchangeAmounts.ts"
import { sameAsset } from "../exchange/Offers.ts"
import { accountOf } from "../Frame.ts"
import { Threshold } from "../Signatures.ts"
import { type ClaimAtom, type MuxedAccount, OpCode, type OperationResult } from "../Wire.ts"
import { credit, debit } from "./payment.ts"

const Code = { malformed: -1, noDestination: -5, tooFewOffers: -10, crossSelf: -11, outOfBounds: -12 } as const

type PathOperation = 2 | 13

interface Leg {
  readonly send: Asset
  readonly sendMax: bigint
  readonly receive: Asset
  readonly receiveMax: bigint
}

/** One leg of the path, or why the payment fails. */
const traverse = (
  context: ApplyContext,
  type: PathOperation,
  leg: Leg,
  rounding: Rounding,
  worked: number
): TradeResult | OperationResult => {
  const traded = convert(context, {
    ...leg,
    trader: context.source,
    rounding,
    offersMax: OFFERS_MAX - worked,
    isTooDear: () => false
  })
  if (traded.ending === "self") return inner(type, Code.crossSelf)
  if (traded.ending === "tooMany") return outer(OpCode.exceededWorkLimit)
  const isExact = rounding === "strictReceive" ? traded.received === leg.receiveMax : traded.sent === leg.sendMax
  return traded.ending === "done" && isExact ? traded : inner(type, Code.tooFewOffers)
}

/** The issuer receives its asset back even when its account no longer exists. */
const hasDestination = (
  { txn }: ApplyContext,
  to: PublicKey,
  send: Asset,
  receive: Asset,
  path: ReadonlyArray<Asset>
): boolean =>
  (receive.type !== AssetType.native && path.length === 0 && sameAsset(send, receive) && isIssuer(to, receive)) ||
  txn.peekAccount(to) !== undefined

const finish = (
  context: ApplyContext,
  type: PathOperation,
  claims: ReadonlyArray<ClaimAtom>,
  destination: MuxedAccount,
  asset: Asset,
  amount: bigint
): OperationResult => {
  context.events.claimed(context.muxedSource, claims)
  context.events.moved(asset, context.muxedSource, destination, amount)
  const last = { destination: accountOf(destination), asset, amount }
  return inner(type, 0, { success: { offers: [...claims], last } })
}

const areValid = (...assets: ReadonlyArray<Asset>): boolean => assets.every(isAssetValid)

export const pathPaymentStrictReceive: OperationRules<2> = {
  threshold: Threshold.medium,
  check: ({ pathPaymentStrictReceiveOp: op }) =>
    op.destAmount <= 0n || op.sendMax <= 0n || !areValid(op.sendAsset, op.destAsset, ...op.path) ? Code.malformed : 0,
  apply: ({ pathPaymentStrictReceiveOp: op }, context) => {
    const to = accountOf(op.destination)
    if (!hasDestination(context, to, op.sendAsset, op.destAsset, op.path)) return inner(2, Code.noDestination)
    const credited = credit(context, to, op.destAsset, op.destAmount)
    if (credited !== 0) return inner(2, credited)
    let [asset, amount] = [op.destAsset, op.destAmount]
    let claims: ReadonlyArray<ClaimAtom> = []
    let worked = 0
    for (const send of [...op.path.toReversed(), op.sendAsset]) {
      if (sameAsset(send, asset)) continue
      const leg = traverse(
        context,
        2,
        { send, sendMax: INT64_MAX, receive: asset, receiveMax: amount },
        "strictReceive",
        worked
      )
      if ("code" in leg) return leg
      worked += leg.work
      claims = [...leg.claims, ...claims]
      asset = send
      amount = leg.sent
    }
    if (amount > op.sendMax) return inner(2, Code.outOfBounds)
    const debited = debit(context, context.source, op.sendAsset, amount)
    return debited !== 0 ? inner(2, debited) : finish(context, 2, claims, op.destination, op.destAsset, op.destAmount)
  }
}

export const pathPaymentStrictSend: OperationRules<13> = {
  threshold: Threshold.medium,
  check: ({ pathPaymentStrictSendOp: op }) =>
    op.sendAmount <= 0n || op.destMin <= 0n || !areValid(op.sendAsset, op.destAsset, ...op.path) ? Code.malformed : 0,
  apply: ({ pathPaymentStrictSendOp: op }, context) => {
    const to = accountOf(op.destination)
    if (!hasDestination(context, to, op.sendAsset, op.destAsset, op.path)) return inner(13, Code.noDestination)
    const debited = debit(context, context.source, op.sendAsset, op.sendAmount)
    if (debited !== 0) return inner(13, debited)
    let [asset, amount] = [op.sendAsset, op.sendAmount]
    let claims: ReadonlyArray<ClaimAtom> = []
    let worked = 0
    for (const receive of [...op.path, op.destAsset]) {
      if (sameAsset(receive, asset)) continue
      const leg = traverse(
        context,
        13,
        { send: asset, sendMax: amount, receive, receiveMax: INT64_MAX },
        "strictSend",
        worked
      )
      if ("code" in leg) return leg
      worked += leg.work
      claims = [...claims, ...leg.claims]
      asset = receive
      amount = leg.received
    }
    if (amount < op.destMin) return inner(13, Code.outOfBounds)
    const credited = credit(context, to, op.destAsset, amount)
    return credited !== 0 ? inner(13, credited) : finish(context, 13, claims, op.destination, op.destAsset, amount)
  }
}
