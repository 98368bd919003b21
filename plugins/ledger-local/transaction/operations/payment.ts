// Payment of native or issued assets. The receiver is credited before the sender is debited. This order decides the
// error when both would fail. An issuer never holds a trustline to itself: its payments create units, payments to it
// destroy them.
import { AssetType } from "../../engine/xdr/types.ts"
import { availableBalance, isAuthorized, withAddedBalance, withAddedTrustBalance } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { accountOf } from "../Frame.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { equalBytes, type Asset, type PublicKey } from "../../engine/xdr/Xdr.ts"

const Code = {
  success: 0,
  malformed: -1,
  underfunded: -2,
  sourceNoTrust: -3,
  sourceNotAuthorized: -4,
  noDestination: -5,
  noTrust: -6,
  notAuthorized: -7,
  lineFull: -8
} as const
const result = (code: number) => inner(OperationType.payment, code)

/** The codes of `credit` other than success. */
export const creditCodes = { noTrust: Code.noTrust, notAuthorized: Code.notAuthorized, lineFull: Code.lineFull }
/** The codes of `debit` other than success. */
export const debitCodes = {
  noTrust: Code.sourceNoTrust,
  notAuthorized: Code.sourceNotAuthorized,
  underfunded: Code.underfunded
}

/** Adds a payment to the holdings of `to`. Returns the code. */
export const credit = ({ txn, ledger }: ApplyContext, to: PublicKey, asset: Asset, amount: bigint): number => {
  if (asset.type === AssetType.native) {
    const credited = withAddedBalance(txn.loadAccount(to)!, amount, ledger.settings.baseReserveStroops)
    if (credited === undefined) return Code.lineFull
    txn.putAccount(credited)
    return Code.success
  }
  if (isIssuer(to, asset)) return Code.success
  const line = txn.loadTrustLine(to, asset)
  if (line === undefined) return Code.noTrust
  if (!isAuthorized(line)) return Code.notAuthorized
  const credited = withAddedTrustBalance(line, amount)
  if (credited === undefined) return Code.lineFull
  txn.putTrustLine(credited)
  return Code.success
}

/** Takes a payment from the holdings of `from`. Returns the code. */
export const debit = ({ txn, ledger }: ApplyContext, from: PublicKey, asset: Asset, amount: bigint): number => {
  if (asset.type === AssetType.native) {
    const account = txn.loadAccount(from)!
    const reserve = ledger.settings.baseReserveStroops
    const debited =
      amount > availableBalance(account, reserve) ? undefined : withAddedBalance(account, -amount, reserve)
    if (debited === undefined) return Code.underfunded
    txn.putAccount(debited)
    return Code.success
  }
  if (isIssuer(from, asset)) return Code.success
  const line = txn.loadTrustLine(from, asset)
  if (line === undefined) return Code.sourceNoTrust
  if (!isAuthorized(line)) return Code.sourceNotAuthorized
  const debited = withAddedTrustBalance(line, -amount)
  if (debited === undefined) return Code.underfunded
  txn.putTrustLine(debited)
  return Code.success
}

export const payment: OperationRules<1> = {
  threshold: Threshold.medium,
  check: ({ paymentOp }) => (paymentOp.amount <= 0n || !isAssetValid(paymentOp.asset) ? Code.malformed : 0),
  apply: ({ paymentOp }, context) => {
    const { asset, amount } = paymentOp
    const { source, txn } = context
    const destination = accountOf(paymentOp.destination)
    if (asset.type !== AssetType.native || !equalBytes(destination.ed25519, source.ed25519)) {
      if (!isIssuer(destination, asset) && txn.peekAccount(destination) === undefined) return result(Code.noDestination)
      const code = credit(context, destination, asset, amount) || debit(context, source, asset, amount)
      if (code !== Code.success) return result(code)
    }
    context.events.moved(asset, context.muxedSource, paymentOp.destination, amount)
    return result(Code.success)
  }
}
