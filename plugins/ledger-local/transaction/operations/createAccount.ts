// CreateAccount: the new account starts with the sender's amount and a sequence number above any of an earlier life.
// Sponsored, it may start with nothing.
import { availableBalance, withAddedBalance } from "../Accounts.ts"
import { newAccount } from "../../engine/sac/SacBalances.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { createAccount as create, reserveFailure } from "../reserves.ts"
import { OperationType } from "../Wire.ts"

const Code = { success: 0, malformed: -1, underfunded: -2, lowReserve: -3, alreadyExists: -4 } as const
const result = (code: number) => inner(OperationType.createAccount, code)

/** The first sequence number of an account created in a ledger, less one. */
export const startingSequence = (ledgerSeq: number): bigint => BigInt(ledgerSeq) << 32n

export const createAccount: OperationRules<0> = {
  threshold: Threshold.medium,
  check: ({ createAccountOp }, { source }) =>
    createAccountOp.startingBalance < 0n || equalBytes(createAccountOp.destination.ed25519, source.ed25519)
      ? Code.malformed
      : 0,
  apply: ({ createAccountOp }, context) => {
    const { txn, source, ledger } = context
    const { destination, startingBalance } = createAccountOp
    if (txn.loadAccount(destination) !== undefined) return result(Code.alreadyExists)
    const outcome = create(context, newAccount(destination, startingBalance, txn.ledgerSeq))
    if (outcome !== "ok") return reserveFailure(outcome, result(Code.lowReserve))
    const payer = txn.loadAccount(source)!
    const reserve = ledger.settings.baseReserveStroops
    const paid =
      availableBalance(payer, reserve) < startingBalance
        ? undefined
        : withAddedBalance(payer, -startingBalance, reserve)
    if (paid === undefined) return result(Code.underfunded)
    txn.putAccount(paid)
    context.events.transferred(
      { type: 0 },
      context.muxedSource,
      { type: 0, ed25519: destination.ed25519 },
      startingBalance
    )
    return result(Code.success)
  }
}
