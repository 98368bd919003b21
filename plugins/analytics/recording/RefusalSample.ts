// A refused payment as reports show it. Addresses, URLs and the message are third-party text: inert, and truncated.

/** Samples stored per day, reason and principal. */
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
  /** From the payment terms: atomic units if well-formed. */
  readonly amount: string | null
  readonly resource_url: string | null
  /** Hex of the inner hash, if the payment was decoded that far. */
  readonly transaction_hash: string | null
}
