// What the ledger says of an authorization, whatever a seller says. A transaction proves a payment when it succeeded,
// moved the amount from payer to recipient, and carries this very nonce in its envelope: an older transfer of the same
// amount proves nothing (S215). A live nonce entry proves it too; its absence proves the contrary only as of the last
// ledger in which the authorization could be spent.
import { Effect, Option } from "effect"
import { credentialsOf } from "../../../kernel/stellar/AuthEntry.ts"
import { authOf } from "../../../kernel/stellar/ContractCall.ts"
import { type Envelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
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

/** Whether the transaction `hash` is the payment. False also for one that the node does not know yet. */
export const provesPayment = Effect.fn("Payer.provesPayment")(function* (
  rpc: LedgerRpc["Service"],
  hash: string,
  transfer: Transfer,
  authorization: Authorization
): Effect.fn.Return<boolean, LedgerUnavailable> {
  const answer = yield* rpc.transaction(hash)
  if (answer._tag === "NotFound") return false
  const { ledger, outerHash, succeeded, transfers } = answer.executed
  const moved = Option.getOrElse(transfers, () => []).some(
    ({ amount, contract, from, to }) =>
      contract === transfer.asset && from === authorization.payer && to === transfer.payTo && amount === transfer.amount
  )
  if (!succeeded || !moved) return false
  const { found } = yield* rpc.scan({ fromLedger: ledger, toLedger: ledger, matches: (one) => one === outerHash })
  return found.some(({ envelope }) => carries(envelope, authorization))
})

export type AuthorizationFate = "spent" | "dead" | "alive" | "undecidable"

/** What became of an authorization by its nonce. `undecidable`: its nonce entry, if there was one, is past its life. */
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
