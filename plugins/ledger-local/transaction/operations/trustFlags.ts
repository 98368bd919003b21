// SetTrustLineFlags and its older form AllowTrust: an issuer grants, limits or revokes another account's use of its
// asset. Revoking needs the issuer's AUTH_REVOCABLE flag, takes the account's offers in the asset out of the book, and
// turns its shares of the asset's pools into claimable balances.
import { AssetType } from "../../engine/xdr/types.ts"
import { AccountFlag, isAuthorized, maintainsLiabilities, TrustFlag } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { eraseOffer, offersAbout, release } from "../exchange/Offers.ts"
import { redeemShares } from "../exchange/redeemShares.ts"
import { reserveFailure, type ReserveOutcome } from "../reserves.ts"
import { Threshold } from "../Signatures.ts"
import { type BodyOf, OperationType } from "../Wire.ts"
import { equalBytes, type Asset, type PublicKey, type TrustLineEntry } from "../../engine/xdr/Xdr.ts"

const AUTH_MASK = TrustFlag.authorized | TrustFlag.maintainLiabilities
const FLAGS_MASK = AUTH_MASK | TrustFlag.clawbackEnabled
const bothAuths = (flags: number): boolean => (flags & AUTH_MASK) === AUTH_MASK

const isRevocable = ({ txn, source }: ApplyContext): boolean =>
  ((txn.peekAccount(source)?.flags ?? 0) & AccountFlag.authRevocable) !== 0

const setFlags = (context: ApplyContext, asset: Asset, line: TrustLineEntry, flags: number): ReserveOutcome => {
  const { txn, events } = context
  if (maintainsLiabilities(line.flags) && !maintainsLiabilities(flags)) {
    for (const offer of offersAbout(context, line.accountId, asset)) {
      release(context, offer)
      eraseOffer(context, offer)
    }
    const redeemed = redeemShares(context, line.accountId, asset)
    if (redeemed !== "ok") return redeemed
  }
  txn.putTrustLine({ ...txn.peekTrustLine(line.accountId, asset)!, flags })
  events.authorized(asset, line.accountId, (flags & TrustFlag.authorized) !== 0)
  return "ok"
}

const Set = {
  success: 0,
  malformed: -1,
  noTrustLine: -2,
  cantRevoke: -3,
  invalidState: -4,
  lowReserve: -5
} as const
const setResult = (code: number) => inner(OperationType.setTrustLineFlags, code)

export const setTrustLineFlags: OperationRules<21> = {
  threshold: Threshold.low,
  check: ({ setTrustLineFlagsOp: op }, { source }) => {
    const bad =
      op.asset.type === AssetType.native ||
      !isAssetValid(op.asset) ||
      !isIssuer(source, op.asset) ||
      equalBytes(op.trustor.ed25519, source.ed25519) ||
      (op.setFlags & op.clearFlags) !== 0 ||
      (op.setFlags & ~AUTH_MASK) !== 0 ||
      bothAuths(op.setFlags) ||
      (op.clearFlags & ~FLAGS_MASK) !== 0
    return bad ? Set.malformed : 0
  },
  apply: ({ setTrustLineFlagsOp: op }, context) => {
    const lessens = (op.clearFlags & AUTH_MASK) !== 0 && (op.setFlags & TrustFlag.authorized) === 0
    if (lessens && !isRevocable(context)) return setResult(Set.cantRevoke)
    const line = context.txn.loadTrustLine(op.trustor, op.asset)
    if (line === undefined) return setResult(Set.noTrustLine)
    const flags = (line.flags & ~op.clearFlags) | op.setFlags
    if (bothAuths(flags)) return setResult(Set.invalidState)
    const outcome = setFlags(context, op.asset, line, flags)
    return outcome === "ok" ? setResult(Set.success) : reserveFailure(outcome, setResult(Set.lowReserve))
  }
}

const Allow = { success: 0, malformed: -1, noTrustLine: -2, cantRevoke: -4, lowReserve: -6 } as const
const allowResult = (code: number) => inner(OperationType.allowTrust, code)

/** The issuer's asset that the operation names by its code. */
export const allowedAsset = ({ allowTrustOp }: BodyOf<7>, issuer: PublicKey): Asset =>
  allowTrustOp.asset.type === AssetType.alphaNum4
    ? { type: 1, alphaNum4: { assetCode: allowTrustOp.asset.assetCode4, issuer } }
    : { type: 2, alphaNum12: { assetCode: allowTrustOp.asset.assetCode12, issuer } }

export const allowTrust: OperationRules<7> = {
  threshold: Threshold.low,
  check: (body, { source }) => {
    const { authorize, trustor } = body.allowTrustOp
    const bad =
      authorize > AUTH_MASK ||
      bothAuths(authorize) ||
      !isAssetValid(allowedAsset(body, source)) ||
      equalBytes(trustor.ed25519, source.ed25519)
    return bad ? Allow.malformed : 0
  },
  apply: (body, context) => {
    const { authorize, trustor } = body.allowTrustOp
    const asset = allowedAsset(body, context.source)
    const revocable = isRevocable(context)
    if (!revocable && authorize === 0) return allowResult(Allow.cantRevoke)
    const line = context.txn.loadTrustLine(trustor, asset)
    if (line === undefined) return allowResult(Allow.noTrustLine)
    if (!revocable && isAuthorized(line) && authorize === TrustFlag.maintainLiabilities)
      return allowResult(Allow.cantRevoke)
    const outcome = setFlags(context, asset, line, (line.flags & ~AUTH_MASK) | authorize)
    return outcome === "ok" ? allowResult(Allow.success) : reserveFailure(outcome, allowResult(Allow.lowReserve))
  }
}
