// Plain data of the budget: the principal of a payment, the amount reserved for a payment, and the usage of a day's
// bounds. Amounts are stroops.
export interface BudgetPrincipal {
  readonly id: string
  readonly keyed: boolean
}

/** The row of a reservation: it must be settled on the same row. */
export interface Reservation {
  /** UTC day, `YYYY-MM-DD`. */
  readonly day: string
  readonly principal: string
  readonly keyed: boolean
  readonly shard: number
  readonly stroops: bigint
}

/** Limits of reservations and charges in a day, stroops. */
export interface DayBounds {
  /** Of the principal, stroops a day. */
  readonly own: bigint
  /** Of all together. */
  readonly inAll: bigint
}

/** Reserved and charged of a day, stroops. */
export interface DaySpent {
  readonly own: bigint
  readonly inAll: bigint
  readonly anonymous: bigint
}
