// The third side of the audit, pure: compares a settlement's logged outcomes with ledger and database. Every outcome
// has exactly one leaf, and a correction adds another; the last leaf agrees with the database and with the ledger.
// After a restore, only the log shows which successes were answered since.
import type { SettlementClaim } from "./auditRows.ts"
import type { LedgerView } from "./readLedger.ts"

/** An outcome, from its leaf's record. */
export interface LoggedOutcome {
  readonly epoch: number
  readonly index: number
  readonly outcome: string
  /** `operator`: corrected or ended by a person. */
  readonly by?: string | undefined
  /** The outcome that a later use of the authorization corrected. */
  readonly corrects?: string | undefined
  readonly settlement: string
  /** 64 hex. */
  readonly transaction: string
  /** Decimal, atomic units. */
  readonly moved?: string | undefined
  /** Stroops. */
  readonly fee: string
  readonly ledger?: number | undefined
  /** Milliseconds since 1970. */
  readonly at: number
}

type RecordedEnd = Pick<
  SettlementClaim,
  "id" | "state" | "ended_by" | "inner_hash" | "moved" | "fee_charged_stroops" | "ledger"
>

type Wrong = (rule: string, subject: string, detail: string) => void

const isOpen = (state: string): boolean => ["prepared", "submitted", "unresolved"].includes(state)

const place = ({ epoch, index }: LoggedOutcome): string => `leaf ${index} of epoch ${epoch}`

/** The leaves of one settlement against its record. */
const verifyRecord = (claim: RecordedEnd, logged: ReadonlyArray<LoggedOutcome>, wrong: Wrong): void => {
  const last = logged.at(-1)!
  const { ended_by, fee_charged_stroops, id, inner_hash, ledger, moved, state } = claim
  if (isOpen(state)) return wrong("logged after its end", id, `is ${state}, ${place(last)} says ${last.outcome}`)
  if (logged.slice(1).some(({ by, corrects }) => by !== "operator" && corrects === undefined))
    wrong("one leaf", id, `has ${logged.map(place).join(" and ")}`)
  if (last.outcome !== state) wrong("log outcome", id, `is ${state}, ${place(last)} says ${last.outcome}`)
  const own = [ended_by ?? inner_hash, moved ?? undefined, String(fee_charged_stroops ?? 0n), ledger?.toString()]
  const theirs = [last.transaction, last.moved, last.fee, last.ledger?.toString()]
  const names = ["transaction", "amount", "fee", "ledger"]
  names.forEach((name, at) => {
    if (own[at] !== theirs[at])
      wrong(`log ${name}`, id, `recorded ${own[at] ?? "none"}, ${place(last)} says ${theirs[at] ?? "none"}`)
  })
}

/** One outcome against the ledger, if the ledger still has it. */
const verifyOnLedger = (
  one: LoggedOutcome,
  entry: LedgerView["entries"][number] | undefined,
  view: LedgerView,
  wrong: Wrong
): void => {
  if (one.outcome !== "settled") {
    if (entry?.succeeded === true)
      wrong("log and ledger", one.transaction, `${place(one)} says ${one.outcome}, the ledger carried it out`)
    return
  }
  if (one.ledger === undefined || one.ledger < view.fromLedger || one.ledger > view.toLedger) return
  if (entry === undefined || !entry.succeeded || entry.ledger !== one.ledger)
    return wrong("log and ledger", one.transaction, `${place(one)} says settled, the ledger does not in ${one.ledger}`)
  const isMoved = entry.transfers.some(({ amount }) => amount.toString() === one.moved)
  if (!isMoved && one.moved !== "0")
    wrong("log and ledger", one.transaction, `${place(one)} says ${one.moved} moved, the ledger shows no such transfer`)
}

export interface LogSides {
  /** By inner hash. */
  readonly entries: ReadonlyMap<string, LedgerView["entries"][number]>
  readonly view: LedgerView
  /** End time of the oldest settlement that the database still has; milliseconds since 1970. */
  readonly keptSince: number
}

/** Compares the leaves of one settlement, in the log's order. True if the database has swept its record. */
export const compareOutcome = (
  claim: RecordedEnd | undefined,
  logged: ReadonlyArray<LoggedOutcome>,
  { entries, keptSince, view }: LogSides,
  wrong: Wrong
): boolean => {
  const last = logged.at(-1)!
  verifyOnLedger(last, entries.get(last.transaction), view, wrong)
  if (claim !== undefined) verifyRecord(claim, logged, wrong)
  else if (last.at < keptSince) return true
  else wrong("recorded before logged", last.settlement, `${place(last)} says ${last.outcome} by ${last.transaction}`)
  return false
}
