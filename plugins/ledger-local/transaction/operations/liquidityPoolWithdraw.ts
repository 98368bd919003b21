// LiquidityPoolWithdraw: shares of a pool are given up for their part of both reserves, at least the amounts named.
import { AssetType } from "../../engine/xdr/types.ts"
import type { Asset } from "../../engine/xdr/Xdr.ts"
import { trustLiabilities, withAddedTrustBalance } from "../Accounts.ts"
import { poolParty } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { addToBalance } from "../exchange/Holding.ts"
import { withdrawalOf } from "../exchange/poolAmounts.ts"
import { isPoolFrozen, poolKey, poolOf, putPool } from "../exchange/Pools.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"

const Code = {
  success: 0,
  malformed: -1,
  noTrust: -2,
  underfunded: -3,
  lineFull: -4,
  underMinimum: -5,
  trustLineFrozen: -6
} as const
const result = (code: number) => inner(OperationType.liquidityPoolWithdraw, code)

const give = (context: ApplyContext, asset: Asset, amount: bigint, least: bigint): number => {
  if (amount < least) return Code.underMinimum
  return addToBalance(context, context.source, asset, amount) ? Code.success : Code.lineFull
}

export const liquidityPoolWithdraw: OperationRules<23> = {
  threshold: Threshold.medium,
  check: ({ liquidityPoolWithdrawOp: { amount, minAmountA, minAmountB } }) =>
    amount <= 0n || minAmountA < 0n || minAmountB < 0n ? Code.malformed : 0,
  apply: ({ liquidityPoolWithdrawOp: op }, context) => {
    const { source, txn, events, muxedSource } = context
    const id = op.liquidityPoolId
    const line = txn.loadTrustLine(source, { type: AssetType.poolShare, liquidityPoolId: id })
    if (line === undefined) return result(Code.noTrust)
    if (line.balance - trustLiabilities(line).selling < op.amount) return result(Code.underfunded)
    const pool = poolOf(txn.load(poolKey(id)))!
    if (isPoolFrozen(context, pool)) return result(Code.trustLineFrozen)
    const { assetA, assetB } = pool.params
    const amountA = withdrawalOf(op.amount, pool, pool.reserveA)
    const amountB = withdrawalOf(op.amount, pool, pool.reserveB)
    const failed = give(context, assetA, amountA, op.minAmountA) || give(context, assetB, amountB, op.minAmountB)
    if (failed !== 0) return result(failed)
    txn.putTrustLine(withAddedTrustBalance(line, -op.amount)!)
    putPool(context, id, {
      ...pool,
      totalPoolShares: pool.totalPoolShares - op.amount,
      reserveA: pool.reserveA - amountA,
      reserveB: pool.reserveB - amountB
    })
    events.moved(assetA, poolParty(id), muxedSource, amountA)
    events.moved(assetB, poolParty(id), muxedSource, amountB)
    return result(Code.success)
  }
}
