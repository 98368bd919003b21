// ClaimClaimableBalance: one of the claimants takes the whole balance while its condition holds, and the sponsor's
// reserve is free again. An entry that the network has frozen receives nothing.
import { AssetType } from "../../engine/xdr/types.ts"
import { equalBytes, type Asset } from "../../engine/xdr/Xdr.ts"
import { accountKey, keyString, trustLineKey } from "../../engine/state/LedgerKeys.ts"
import { balanceKey, balanceOf } from "../claimableBalances.ts"
import { balanceParty } from "../ClassicEvents.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { removeSponsored } from "../reserves.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { holds } from "./claimPredicate.ts"
import { credit, creditCodes } from "./payment.ts"

const Code = {
  doesNotExist: -1,
  cannotClaim: -2,
  lineFull: -3,
  noTrust: -4,
  notAuthorized: -5,
  trustLineFrozen: -6
} as const
const result = (code: number) => inner(OperationType.claimClaimableBalance, code)

/** This operation's code for each obstacle to receiving the amount. */
const ofCredit = new Map<number, number>([
  [creditCodes.lineFull, Code.lineFull],
  [creditCodes.noTrust, Code.noTrust],
  [creditCodes.notAuthorized, Code.notAuthorized]
])

const isFrozen = ({ ledger, source }: ApplyContext, asset: Asset): boolean =>
  ledger.settings.frozenKeys.has(
    keyString(asset.type === AssetType.native ? accountKey(source) : trustLineKey(source, asset))
  )

export const claimClaimableBalance: OperationRules<15> = {
  threshold: Threshold.low,
  check: () => 0,
  apply: ({ claimClaimableBalanceOp: { balanceId } }, context) => {
    const { source, txn, ledger } = context
    const key = balanceKey(balanceId)
    const entry = txn.load(key)
    const balance = balanceOf(entry)
    if (entry === undefined || balance === undefined) return result(Code.doesNotExist)
    const claimant = balance.claimants.find(({ v0 }) => equalBytes(v0.destination.ed25519, source.ed25519))
    if (claimant === undefined || !holds(claimant.v0.predicate, ledger.closeTime)) return result(Code.cannotClaim)
    if (isFrozen(context, balance.asset)) return result(Code.trustLineFrozen)
    const credited = credit(context, source, balance.asset, balance.amount)
    if (credited !== 0) return result(ofCredit.get(credited)!)
    txn.loadAccount(source)
    removeSponsored(context, entry)
    txn.erase(key)
    context.events.moved(balance.asset, balanceParty(balanceId), context.muxedSource, balance.amount)
    return result(0)
  }
}
