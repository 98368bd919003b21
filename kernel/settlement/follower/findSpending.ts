// Scans ledgers for the transaction that used an authorization. Ours is a successful transaction of one of our channels
// that carries exactly this authorization and moved the promised amount; any other use of the nonce is another party's.
// The scan also records the transaction with a settlement's sequence number, from any signer. A scan without a match
// proves nothing by itself, so the result includes the scanned range.
import { Effect } from "effect"
import { accountText, isMuxedAccount } from "../../stellar/Address.ts"
import { encodeOperation } from "../../stellar/ContractCall.ts"
import { bumpedIn, bumpIn, type Envelope, sourceOf, type Transaction, transactionIn } from "../../stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../ledger/Executed.ts"
import { LedgerRpc, type ScanAnswer } from "../../ledger/LedgerRpc.ts"
import { Authorizations, type PromisedPayment } from "../Authorizations.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

export interface Spending {
  readonly executed: ExecutedTransaction
  readonly envelope: Envelope
  /** The amount moved, if we made exactly this payment. */
  readonly moved: bigint | undefined
  /** The same for any sender: exactly this authorization, and the promised amount moved. */
  readonly paid: bigint | undefined
  /** We sent it, paid or not. */
  readonly isOurs: boolean
}

/** The accounts that identify our transactions. */
export interface OwnAccounts {
  readonly sponsors: ReadonlySet<string>
  /** Channels with keys in this process, and other known ones. */
  readonly channels: ReadonlySet<string>
}

/**
 * The transaction of one of our channels, inside a fee bump. A transaction that one of our sponsors signed is ours on
 * any channel: a replica with other settings has channels without keys in this process.
 */
export const ofOurs = (envelope: Envelope, { channels, sponsors }: OwnAccounts): Transaction | undefined => {
  const bump = bumpIn(envelope)
  const inner = bumpedIn(envelope)
  if (bump === undefined || inner === undefined || isMuxedAccount(inner.sourceAccount)) return undefined
  return sponsors.has(accountText(bump.feeSource)) || channels.has(sourceOf(inner)) ? inner : undefined
}

/** Whether a found transaction used the authorization, and whether it is ours. */
export const readSpending = (
  authorizations: Authorizations["Service"],
  { envelope, executed }: ScanAnswer["found"][number],
  promised: PromisedPayment,
  own: OwnAccounts
): Spending | undefined => {
  if (!executed.succeeded) return undefined
  const uses = (transactionIn(envelope)?.operations ?? []).map((operation) =>
    authorizations.useIn(promised, encodeOperation(operation))
  )
  if (uses.every((use) => use === "none")) return undefined
  const isOurs = ofOurs(envelope, own) !== undefined
  const isPayment = uses.length === 1 && uses[0] === "same"
  const paid = isPayment ? authorizations.movementIn(promised, executed)?.amount : undefined
  return {
    executed,
    envelope,
    isOurs,
    paid,
    moved: isOurs ? paid : undefined
  }
}

interface SpendingQuery {
  readonly promised: PromisedPayment
  readonly own: OwnAccounts
  readonly fromLedger: number
  readonly toLedger: number
  /** The channel and sequence number of another transaction to search for. */
  readonly number?: { readonly channel: string; readonly sequence: bigint }
}

/** The result of one scan; it may not reach the last ledger requested. */
export const makeFindSpending = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const authorizations = yield* Authorizations

  return Effect.fnUntraced(function* (query: SpendingQuery) {
    const { fromLedger, number, promised, toLedger } = query
    const { found, scannedTo } = yield* rpc.scan({ fromLedger, toLedger, matches: () => true })
    let spending: Spending | undefined
    let withNumber: ExecutedTransaction | undefined
    for (const one of found) {
      if (one.executed.ledger < fromLedger || one.executed.ledger > toLedger) continue
      // Two authorizations with one nonce may both be used, the second after the first has expired: our use takes
      // precedence.
      const used = readSpending(authorizations, one, promised, query.own)
      if (spending?.moved === undefined) spending = used ?? spending
      const inner = transactionIn(one.envelope)
      const isNumbered =
        number !== undefined &&
        inner !== undefined &&
        BigInt(inner.seqNum) === number.sequence &&
        sourceOf(inner) === number.channel
      if (isNumbered) withNumber = one.executed
    }
    return { scannedTo: Math.min(scannedTo, toLedger), spending, withNumber }
  }, withSpanIfSampled("settlement.findSpending"))
})
