// ChangeTrust: opens, limits or closes a trustline, of an asset or of a pool's shares. A line of shares takes two
// reserves, needs no separate authorization by an issuer, and holds the owner's lines of the pool's assets open.
import { AssetType, EntryType } from "../../engine/xdr/types.ts"
import { AccountFlag, poolUses, TrustFlag, trustLiabilities } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { issuerOf } from "../../engine/sac/SacInstance.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type LedgerContext, type OperationRules } from "../Context.ts"
import { areParametersValid, joinPool, leavePool, poolIdOf } from "../exchange/Pools.ts"
import { Threshold } from "../Signatures.ts"
import { createSubentry, removeSubentry, reserveFailure } from "../reserves.ts"
import { type BodyOf, OperationType, type OperationResult, type PoolParameters } from "../Wire.ts"
import { trustLineKey } from "../../engine/state/LedgerKeys.ts"
import type { Asset, LedgerEntry, TrustLineAsset } from "../../engine/xdr/Xdr.ts"

const Code = {
  success: 0,
  malformed: -1,
  noIssuer: -2,
  invalidLimit: -3,
  lowReserve: -4,
  lineMissing: -6,
  cannotDelete: -7,
  notAuthorized: -8
} as const
const result = (code: number): OperationResult => inner(OperationType.changeTrust, code)

/** The subject of a line: an asset, or the shares of a pool by its parameters and its id. */
type Subject =
  | { readonly asset: Asset; readonly pool?: never }
  | { readonly asset: TrustLineAsset; readonly pool: { readonly id: Uint8Array; readonly params: PoolParameters } }

const subjectOf = (line: BodyOf<6>["changeTrustOp"]["line"], ledger: LedgerContext): Subject => {
  if (line.type !== AssetType.poolShare) return { asset: line }
  const params = line.liquidityPool.constantProduct
  const id = poolIdOf(ledger, params)
  return { asset: { type: AssetType.poolShare, liquidityPoolId: id }, pool: { id, params } }
}

const close = (context: ApplyContext, { asset, pool }: Subject, entry: LedgerEntry): OperationResult => {
  const { txn, source } = context
  removeSubentry(context, txn.loadAccount(source)!, entry)
  txn.erase(trustLineKey(source, asset))
  if (pool !== undefined) leavePool(context, pool.id, source)
  return result(Code.success)
}

const change = (context: ApplyContext, subject: Subject, limit: bigint, entry: LedgerEntry): OperationResult => {
  const { txn } = context
  const line = entry.data.type === EntryType.trustLine ? entry.data.trustLine : undefined
  if (line === undefined || limit < line.balance + trustLiabilities(line).buying) return result(Code.invalidLimit)
  if (limit === 0n) {
    return subject.pool === undefined && poolUses(line) !== 0
      ? result(Code.cannotDelete)
      : close(context, subject, entry)
  }
  if (subject.pool === undefined && txn.peekAccount(issuerOf(subject.asset)!) === undefined)
    return result(Code.noIssuer)
  txn.putTrustLine({ ...line, limit })
  return result(Code.success)
}

/** The flags that a new line of an asset has from its issuer; undefined when the issuer does not exist. */
const flagsFromIssuer = ({ txn }: ApplyContext, asset: Asset): number | undefined => {
  const issuer = txn.peekAccount(issuerOf(asset)!)
  if (issuer === undefined) return undefined
  const authorized = (issuer.flags & AccountFlag.authRequired) === 0 ? TrustFlag.authorized : 0
  return authorized | ((issuer.flags & AccountFlag.clawbackEnabled) === 0 ? 0 : TrustFlag.clawbackEnabled)
}

const open = (context: ApplyContext, { asset, pool }: Subject, limit: bigint): OperationResult => {
  const { txn, source } = context
  if (limit === 0n) return result(Code.invalidLimit)
  const flags = pool === undefined ? flagsFromIssuer(context, asset) : 0
  if (flags === undefined) return result(Code.noIssuer)
  const joined = pool === undefined ? "ok" : joinPool(context, pool.id, pool.params)
  if (joined !== "ok") return result(joined === "lineMissing" ? Code.lineMissing : Code.notAuthorized)
  const outcome = createSubentry(context, txn.loadAccount(source)!, {
    lastModifiedLedgerSeq: txn.ledgerSeq,
    data: { type: 1, trustLine: { accountId: source, asset, balance: 0n, limit, flags, ext: { v: 0 } } },
    ext: { v: 0 }
  })
  return outcome === "ok" ? result(Code.success) : reserveFailure(outcome, result(Code.lowReserve))
}

export const changeTrust: OperationRules<6> = {
  threshold: Threshold.medium,
  check: ({ changeTrustOp: { line, limit } }, { source }) => {
    const isValid =
      line.type === AssetType.poolShare
        ? areParametersValid(line.liquidityPool.constantProduct)
        : line.type !== AssetType.native && isAssetValid(line) && !isIssuer(source, line)
    return limit < 0n || !isValid ? Code.malformed : 0
  },
  apply: ({ changeTrustOp: { line, limit } }, context) => {
    const subject = subjectOf(line, context.ledger)
    const entry = context.txn.load(trustLineKey(context.source, subject.asset))
    return entry === undefined ? open(context, subject, limit) : change(context, subject, limit, entry)
  }
}
