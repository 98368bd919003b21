// The outcomes of a settlement, each with its ledger, the sponsor's charge and the channel. Only an authorization that
// was seen unspent is reported as still alive.
import type { Landed, OpenSettlement, Outcome, Search, SpentBy } from "./Settlement.ts"

const aliveUntil = (settlement: OpenSettlement): string =>
  `the authorization lives until ledger ${settlement.authorizationExpiresLedger}`

/** The result of the settlement's landed transaction; without one, it may have landed unseen. */
const whatLanded = (landed: Landed | undefined, ledger: number) =>
  landed === undefined
    ? ({
        transaction: undefined,
        ledger: undefined,
        closedAtSeconds: undefined,
        feeChargedStroops: 0n,
        feeUnknown: true,
        channel: { sequenceUsed: undefined, ledger }
      } as const)
    : ({
        transaction: landed.executed.innerHash,
        ledger: landed.executed.ledger,
        closedAtSeconds: landed.executed.closedAtSeconds,
        feeChargedStroops: landed.executed.feeChargedStroops,
        feeUnknown: false,
        channel: { sequenceUsed: true, ledger: landed.executed.ledger }
      } as const)

const whyFailed = (landed: Landed | undefined): string =>
  landed === undefined
    ? "another transaction used the channel's sequence number"
    : landed.kind === "cancel"
      ? "the network refused the transaction and it was cancelled"
      : "the transaction failed on the ledger"

/** The payment landed and succeeded. Without the promised movement an operator has to decide. */
export const succeeded = (landed: Landed): Outcome => ({
  ...whatLanded(landed, landed.executed.ledger),
  state: landed.amountTransferred === undefined ? "unresolved" : "settled",
  amountTransferred: landed.amountTransferred,
  amountSold: landed.amountSold,
  reason: undefined,
  message:
    landed.amountTransferred === undefined ? "the transaction succeeded without the expected transfer" : undefined
})

/** It landed without paying, and the nonce was seen unspent afterwards, while the authorization lived. */
export const failedUnspent = (settlement: OpenSettlement, landed: Landed, isNonceless = false): Outcome => ({
  ...whatLanded(landed, landed.executed.ledger),
  state: "failed",
  amountTransferred: undefined,
  reason: "settle_ledger_transaction_failed",
  message: `${whyFailed(landed)}; ${aliveUntil(settlement)}`,
  // Without an authorization only its own transaction moves money.
  ...(isNonceless ? {} : { watchAfter: landed.executed.ledger })
})

/** Its number was used and the nonce unspent, in one answer while the authorization lived: no money moved. */
export const overtakenUnspent = (settlement: OpenSettlement, ledger: number): Outcome => ({
  ...whatLanded(undefined, ledger),
  state: "failed",
  amountTransferred: undefined,
  reason: "settle_ledger_transaction_failed",
  message: `the channel's sequence number was used and no money moved; ${aliveUntil(settlement)}`,
  watchAfter: ledger
})

/** Every ledger of the authorization's life was scanned: nothing used it, and nothing will. */
export const failedDead = (landed: Landed | undefined, ledger: number): Outcome => ({
  ...whatLanded(landed, ledger),
  state: "failed",
  amountTransferred: undefined,
  reason: "settle_ledger_transaction_failed",
  message: `${whyFailed(landed)}; the authorization was never used and is dead`
})

/** Another transaction of ours than the recorded one moved the money: its record was lost. */
export const settledByOurs = (
  { executed, amountTransferred: moved }: Extract<Search["spending"], { readonly _tag: "Ours" }>,
  landed: Landed | undefined,
  ledger: number
): Outcome => {
  const own = whatLanded(landed, ledger)
  return {
    ...own,
    state: "settled",
    transaction: executed.innerHash,
    ledger: executed.ledger,
    closedAtSeconds: executed.closedAtSeconds,
    feeChargedStroops: own.feeChargedStroops + executed.feeChargedStroops,
    amountTransferred: moved,
    reason: undefined,
    message: "the payment was made by a transaction of ours whose record was lost"
  }
}

/** The same, when the settlement's own transaction never landed. */
export const paidByLost = (
  expired: Outcome,
  spending: Extract<Search["spending"], { readonly _tag: "Ours" }>
): Outcome => ({
  ...settledByOurs(spending, undefined, 0),
  feeChargedStroops: spending.executed.feeChargedStroops,
  feeUnknown: false,
  channel: expired.channel
})

/** The use of an authorization, in a sentence. Only its transaction shows whether money moved, and how much. */
export const spentText = ({ isOurs, transaction }: SpentBy): string =>
  isOurs
    ? `the authorization was used in transaction ${transaction} of this facilitator, under other terms`
    : `the authorization was used in transaction ${transaction}, which this facilitator did not send`

/** The transaction in such a sentence. */
export const spentIn = (message: string): string | undefined =>
  /^the authorization was used in transaction ([0-9a-f]{64})/.exec(message)?.[1]

/** The transaction that used the authorization was seen, and it is not this payment. */
export const spentElsewhere = (landed: Landed | undefined, ledger: number, by: SpentBy): Outcome => ({
  ...whatLanded(landed, ledger),
  state: "failed",
  amountTransferred: undefined,
  reason: "settle_ledger_authorization_spent",
  message: spentText(by)
})

/** The same, if the settlement's own transaction never landed: the payer has paid, but not through us. */
export const spentUnused = (expired: Outcome, by: SpentBy): Outcome => ({
  ...expired,
  state: "failed",
  reason: "settle_ledger_authorization_spent",
  message: spentText(by)
})

/** At or past the bound the channel's number is still below the settlement's: it never landed and never will. */
export const expired = (settlement: OpenSettlement, sequence: bigint, ledger: number): Outcome => ({
  transaction: undefined,
  ledger: undefined,
  closedAtSeconds: undefined,
  amountTransferred: undefined,
  feeChargedStroops: 0n,
  feeUnknown: false,
  state: "expired",
  reason: "settle_ledger_transaction_expired",
  message:
    `the transaction was not included by ledger ${settlement.authorizationExpiresLedger}; ` +
    "the authorization is dead",
  // A number other than the one just before ours was recorded wrongly.
  channel: { sequenceUsed: sequence === settlement.channelSequence - 1n ? false : undefined, ledger }
})

export const unresolved = (landed: Landed | undefined, ledger: number): Outcome => ({
  ...whatLanded(landed, ledger),
  state: "unresolved",
  amountTransferred: undefined,
  reason: undefined,
  message: "the ledger's history does not show whether the authorization was used"
})
