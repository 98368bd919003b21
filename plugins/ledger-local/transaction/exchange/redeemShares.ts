// Redeems an account's pool shares when it loses all authorization to hold one of the pool's assets: closes the lines
// of the shares, and puts their value into claimable balances, one an asset. The payer of the line's reserve pays for
// the balances, or the account's sponsor at this point of the transaction.
import { AssetType } from "../../engine/xdr/types.ts"
import { Unsupported } from "../../engine/host/HostError.ts"
import { keyString, trustLineKey } from "../../engine/state/LedgerKeys.ts"
import { type Asset, codec, compareBytes, latin1, type LedgerEntry, type PublicKey } from "../../engine/xdr/Xdr.ts"
import { TrustFlag } from "../Accounts.ts"
import { balanceEntry } from "../claimableBalances.ts"
import { accountParty, balanceParty, isIssuer, poolParty } from "../ClassicEvents.ts"
import type { ApplyContext } from "../Context.ts"
import { createBalance, putSponsored, removeSubentry, type ReserveOutcome, sponsorOf } from "../reserves.ts"
import type { ClaimableBalanceId } from "../Wire.ts"
import { sameAsset } from "./Offers.ts"
import { withdrawalOf } from "./poolAmounts.ts"
import { leavePool, poolKey, poolOf, putPool } from "./Pools.ts"

const POOL_SHARE = "\0\0\0\x03"

/** The pools that trade the asset and have `owner` as a shareholder, in the order of their ids. */
const poolsAbout = ({ txn }: ApplyContext, owner: PublicKey, asset: Asset): ReadonlyArray<Uint8Array> => {
  const lines = `\0\0\0\x01\0\0\0\0${latin1(owner.ed25519)}${POOL_SHARE}`
  const ids: Array<Uint8Array> = []
  if (txn.store.isPartial) throw new Unsupported("the pool shares of an account of a forked network")
  for (const { data } of txn.store.entriesUnder(lines)) {
    if (data.type !== 1 || data.trustLine.asset.type !== AssetType.poolShare) continue
    const id = data.trustLine.asset.liquidityPoolId
    const { assetA, assetB } = poolOf(txn.peek(poolKey(id)))!.params
    if (sameAsset(assetA, asset) || sameAsset(assetB, asset)) ids.push(id)
  }
  return ids.sort(compareBytes)
}

const redeemedId = ({ ledger, frame, index }: ApplyContext, pool: Uint8Array, asset: Asset): ClaimableBalanceId => ({
  type: 0,
  v0: ledger.crypto.sha256(
    codec.HashIdPreimage.encode({
      type: 7,
      revokeId: { sourceAccount: frame.source, seqNum: frame.tx.seqNum, opNum: index, liquidityPoolId: pool, asset }
    })
  )
})

interface Redemption {
  readonly pool: Uint8Array
  readonly owner: PublicKey
  /** The payer of the reserve of the shares' line. */
  readonly payer: PublicKey
}

const redeem = (
  context: ApplyContext,
  { pool, owner, payer }: Redemption,
  asset: Asset,
  amount: bigint
): ReserveOutcome => {
  const { txn, events, sponsorships } = context
  if (amount === 0n) return "ok"
  if (isIssuer(owner, asset)) {
    events.moved(asset, poolParty(pool), accountParty(owner), amount, false)
    return "ok"
  }
  const balanceId = redeemedId(context, pool, asset)
  events.moved(asset, poolParty(pool), balanceParty(balanceId), amount, false)
  const line = asset.type === AssetType.native ? undefined : txn.loadTrustLine(owner, asset)
  const claimants = [{ type: 0 as const, v0: { destination: owner, predicate: { type: 0 as const } } }]
  const isClawbackEnabled = ((line?.flags ?? 0) & TrustFlag.clawbackEnabled) !== 0
  const entry = balanceEntry(txn.ledgerSeq, { balanceId, claimants, asset, amount }, isClawbackEnabled)
  if (sponsorships.sponsorOf(payer) !== undefined) return createBalance(context, payer, entry)
  // The balance takes over the reserve of the line, which its payer may keep below a reserve that was raised since.
  putSponsored(context, txn.loadAccount(payer)!, entry)
  return "ok"
}

const closeLine = (context: ApplyContext, owner: PublicKey, pool: Uint8Array): ReserveOutcome => {
  const { txn } = context
  const key = trustLineKey(owner, { type: AssetType.poolShare, liquidityPoolId: pool })
  const entry: LedgerEntry = txn.load(key)!
  if (entry.data.type !== 1) throw new Error(`no trustline at ${keyString(key)}`)
  const shares = entry.data.trustLine.balance
  const redemption = { pool, owner, payer: sponsorOf(entry) ?? owner }
  removeSubentry(context, txn.loadAccount(owner)!, entry)
  txn.erase(key)
  if (shares > 0n) {
    const state = poolOf(txn.load(poolKey(pool)))!
    const { reserveA, reserveB, totalPoolShares, params } = state
    const amountA = withdrawalOf(shares, state, reserveA)
    const amountB = withdrawalOf(shares, state, reserveB)
    const first = redeem(context, redemption, params.assetA, amountA)
    if (first !== "ok") return first
    const second = redeem(context, redemption, params.assetB, amountB)
    if (second !== "ok") return second
    putPool(context, pool, {
      ...state,
      totalPoolShares: totalPoolShares - shares,
      reserveA: reserveA - amountA,
      reserveB: reserveB - amountB
    })
  }
  leavePool(context, pool, owner)
  return "ok"
}

/** Closes every line of shares that the loss concerns; anything but "ok" is why the operation fails. */
export const redeemShares = (context: ApplyContext, owner: PublicKey, asset: Asset): ReserveOutcome => {
  for (const pool of poolsAbout(context, owner, asset)) {
    const outcome = closeLine(context, owner, pool)
    if (outcome !== "ok") return outcome
  }
  return "ok"
}
