// The outcome of an authorization on the ledger, independent of the seller. A transaction proves a payment if it
// succeeded, moved the amount from payer to recipient, and carries this very nonce in its envelope: an older transfer
// of the same amount does not prove anything (S215). A live nonce entry also proves it. A missing entry proves the
// opposite only as of the last ledger that could have spent the authorization.
import { Effect, Option } from "effect"
import { credentialsOf } from "../../../kernel/stellar/AuthEntry.ts"
import { authOf } from "../../../kernel/stellar/ContractCall.ts"
import { type Envelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../../kernel/ledger/Executed.ts"
import type { LedgerRpc, LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import { addressText } from "../../../kernel/stellar/Address.ts"
import type { Authorization } from "../budget/Reservation.ts"
import type { Transfer } from "./authorization.ts"

const carries = (envelope: Envelope, { nonce, payer }: Authorization): boolean =>
  (transactionIn(envelope)?.operations ?? []).flatMap(authOf).some((entry) => {
    const credentials = credentialsOf(entry)
    return (
      credentials !== undefined && BigInt(credentials.nonce) === nonce && addressText(credentials.address) === payer
    )
  })

/** Seconds per ledger, as every x402 client assumes. */
const secondsPerLedger = 5

/** Lifetime of a payment in ledgers. */
export const ledgersOf = (maxTimeoutSeconds: number): number => Math.ceil(maxTimeoutSeconds / secondsPerLedger)

/** True if an executed transaction made the agreed transfer. */
const hasMoved = ({ transfers }: ExecutedTransaction, transfer: Transfer, { payer }: Authorization): boolean =>
  Option.getOrElse(transfers, () => []).some(
    ({ amount, contract, from, to }) =>
      contract === transfer.asset && from === payer && to === transfer.payTo && amount === transfer.amount
  )

/** True if the transaction `hash` is the payment. Also false for a transaction that the node does not have yet. */
export const provesPayment = Effect.fn("Payer.provesPayment")(function* (
  rpc: LedgerRpc["Service"],
  hash: string,
  transfer: Transfer,
  authorization: Authorization
): Effect.fn.Return<boolean, LedgerUnavailable> {
  const answer = yield* rpc.transaction(hash)
  if (answer._tag === "NotFound") return false
  const { ledger, outerHash, succeeded } = answer.executed
  if (!succeeded || !hasMoved(answer.executed, transfer, authorization)) return false
  const { found } = yield* rpc.scan({ fromLedger: ledger, toLedger: ledger, matches: (one) => one === outerHash })
  return found.some(({ envelope }) => carries(envelope, authorization))
})

/** Evidence that a payment is on the ledger. */
export interface PaymentProof {
  /** Hash of the transaction; undefined if only the nonce shows the payment and we did not find the transaction. */
  readonly transaction: string | undefined
  /** True if the seller named this transaction. */
  readonly isNamed: boolean
}

/**
 * Searches a range of ledgers for the transaction that carries the authorization. Returns the inner hash, as
 * facilitators do.
 */
const carrierIn = Effect.fnUntraced(function* (
  rpc: LedgerRpc["Service"],
  ledgers: { readonly fromLedger: number; readonly toLedger: number },
  authorization: Authorization
) {
  const scanned = yield* rpc.scan({ ...ledgers, matches: () => true })
  const found = scanned.found.find(
    ({ envelope, executed }) =>
      executed.succeeded &&
      executed.ledger >= ledgers.fromLedger &&
      executed.ledger <= ledgers.toLedger &&
      carries(envelope, authorization)
  )
  return { transaction: found?.executed.innerHash, scannedTo: scanned.scannedTo, oldestLedger: scanned.oldestLedger }
})

/**
 * Finds the payment on the ledger: first by the transaction that the seller reports, then by the nonce. The nonce's
 * entry contains the ledger of its use. Undefined if the node that we asked does not show it.
 */
export const findPayment = Effect.fn("Payer.findPayment")(function* (
  rpc: LedgerRpc["Service"],
  transfer: Transfer,
  authorization: Authorization,
  named: string | undefined
): Effect.fn.Return<PaymentProof | undefined, LedgerUnavailable> {
  if (named !== undefined && (yield* provesPayment(rpc, named, transfer, authorization)))
    return { transaction: named, isNamed: true }
  const { inLedger, spent } = yield* rpc.nonceSpent(authorization.payer, authorization.nonce)
  if (!spent) return undefined
  const ledger = Option.getOrUndefined(inLedger)
  if (ledger === undefined) return { transaction: undefined, isNamed: false }
  const found = yield* Effect.option(carrierIn(rpc, { fromLedger: ledger, toLedger: ledger }, authorization))
  return { transaction: Option.getOrUndefined(found)?.transaction, isNamed: false }
})

type AuthorizationFate = "spent" | "dead" | "alive" | "undecidable"

/** Outcome of an authorization by its nonce. `undecidable`: its nonce entry, if there was one, has expired. */
export const fateOf = Effect.fn("Payer.fateOf")(function* (
  rpc: LedgerRpc["Service"],
  { expirationLedger, nonce, payer }: Authorization
): Effect.fn.Return<{ readonly fate: AuthorizationFate; readonly latestLedger: number }, LedgerUnavailable> {
  const { latestLedger, spent } = yield* rpc.nonceSpent(payer, nonce)
  const fate = spent
    ? "spent"
    : latestLedger < expirationLedger
      ? "alive"
      : latestLedger === expirationLedger
        ? "dead"
        : "undecidable"
  return { fate, latestLedger }
})

/** Maximum scans per check; each is bounded by the RPC. */
const scansMax = 40

/**
 * The outcome of an authorization after its nonce entry has expired. Scans every ledger that could have spent it.
 * Returns `Open` if the node no longer has all of them.
 */
export const lateFate = Effect.fn("Payer.lateFate")(function* (
  rpc: LedgerRpc["Service"],
  authorization: Authorization,
  maxTimeoutSeconds: number
) {
  const { expirationLedger: toLedger } = authorization
  // The payment was built on the ledger before this one.
  let fromLedger = toLedger - ledgersOf(maxTimeoutSeconds)
  for (let scan = 0; scan < scansMax && fromLedger <= toLedger; scan++) {
    const { oldestLedger, scannedTo, transaction } = yield* carrierIn(rpc, { fromLedger, toLedger }, authorization)
    if (transaction !== undefined) return { _tag: "Paid", proof: { transaction, isNamed: false } } as const
    if (oldestLedger > fromLedger || scannedTo < fromLedger) return { _tag: "Open" } as const
    fromLedger = scannedTo + 1
  }
  return { _tag: fromLedger > toLedger ? "Dead" : "Open" } as const
})
