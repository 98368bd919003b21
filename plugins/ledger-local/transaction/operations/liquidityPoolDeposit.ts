// LiquidityPoolDeposit: both assets of a pool, in its own proportion and at most the amounts named, for shares of it.
// Into an empty pool everything goes, within the bounds on the price.
import { AssetType } from "../../engine/xdr/types.ts"
import type { Asset } from "../../engine/xdr/Xdr.ts"
import { INT64_MAX, isAuthorized, trustLiabilities, withAddedTrustBalance } from "../Accounts.ts"
import { isIssuer, poolParty } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { addToBalance, holdingOf } from "../exchange/Holding.ts"
import { depositOf, isBadPrice } from "../exchange/poolAmounts.ts"
import { isPoolFrozen, poolKey, poolOf, putPool } from "../exchange/Pools.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType, type OperationResult } from "../Wire.ts"

const Code = {
  malformed: -1,
  noTrust: -2,
  notAuthorized: -3,
  underfunded: -4,
  lineFull: -5,
  badPrice: -6,
  poolFull: -7,
  trustLineFrozen: -8
} as const
const result = (code: number): OperationResult => inner(OperationType.liquidityPoolDeposit, code)

const isAssetAuthorized = ({ txn, source }: ApplyContext, asset: Asset): boolean =>
  asset.type === AssetType.native || isIssuer(source, asset) || isAuthorized(txn.loadTrustLine(source, asset)!)

const take = (context: ApplyContext, asset: Asset, amount: bigint): void => {
  if (!addToBalance(context, context.source, asset, -amount))
    throw new Error("a deposit went beyond what the depositor has")
}

export const liquidityPoolDeposit: OperationRules<22> = {
  threshold: Threshold.medium,
  check: ({ liquidityPoolDepositOp: { maxAmountA, maxAmountB, minPrice: least, maxPrice: most } }) => {
    const bad =
      maxAmountA <= 0n ||
      maxAmountB <= 0n ||
      [least.n, least.d, most.n, most.d].some((part) => part <= 0) ||
      BigInt(least.n) * BigInt(most.d) > BigInt(least.d) * BigInt(most.n)
    return bad ? Code.malformed : 0
  },
  apply: ({ liquidityPoolDepositOp: op }, context) => {
    const { source, txn, events, muxedSource } = context
    const id = op.liquidityPoolId
    const line = txn.loadTrustLine(source, { type: AssetType.poolShare, liquidityPoolId: id })
    if (line === undefined) return result(Code.noTrust)
    const pool = poolOf(txn.load(poolKey(id)))!
    const { assetA, assetB } = pool.params
    if (!isAssetAuthorized(context, assetA) || !isAssetAuthorized(context, assetB)) return result(Code.notAuthorized)
    if (isPoolFrozen(context, pool)) return result(Code.trustLineFrozen)
    const deposit = depositOf(pool, op.maxAmountA, op.maxAmountB)
    const { amountA, amountB, shares } = deposit
    const lacks = (asset: Asset, amount: bigint): boolean => holdingOf(context, source, asset).available < amount
    if (lacks(assetA, amountA) || lacks(assetB, amountB)) return result(Code.underfunded)
    if (isBadPrice(deposit, op.minPrice, op.maxPrice)) return result(Code.badPrice)
    if (line.limit - line.balance - trustLiabilities(line).buying < shares) return result(Code.lineFull)
    const [reserveA, reserveB] = [pool.reserveA + amountA, pool.reserveB + amountB]
    const totalPoolShares = pool.totalPoolShares + shares
    if ([reserveA, reserveB, totalPoolShares].some((amount) => amount > INT64_MAX)) return result(Code.poolFull)
    take(context, assetA, amountA)
    take(context, assetB, amountB)
    txn.putTrustLine(withAddedTrustBalance(line, shares)!)
    putPool(context, id, { ...pool, reserveA, reserveB, totalPoolShares })
    events.moved(assetA, muxedSource, poolParty(id), amountA, false)
    events.moved(assetB, muxedSource, poolParty(id), amountB, false)
    return result(0)
  }
}
