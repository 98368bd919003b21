// AccountMerge: the whole balance goes to another account and the source ceases to exist. Refused while it has
// subentries other than signers, sponsors anything, or has a sequence number that a later account of the same key could
// reuse.
import { AccountFlag, numSponsoring, withAddedBalance } from "../Accounts.ts"
import { inner, type OperationRules } from "../Context.ts"
import { accountOf } from "../Frame.ts"
import { Threshold } from "../Signatures.ts"
import { removeSponsored, withoutSigner } from "../reserves.ts"
import { OperationType } from "../Wire.ts"
import { startingSequence } from "./createAccount.ts"
import { accountKey } from "../../engine/state/LedgerKeys.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"

const Code = {
  malformed: -1,
  noAccount: -2,
  immutableSet: -3,
  hasSubEntries: -4,
  sequenceTooFar: -5,
  destinationFull: -6,
  isSponsor: -7
} as const
const result = (code: number) => inner(OperationType.accountMerge, code)

export const accountMerge: OperationRules<8> = {
  threshold: Threshold.high,
  check: ({ destination }, { source }) =>
    equalBytes(accountOf(destination).ed25519, source.ed25519) ? Code.malformed : 0,
  apply: ({ destination }, context) => {
    const { txn, source, ledger } = context
    const target = txn.loadAccount(accountOf(destination))
    if (target === undefined) return result(Code.noAccount)
    let account = txn.loadAccount(source)!
    const { balance } = account
    if ((account.flags & AccountFlag.authImmutable) !== 0) return result(Code.immutableSet)
    if (account.numSubEntries !== account.signers.length) return result(Code.hasSubEntries)
    if (account.seqNum >= startingSequence(txn.ledgerSeq)) return result(Code.sequenceTooFar)
    if (context.sponsorships.isSponsoring(source) || numSponsoring(account) > 0) return result(Code.isSponsor)
    while (account.signers.length > 0) account = withoutSigner(txn, account, account.signers.length - 1)
    const credited = withAddedBalance(txn.loadAccount(target.accountId)!, balance, ledger.settings.baseReserveStroops)
    if (credited === undefined) return result(Code.destinationFull)
    txn.putAccount(credited)
    removeSponsored(context, txn.peek(accountKey(source))!)
    txn.erase(accountKey(source))
    context.events.transferred({ type: 0 }, context.muxedSource, destination, balance)
    return inner(OperationType.accountMerge, 0, { sourceAccountBalance: balance })
  }
}
