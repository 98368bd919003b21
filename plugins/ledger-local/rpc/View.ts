// A method's view of the ledger: usually the present, under an injected fault also the past. Methods read only from
// this view, never the ledger's latest state directly.
import type { Store } from "../engine/state/Store.ts"
import type { LedgerRecord } from "../node/History.ts"
import type { Ledger } from "../node/Ledger.ts"
import { RpcCode, RpcError } from "./RpcError.ts"

interface NetworkFacts {
  readonly passphrase: string
  /** The friendbot's address; absent without a friendbot. */
  readonly friendbotUrl: string | undefined
}

export interface View {
  readonly ledger: Ledger
  readonly store: Store
  readonly latest: LedgerRecord
  readonly network: NetworkFacts
  /** The present, in seconds. */
  readonly now: bigint
  /** Random bytes; repeated attempts of the same request get the same bytes. */
  readonly randomBytes: (length: number) => Uint8Array
}

/** The present, or the state of a node that lags by `behind` ledgers (as far back as is kept). */
export const viewOf = (
  ledger: Ledger,
  network: NetworkFacts,
  now: bigint,
  behind = 0,
  randomBytes = ledger.options.crypto.randomBytes
): View => {
  const sequence = Math.max(ledger.history.oldest.sequence, ledger.latest.sequence - behind)
  const latest = ledger.history.ledger(sequence) ?? ledger.latest
  const store = ledger.storeAsOf(latest.sequence)
  if (store === undefined) throw new RpcError(RpcCode.internal, "data stores are not initialized")
  return { ledger, store, latest, network, now, randomBytes }
}

/** The four fields that name how much history there is, in the form of single-transaction answers. */
export const rangeFields = ({ ledger, latest }: View) => ({
  latestLedger: latest.sequence,
  latestLedgerCloseTime: latest.closeTime.toString(),
  oldestLedger: ledger.history.oldest.sequence,
  oldestLedgerCloseTime: ledger.history.oldest.closeTime.toString()
})
