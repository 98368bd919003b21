// ChangeTrust: opens, limits or closes a trustline. Pool shares are not supported and are refused before this.
import { AssetType, EntryType } from "../../engine/xdr/types.ts"
import { AccountFlag, poolUses, TrustFlag, trustLiabilities } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer, issuerOf } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { createSubentry, removeSubentry, reserveFailure } from "../reserves.ts"
import { type BodyOf, OperationType } from "../Wire.ts"
import { trustLineKey } from "../../engine/state/LedgerKeys.ts"
import type { Asset, LedgerEntry } from "../../engine/xdr/Xdr.ts"

const Code = {
  success: 0,
  malformed: -1,
  noIssuer: -2,
  invalidLimit: -3,
  lowReserve: -4,
  selfNotAllowed: -5,
  cannotDelete: -7
} as const
const result = (code: number) => inner(OperationType.changeTrust, code)

const change = (context: ApplyContext, asset: Asset, limit: bigint, entry: LedgerEntry) => {
  const { txn, source } = context
  const line = entry.data.type === EntryType.trustLine ? entry.data.trustLine : undefined
  if (line === undefined || limit < line.balance + trustLiabilities(line).buying) return result(Code.invalidLimit)
  if (limit === 0n) {
    if (poolUses(line) !== 0) return result(Code.cannotDelete)
    removeSubentry(context, txn.loadAccount(source)!, entry)
    txn.erase(trustLineKey(source, asset))
    return result(Code.success)
  }
  if (txn.peekAccount(issuerOf(asset)!) === undefined) return result(Code.noIssuer)
  txn.putTrustLine({ ...line, limit })
  return result(Code.success)
}

const open = (context: ApplyContext, asset: Asset, limit: bigint) => {
  const { txn, source } = context
  if (limit === 0n) return result(Code.invalidLimit)
  const issuer = txn.peekAccount(issuerOf(asset)!)
  if (issuer === undefined) return result(Code.noIssuer)
  const authorized = (issuer.flags & AccountFlag.authRequired) === 0 ? TrustFlag.authorized : 0
  const clawback = (issuer.flags & AccountFlag.clawbackEnabled) === 0 ? 0 : TrustFlag.clawbackEnabled
  const outcome = createSubentry(context, txn.loadAccount(source)!, {
    lastModifiedLedgerSeq: txn.ledgerSeq,
    data: {
      type: 1,
      trustLine: { accountId: source, asset, balance: 0n, limit, flags: authorized | clawback, ext: { v: 0 } }
    },
    ext: { v: 0 }
  })
  return outcome === "ok" ? result(Code.success) : reserveFailure(outcome, result(Code.lowReserve))
}

/** The asset of the line, or nothing for a pool share. */
const lineAsset = ({ changeTrustOp }: BodyOf<6>): Asset | undefined =>
  changeTrustOp.line.type === AssetType.poolShare ? undefined : changeTrustOp.line

export const isPoolShare = (body: BodyOf<6>): boolean => lineAsset(body) === undefined

export const changeTrust: OperationRules<6> = {
  threshold: Threshold.medium,
  check: (body, { source }) => {
    const asset = lineAsset(body)
    const bad =
      body.changeTrustOp.limit < 0n ||
      asset === undefined ||
      asset.type === AssetType.native ||
      !isAssetValid(asset) ||
      isIssuer(source, asset)
    return bad ? Code.malformed : 0
  },
  apply: (body, context) => {
    const asset = lineAsset(body)
    if (asset === undefined) return result(Code.malformed)
    const entry = context.txn.load(trustLineKey(context.source, asset))
    return entry === undefined
      ? open(context, asset, body.changeTrustOp.limit)
      : change(context, asset, body.changeTrustOp.limit, entry)
  }
}
