// ClawbackClaimableBalance: an issuer destroys a claimable balance of its asset that was created under its clawback
// flag.
import { balanceKey, balanceOf, mayBeClawedBack } from "../claimableBalances.ts"
import { balanceParty, isIssuer } from "../ClassicEvents.ts"
import { inner, type OperationRules } from "../Context.ts"
import { removeSponsored } from "../reserves.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"

const Code = { doesNotExist: -1, notIssuer: -2, notClawbackEnabled: -3 } as const
const result = (code: number) => inner(OperationType.clawbackClaimableBalance, code)

export const clawbackClaimableBalance: OperationRules<20> = {
  threshold: Threshold.medium,
  check: () => 0,
  apply: ({ clawbackClaimableBalanceOp: { balanceId } }, context) => {
    const { source, txn } = context
    const key = balanceKey(balanceId)
    const entry = txn.load(key)
    const balance = balanceOf(entry)
    if (entry === undefined || balance === undefined) return result(Code.doesNotExist)
    if (!isIssuer(source, balance.asset)) return result(Code.notIssuer)
    if (!mayBeClawedBack(balance)) return result(Code.notClawbackEnabled)
    txn.loadAccount(source)
    removeSponsored(context, entry)
    txn.erase(key)
    context.events.clawedBack(balance.asset, balanceParty(balanceId), balance.amount)
    return result(0)
  }
}
