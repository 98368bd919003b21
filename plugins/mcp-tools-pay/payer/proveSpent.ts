// The outcome of an authorization on the ledger, independent of the seller. A transaction proves a payment when it
// succeeded, moved the amount from payer to recipient, and carries this very nonce in its envelope: an older transfer
// of the same amount proves nothing (S215). A live nonce entry proves it too; its absence proves the contrary only as
// of the last ledger in which the authorization could be spent.
import { Effect, Option } from "effect"
import { credentialsOf } from "../../../kernel/stellar/AuthEntry.ts"
import { authOf } from "../../../kernel/stellar/ContractCall.ts"
import { type Envelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../../kernel/ledger/Executed.ts"
import type { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import type { LedgerUnavailable } from "../../../kernel/ledger/LedgerUnavailable.ts"
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

/** Seconds that a ledger is reckoned with, as every x402 client does. */
const secondsPerLedger = 5

/** For how many ledgers a payment lives. */
export const ledgersOf = (maxTimeoutSeconds: number): number => Math.ceil(maxTimeoutSeconds / secondsPerLedger)

/** Whether an executed transaction moved what was promised. */
const hasMoved = ({ transfers }: ExecutedTransaction, transfer: Transfer, { payer }: Authorization): boolean =>
  Option.getOrElse(transfers, () => []).some(
    ({ amount, contract, from, to }) =>
      contract === transfer.asset && from === payer && to === transfer.payTo && amount === transfer.amount
  )

/** Whether the transaction `hash` is the payment. False also for one that the node does not know yet. */
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

/** That a payment is on the ledger. */
export interface PaymentProof {
  /** Hash of the transaction; undefined where the nonce alone shows it, and the transaction was not found. */
  readonly transaction: string | undefined
  /** It is the one that the seller named. */
  readonly isNamed: boolean
}

/** The transaction among those of some ledgers that carries the authorization, by the hash that facilitators name. */
export const carrierIn = Effect.fnUntraced(function* (
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
 * Finds the payment on the ledger: by the transaction that the seller names, when that is the payment, else by the
 * nonce, whose entry names the ledger in which it was spent. Undefined: not there as of the node asked.
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

export type AuthorizationFate = "spent" | "dead" | "alive" | "undecidable"

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
 * The outcome of an authorization whose nonce entry has expired: every ledger in which it could be spent is scanned.
 * `Open` where the node no longer has them all.
 */
export const lateFate = Effect.fn("Payer.lateFate")(function* (
  rpc: LedgerRpc["Service"],
  authorization: Authorization,
  maxTimeoutSeconds: number
) {
  const { expirationLedger: toLedger } = authorization
  // It was built on the ledger before the first of these.
  let fromLedger = toLedger - ledgersOf(maxTimeoutSeconds)
  for (let scan = 0; scan < scansMax && fromLedger <= toLedger; scan++) {
    const { oldestLedger, scannedTo, transaction } = yield* carrierIn(rpc, { fromLedger, toLedger }, authorization)
    if (transaction !== undefined) return { _tag: "Paid", proof: { transaction, isNamed: false } } as const
    if (oldestLedger > fromLedger || scannedTo < fromLedger) return { _tag: "Open" } as const
    fromLedger = scannedTo + 1
  }
  return { _tag: fromLedger > toLedger ? "Dead" : "Open" } as const
})
