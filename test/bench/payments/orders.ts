// What the payments bench orders from its clients, which run in a process of their own: payments signed in advance into
// a named pool, and a pool sent to an address, by N concurrent clients or at a rate.

/**
 * What is sent: a valid payment, with metadata for the catalog, with the same under an unread key, or without; or one
 * that has to be refused.
 */
export type PaymentKind = "plain" | "metadata" | "unread" | "malformed" | "badly signed"

export interface SignOrder {
  readonly order: "sign"
  readonly pool: string
  readonly kind: PaymentKind
  readonly count: number
  readonly ledgerUrl: string
  /** Seeds of the accounts that pay, in turns. */
  readonly payers: ReadonlyArray<string>
  readonly payTo: string
}

/** Bodies that were made elsewhere, into a pool. */
export interface FillOrder {
  readonly order: "fill"
  readonly pool: string
  readonly bodies: ReadonlyArray<string>
}

export interface SendOrder {
  readonly order: "send"
  readonly pool: string
  /** Where it is sent; to several in turns, a connection each. */
  readonly port: number | ReadonlyArray<number>
  readonly path: "/verify" | "/settle"
  /** Payments sent, from the pool's beginning. */
  readonly from: number
  readonly count: number
  /** A number of clients, each sending as soon as it was answered; or a rate per second, independent of answers. */
  readonly load: { readonly clients: number } | { readonly perSecond: number }
  readonly key?: string
  /** Each with a trace of its sender's that is to be sent on. */
  readonly isTraced?: boolean
}

export interface SendFigures {
  readonly answers: number
  readonly seconds: number
  /** Answers a second. */
  readonly rate: number
  readonly millis: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number }
  /** Every hundredth part of the answers by their milliseconds, for a plot. */
  readonly curve: ReadonlyArray<number>
  /** What was answered, by status and word, with how often. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Hashes of what settled. */
  readonly settled: ReadonlyArray<string>
  /** Milliseconds of the clients' own processor time for an answer. */
  readonly clientCpu: number
}

export type Order = SignOrder | FillOrder | SendOrder
export type Reply = { readonly figures: SendFigures } | { readonly signed: number } | { readonly error: string }
