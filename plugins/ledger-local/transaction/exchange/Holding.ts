// One account's position in one asset, wherever it is kept: the native balance in the account, an issued asset in a
// trustline, and nowhere for the issuer itself, which can sell and take any amount. Liabilities are the amounts that
// open offers promise; they lower the spendable balance and the receivable amount. Writing through a holding loads its
// entry, as the network counts it.
import { AssetType } from "../../engine/xdr/types.ts"
import type { Asset, PublicKey } from "../../engine/xdr/Xdr.ts"
import {
  accountLiabilities,
  availableBalance,
  INT64_MAX,
  maintainsLiabilities,
  minimumBalance,
  trustLiabilities,
  withAccountLiabilities,
  withAddedBalance,
  withAddedTrustBalance,
  withTrustLiabilities
} from "../Accounts.ts"
import { isIssuer } from "../ClassicEvents.ts"
import type { ApplyContext } from "../Context.ts"

interface Holding {
  /** Unreserved and unpromised; may be negative for the native asset. */
  readonly available: bigint
  /** Room below the limit that nothing is promised for. */
  readonly room: bigint
  /** False without a trustline, or with a trustline that must not even keep offers. */
  readonly maySell: boolean
}

const NOTHING: Holding = { available: 0n, room: 0n, maySell: false }

/** Reads without loading. */
export const holdingOf = ({ txn, ledger }: ApplyContext, id: PublicKey, asset: Asset): Holding => {
  if (asset.type === AssetType.native) {
    const account = txn.peekAccount(id)
    if (account === undefined) return NOTHING
    return {
      available: availableBalance(account, ledger.settings.baseReserveStroops),
      room: INT64_MAX - account.balance - accountLiabilities(account).buying,
      maySell: true
    }
  }
  if (isIssuer(id, asset)) return { available: INT64_MAX, room: INT64_MAX, maySell: true }
  const line = txn.peekTrustLine(id, asset)
  if (line === undefined) return NOTHING
  const { buying, selling } = trustLiabilities(line)
  return {
    available: line.balance - selling,
    room: line.limit - line.balance - buying,
    maySell: maintainsLiabilities(line.flags)
  }
}

const atLeastZero = (amount: bigint): bigint => (amount < 0n ? 0n : amount)

export const sellableMax = (context: ApplyContext, id: PublicKey, asset: Asset): bigint => {
  const { available, maySell } = holdingOf(context, id, asset)
  return maySell ? atLeastZero(available) : 0n
}

export const buyableMax = (context: ApplyContext, id: PublicKey, asset: Asset): bigint =>
  atLeastZero(holdingOf(context, id, asset).room)

/** Adds to the balance; false when limits, promises or the lack of authorization forbid it. */
export const addToBalance = ({ txn, ledger }: ApplyContext, id: PublicKey, asset: Asset, delta: bigint): boolean => {
  if (asset.type === AssetType.native) {
    const changed = withAddedBalance(txn.loadAccount(id)!, delta, ledger.settings.baseReserveStroops)
    if (changed !== undefined) txn.putAccount(changed)
    return changed !== undefined
  }
  if (isIssuer(id, asset)) return true
  const line = txn.loadTrustLine(id, asset)
  const changed = line === undefined ? undefined : withAddedTrustBalance(line, delta)
  if (changed !== undefined) txn.putTrustLine(changed)
  return changed !== undefined
}

/** Adds to the liabilities of offers; false when the amount exceeds the available balance or the liabilities. */
export const addLiabilities = (
  { txn, ledger }: ApplyContext,
  id: PublicKey,
  asset: Asset,
  side: "buying" | "selling",
  delta: bigint
): boolean => {
  if (asset.type === AssetType.native) {
    const account = txn.loadAccount(id)!
    const now = accountLiabilities(account)
    const amount = now[side] + delta
    const most =
      side === "buying"
        ? INT64_MAX - account.balance
        : account.balance - minimumBalance(account, ledger.settings.baseReserveStroops)
    if (amount < 0n || (delta > 0n && amount > most)) return false
    txn.putAccount(withAccountLiabilities(account, { ...now, [side]: amount }))
    return true
  }
  if (isIssuer(id, asset)) return true
  const line = txn.loadTrustLine(id, asset)
  if (line === undefined || !maintainsLiabilities(line.flags)) return false
  const now = trustLiabilities(line)
  const amount = now[side] + delta
  const most = side === "buying" ? line.limit - line.balance : line.balance
  if (amount < 0n || amount > most) return false
  txn.putTrustLine(withTrustLiabilities(line, { ...now, [side]: amount }))
  return true
}
