// The third side of the audit, pure: compares the logged outcomes with ledger and database. Every outcome has exactly
// one leaf, and an operator's correction adds another; the last leaf agrees with the database and with the ledger.
// After a restore, only the log shows which successes were answered since.
import type { Claims, SettlementClaim } from "./auditRows.ts"
import type { Mismatch } from "./compare.ts"
import type { LedgerView } from "./readLedger.ts"

/** An outcome, from its leaf's record. */
export interface LoggedOutcome {
  readonly epoch: number
  readonly index: number
  readonly outcome: string
  /** `operator`: corrected or ended by a person. */
  readonly by?: string | undefined
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

export interface LogView {
  /** In the log's order. */
  readonly outcomes: ReadonlyArray<LoggedOutcome>
  /** Errors in the log itself: leaves, roots, signatures, receipts. */
  readonly issues: ReadonlyArray<Mismatch>
  /** Ended settlements that the log must have by now. */
  readonly due: ReadonlySet<string>
  /** End time of the oldest settlement that the database still has; milliseconds since 1970. */
  readonly keptSince: number
}

interface LogReport {
  readonly leaves: number
  /** Outcomes of settlements that the database has swept; compared only with the ledger. */
  readonly swept: number
  readonly mismatches: ReadonlyArray<Mismatch>
}

type Wrong = (rule: string, subject: string, detail: string) => void

const isOpen = (state: string): boolean => ["prepared", "submitted", "unresolved"].includes(state)

const place = ({ epoch, index }: LoggedOutcome): string => `leaf ${index} of epoch ${epoch}`

/** The leaves of one settlement against its record. */
const verifyRecord = (claim: SettlementClaim, logged: ReadonlyArray<LoggedOutcome>, wrong: Wrong): void => {
  const last = logged.at(-1)!
  const { ended_by, fee_charged_stroops, id, inner_hash, ledger, moved, state } = claim
  if (isOpen(state)) return wrong("logged after its end", id, `is ${state}, ${place(last)} says ${last.outcome}`)
  if (logged.slice(1).some(({ by }) => by !== "operator"))
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

/** Compares the log with the database and with the ledger. */
export const compareLog = (claims: Claims, view: LedgerView, log: LogView): LogReport => {
  const mismatches: Array<Mismatch> = [...log.issues]
  const wrong: Wrong = (rule, subject, detail) => mismatches.push({ rule, subject, detail })
  const bySettlement = Map.groupBy(log.outcomes, ({ settlement }) => settlement)
  for (const claim of claims.settlements) {
    const logged = bySettlement.get(claim.id)
    if (logged !== undefined) verifyRecord(claim, logged, wrong)
    else if (log.due.has(claim.id)) wrong("logged", claim.id, `is ${claim.state}, and the log has no leaf of it`)
  }
  const claimedIds = new Set(claims.settlements.map(({ id }) => id))
  const byHash = new Map(view.entries.map((entry) => [entry.innerHash, entry]))
  let swept = 0
  for (const [settlement, logged] of bySettlement) {
    const last = logged.at(-1)!
    verifyOnLedger(last, byHash.get(last.transaction), view, wrong)
    if (claimedIds.has(settlement)) continue
    if (last.at < log.keptSince) swept += 1
    else wrong("recorded before logged", settlement, `${place(last)} says ${last.outcome} by ${last.transaction}`)
  }
  return { leaves: log.outcomes.length, swept, mismatches }
}
