// A refused payment as reports show it. Addresses, URLs and the message are text of others: inert, and cut.

/** Samples that a day keeps of one reason and principal. */
export const samplesMax = 5

export interface RefusalSample {
  /** ISO 8601 UTC. */
  readonly at: string
  readonly message: string
  readonly payer: string | null
  readonly pay_to: string | null
  /** Neutral spelling. */
  readonly network: string | null
  readonly scheme: string | null
  readonly asset: string | null
  /** As the terms had it: atomic units when it was well-formed. */
  readonly amount: string | null
  readonly resource_url: string | null
  /** Hex of the inner hash, when the payment was decoded that far. */
  readonly transaction_hash: string | null
}
