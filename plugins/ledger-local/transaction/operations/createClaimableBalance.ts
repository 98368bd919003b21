// CreateClaimableBalance: takes an amount from its source and keeps it for up to ten claimants, each under a condition
// of time. The source's issuer flag or trustline decides whether the issuer may claw it back.
import { AssetType } from "../../engine/xdr/types.ts"
import { latin1 } from "../../engine/xdr/Xdr.ts"
import { AccountFlag, TrustFlag } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { balanceEntry, createdBalanceId } from "../claimableBalances.ts"
import { balanceParty, isIssuer } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { createBalance, reserveFailure } from "../reserves.ts"
import { Threshold } from "../Signatures.ts"
import { type BodyOf, OperationType } from "../Wire.ts"
import { isPredicateValid, withAbsoluteTimes } from "./claimPredicate.ts"
import { debit, debitCodes } from "./payment.ts"

const Code = { malformed: -1, lowReserve: -2, noTrust: -3, notAuthorized: -4, underfunded: -5 } as const
const result = (code: number) => inner(OperationType.createClaimableBalance, code)

/** This operation's code for each obstacle to taking the amount. */
const ofDebit = new Map<number, number>([
  [debitCodes.noTrust, Code.noTrust],
  [debitCodes.notAuthorized, Code.notAuthorized],
  [debitCodes.underfunded, Code.underfunded]
])

const isClawbackEnabled = ({ txn, source }: ApplyContext, asset: BodyOf<14>["createClaimableBalanceOp"]["asset"]) => {
  if (asset.type === AssetType.native) return false
  return isIssuer(source, asset)
    ? (txn.peekAccount(source)!.flags & AccountFlag.clawbackEnabled) !== 0
    : (txn.peekTrustLine(source, asset)!.flags & TrustFlag.clawbackEnabled) !== 0
}

export const createClaimableBalance: OperationRules<14> = {
  threshold: Threshold.medium,
  check: ({ createClaimableBalanceOp: { asset, amount, claimants } }) => {
    const destinations = new Set(claimants.map(({ v0 }) => latin1(v0.destination.ed25519)))
    const bad =
      !isAssetValid(asset) ||
      amount <= 0n ||
      claimants.length === 0 ||
      destinations.size !== claimants.length ||
      !claimants.every(({ v0 }) => isPredicateValid(v0.predicate))
    return bad ? Code.malformed : 0
  },
  apply: ({ createClaimableBalanceOp: { asset, amount, claimants } }, context) => {
    const { source, txn, ledger } = context
    txn.loadAccount(source)
    const debited = debit(context, source, asset, amount)
    if (debited !== 0) return result(ofDebit.get(debited)!)
    const balanceId = createdBalanceId(context)
    const storedClaimants = claimants.map(({ v0 }) => ({
      type: 0 as const,
      v0: { ...v0, predicate: withAbsoluteTimes(v0.predicate, ledger.closeTime) }
    }))
    const balance = { balanceId, claimants: storedClaimants, asset, amount }
    const entry = balanceEntry(txn.ledgerSeq, balance, isClawbackEnabled(context, asset))
    const outcome = createBalance(context, source, entry)
    if (outcome !== "ok") return reserveFailure(outcome, result(Code.lowReserve))
    context.events.moved(asset, context.muxedSource, balanceParty(balanceId), amount)
    return inner(OperationType.createClaimableBalance, 0, { balanceId })
  }
}
