// An agent's spending limits, counted per asset, agent and session, by UTC day. A reservation holds the amount of one
// payment from before anything is built until its outcome is known. It is released only if nothing was signed, or the
// authorization expired unspent on the ledger. A seller's statement releases nothing. Pure.

/**
 * `reserved`: nothing is signed yet. `signed`: an authorization exists and its call is in progress. `unknown`: it
 * exists and its outcome is not known. `spent`: it is on the ledger, and no host has acknowledged the result.
 * `acknowledged`: a host has, and the same call still gets the result during the replay window. `settled`: paid and
 * delivered. `released`: it can never be spent.
 */
export type ReservationState = (typeof reservationStates)[number]

export const reservationStates = [
  "reserved",
  "signed",
  "unknown",
  "spent",
  "acknowledged",
  "settled",
  "released"
] as const

export type Grade = "proven" | "provisional"

export interface Authorization {
  /** Address, G… */
  readonly payer: string
  readonly nonce: bigint
  /** The authorization can be spent up to this ledger. */
  readonly expirationLedger: number
}

export interface Reservation {
  /** The payment identifier. */
  readonly id: string
  /** UTC day of the ledger, `YYYY-MM-DD`. */
  readonly day: string
  readonly agent: string
  readonly session: string
  /** Hash of agent, resource and arguments. While this payment is open, the same call does not pay again. */
  readonly invocation: string
  /** Neutral name. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** Origin of the resource. Undefined for a symbolic name, and for reservations made before origins were stored. */
  readonly origin?: string | undefined
  /** True if the origin has confirmed the payee. */
  readonly grade?: Grade | undefined
  /** Atomic units. */
  readonly amount: bigint
  readonly state: ReservationState
  readonly createdAtMillis: number
  readonly authorization: Authorization | undefined
  /** Hash of the transaction, if the seller named a matching one. */
  readonly transaction?: string | undefined
  /** The facilitator's signed receipt, a compact JWS, if the seller passed one on. */
  readonly receipt?: string | undefined
  /** Close time of the latest ledger when the amount was reserved. Absent in reservations of earlier versions. */
  readonly ledgerSeconds?: number | undefined
  /** When its host acknowledged the result. */
  readonly acknowledgedAtMillis?: number | undefined
}

/** Atomic units of one asset. */
export interface Ceilings {
  readonly perSession: bigint
  readonly perDay: bigint
  /** To one recipient in a day; 0 means no limit, here and in the members below. */
  readonly perRecipient: bigint
  /** For resources of one origin in a day. */
  readonly perOrigin: bigint
  /** For all resources of one grade in a day. */
  readonly perGrade: Readonly<Record<Grade, bigint>>
  /** Payments per agent and minute, over all assets; 0 means no limit. */
  readonly paymentsPerMinute: number
}

/** True in states that can still change. */
export const isOpen = ({ state }: Reservation): boolean =>
  state === "reserved" || state === "signed" || state === "unknown"

/** Maximum number of released payments that are listed. */
export const releasedMax = 10

/** Signed payments of an invocation released since its last delivery. `all` is sorted oldest first. */
export const releasedSince = (all: ReadonlyArray<Reservation>): ReadonlyArray<string> =>
  all
    .slice(all.findLastIndex(({ state }) => state === "settled") + 1)
    .filter(({ authorization, state }) => state === "released" && authorization !== undefined)
    .map(({ id }) => id)
    .reverse()
    .slice(0, releasedMax)

/** In these states the same call gets this payment's result and pays nothing. */
export const undelivered: ReadonlyArray<ReservationState> = ["reserved", "signed", "unknown", "spent", "acknowledged"]

export const minuteMillis = 60_000

/** Compares the ledgers' close times, because a machine's clock can be set. */
const isWithinMinute = (
  one: Pick<Reservation, "createdAtMillis" | "ledgerSeconds">,
  asked: Pick<Reservation, "createdAtMillis" | "ledgerSeconds">
): boolean =>
  one.ledgerSeconds === undefined || asked.ledgerSeconds === undefined
    ? asked.createdAtMillis - one.createdAtMillis < minuteMillis
    : (asked.ledgerSeconds - one.ledgerSeconds) * 1_000 < minuteMillis

/** Amount left for such a reservation: the minimum over all ceilings. Below 0 if the rate limit is reached. */
export const remaining = (
  all: Iterable<Reservation>,
  asked: Omit<Reservation, "id" | "invocation" | "amount" | "state" | "authorization" | "transaction" | "receipt">,
  { paymentsPerMinute, perDay, perGrade, perOrigin, perRecipient, perSession }: Ceilings
): bigint => {
  let [day, session, recipient, origin, grade, lately] = [0n, 0n, 0n, 0n, 0n, 0]
  for (const one of all) {
    if (one.state !== "released" && one.agent === asked.agent && isWithinMinute(one, asked)) lately += 1
    if (
      one.state === "released" ||
      one.day !== asked.day ||
      one.agent !== asked.agent ||
      one.network !== asked.network ||
      one.asset !== asked.asset
    )
      continue
    day += one.amount
    if (one.session === asked.session) session += one.amount
    if (one.payTo === asked.payTo) recipient += one.amount
    if (one.origin === asked.origin) origin += one.amount
    if (one.grade === asked.grade) grade += one.amount
  }
  if (paymentsPerMinute > 0 && lately >= paymentsPerMinute) return -1n
  const ofGrade = asked.grade === undefined ? 0n : perGrade[asked.grade]
  const optional = [
    [perRecipient, recipient],
    [asked.origin === undefined ? 0n : perOrigin, origin],
    [ofGrade, grade]
  ] as const
  const left = [
    perDay - day,
    perSession - session,
    ...optional.flatMap(([ceiling, spent]) => (ceiling === 0n ? [] : [ceiling - spent]))
  ]
  return left.reduce((least, one) => (one < least ? one : least))
}

const moves: Readonly<Record<ReservationState, ReadonlyArray<ReservationState>>> = {
  reserved: ["signed", "released"],
  signed: ["unknown", "spent", "settled", "released"],
  unknown: ["spent", "settled", "released"],
  // The result of a spent payment can still be delivered, by sending the same payment again.
  spent: ["acknowledged", "settled"],
  acknowledged: ["settled"],
  settled: [],
  released: []
}

export const mayTransition = (from: ReservationState, to: ReservationState): boolean => moves[from].includes(to)
