// The payments bench's orders to its clients, which run in a separate process: payments signed in advance into a named
// pool, and a pool sent to an address, by N concurrent clients or at a rate.

/**
 * The kind of a sent payment: valid with metadata for the catalog, with the same under an unread key, or without; or a
 * payment that must be refused.
 */
export type PaymentKind = "plain" | "metadata" | "unread" | "malformed" | "badly signed"

export interface SignOrder {
  readonly order: "sign"
  readonly pool: string
  readonly kind: PaymentKind
  readonly count: number
  readonly ledgerUrl: string
  /** Seeds of the paying accounts, which take turns. */
  readonly payers: ReadonlyArray<string>
  readonly payTo: string
}

/** Bodies made elsewhere, for a pool. */
export interface FillOrder {
  readonly order: "fill"
  readonly pool: string
  readonly bodies: ReadonlyArray<string>
}

export interface SendOrder {
  readonly order: "send"
  readonly pool: string
  /** The port; several ports take turns, with a connection each. */
  readonly port: number | ReadonlyArray<number>
  readonly path: "/verify" | "/settle"
  /** Number of payments, from the pool's beginning. */
  readonly from: number
  readonly count: number
  /** A number of clients, each sending after its answer; or a rate per second, independent of answers. */
  readonly load: { readonly clients: number } | { readonly perSecond: number }
  readonly key?: string
  /** Each request has a sampled trace of its sender. */
  readonly isTraced?: boolean
}

export interface SendFigures {
  readonly answers: number
  readonly seconds: number
  /** Answers per second. */
  readonly rate: number
  readonly millis: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number }
  /** The percentiles of the answers' milliseconds, for a plot. */
  readonly curve: ReadonlyArray<number>
  /** The number of answers by status and reason. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Hashes of the settled payments. */
  readonly settled: ReadonlyArray<string>
  /** Milliseconds of the clients' own processor time per answer. */
  readonly clientCpu: number
}

export type Order = SignOrder | FillOrder | SendOrder
export type Reply = { readonly figures: SendFigures } | { readonly signed: number } | { readonly error: string }
