// What an agent may spend, counted for each asset apart, for each agent and each of its sessions, by UTC day. A
// reservation is the amount of one payment, from before anything is built until its outcome is known. It is
// let go only when nothing was signed or the authorization has died unspent on the ledger; a seller's word releases
// nothing. Pure.

/**
 * `reserved`: nothing is signed yet. `signed`: an authorization exists, its call is under way. `unknown`: it exists and
 * its outcome is not known. `spent`: the ledger has it, and no host has acknowledged its result. `acknowledged`: a host
 * has, and the same call still gets it for the replay window. `settled`: paid and delivered. `released`: it can never
 * be spent.
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
  /** The last ledger in which it can be spent. */
  readonly expirationLedger: number
}

export interface Reservation {
  /** The payment identifier. */
  readonly id: string
  /** UTC day of the ledger, `YYYY-MM-DD`. */
  readonly day: string
  readonly agent: string
  readonly session: string
  /**
   * Hash of agent, resource and arguments: the same call again is not a second payment while this one is open.
   */
  readonly invocation: string
  /** Neutral. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** Of the resource; undefined for a symbolic name, and for what was reserved before origins were kept. */
  readonly origin: string | undefined
  /** True if the origin has confirmed the payee. */
  readonly grade: Grade | undefined
  /** Atomic units. */
  readonly amount: bigint
  readonly state: ReservationState
  readonly createdAtMillis: number
  readonly authorization: Authorization | undefined
  /** Hash of the transaction, when a seller named one that fits. */
  readonly transaction: string | undefined
  /** The facilitator's signed receipt, a compact JWS, where the seller passed one on. */
  readonly receipt?: string | undefined
  /** Close time of the ledger that was the latest when it was reserved; absent in what earlier versions wrote. */
  readonly ledgerSeconds?: number | undefined
  /** When its host was seen to have the result. */
  readonly acknowledgedAtMillis?: number | undefined
}

/** Atomic units of one asset. */
export interface Ceilings {
  readonly perSession: bigint
  readonly perDay: bigint
  /** To one recipient in a day; 0 is no limit, as in those that follow. */
  readonly perRecipient: bigint
  /** For resources of one origin in a day. */
  readonly perOrigin: bigint
  /** For all resources of one grade in a day. */
  readonly perGrade: Readonly<Record<Grade, bigint>>
  /** Payments per agent and minute, over all assets; 0 is no limit. */
  readonly paymentsPerMinute: number
}

/** States that can still change. */
export const isOpen = ({ state }: Reservation): boolean =>
  state === "reserved" || state === "signed" || state === "unknown"

/** How many identifiers of released payments are named. */
export const releasedMax = 10

/** The signed payments of an invocation that were released since its last delivery, oldest of `all` first. */
export const releasedSince = (all: ReadonlyArray<Reservation>): ReadonlyArray<string> =>
  all
    .slice(all.findLastIndex(({ state }) => state === "settled") + 1)
    .filter(({ authorization, state }) => state === "released" && authorization !== undefined)
    .map(({ id }) => id)
    .reverse()
    .slice(0, releasedMax)

/** States in which the same call gets this payment's result, and pays nothing. */
export const undelivered: ReadonlyArray<ReservationState> = ["reserved", "signed", "unknown", "spent", "acknowledged"]

export const minuteMillis = 60_000

/** By the ledgers' close times, which no setting of a machine's clock changes. */
const isWithinMinute = (
  one: Pick<Reservation, "createdAtMillis" | "ledgerSeconds">,
  asked: Pick<Reservation, "createdAtMillis" | "ledgerSeconds">
): boolean =>
  one.ledgerSeconds === undefined || asked.ledgerSeconds === undefined
    ? asked.createdAtMillis - one.createdAtMillis < minuteMillis
    : (asked.ledgerSeconds - one.ledgerSeconds) * 1_000 < minuteMillis

/** How much is left for a new reservation like this one: the least of all ceilings; below 0 when it is one too many. */
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
  // What is spent can still be delivered, by the same payment sent again.
  spent: ["acknowledged", "settled"],
  acknowledged: ["settled"],
  settled: [],
  released: []
}

export const mayTransition = (from: ReservationState, to: ReservationState): boolean => moves[from].includes(to)
