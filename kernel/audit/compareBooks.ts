// The audit, run while the service takes payments. It reads the database before the ledger, and again after it if a
// finding may concern a payment that was in flight. We record a payment before we send it, so the later read has the
// record of everything that the ledger showed; a finding that it does not explain is reported. An endpoint that is
// behind the records is read again for some seconds.
import { Effect, Schedule } from "effect"
import { type Claims, readClaims } from "./auditRows.ts"
import { type AuditReport, compare, type Mismatch } from "./compare.ts"
import type { LedgerView } from "./readLedger.ts"

/** The rules that compare a record with a later state of the ledger. */
const maybeInFlight: ReadonlySet<string> = new Set([
  "recorded before sent",
  "bid recorded before sent",
  "channel sequence",
  "channel exists"
])

/** How often an endpoint behind the newest recorded end is read again, and the pause between two reads. */
const againMax = 5
const againEvery = "1 second"

const keyOf = ({ rule, subject }: Mismatch): string => `${rule} ${subject}`

/**
 * Whether settlements recorded since explain the ledger's lead: they used every sequence number above a channel's
 * record.
 */
const isUsedSince = (address: string, claims: Claims, later: Claims, view: LedgerView): boolean => {
  const recorded = claims.channels.find((channel) => channel.address === address)?.sequence
  const onLedger = view.sequences.get(address)
  if (recorded === undefined || recorded === null || onLedger === undefined || onLedger < recorded) return false
  const claimedIds = new Set(claims.settlements.map(({ id }) => id))
  const used = new Set(
    later.settlements.flatMap(({ channel, channel_sequence, id }) =>
      channel === address && !claimedIds.has(id) ? [channel_sequence] : []
    )
  )
  for (let number = recorded + 1n; number <= onLedger; number++) if (!used.has(number)) return false
  return true
}

/** The findings that remain once the database was read again after the ledger. Pure. */
export const withoutInFlight = (
  mismatches: ReadonlyArray<Mismatch>,
  claims: Claims,
  later: Claims,
  view: LedgerView
): ReadonlyArray<Mismatch> => {
  const still = new Set(compare(later, view).mismatches.map(keyOf))
  return mismatches.filter((found) => {
    if (!maybeInFlight.has(found.rule)) return true
    return found.rule === "channel sequence"
      ? !isUsedSince(found.subject, claims, later, view)
      : still.has(keyOf(found))
  })
}

/** Reads both sides and compares them; returns the report with the claims and the view behind it. */
export const compareBooks = Effect.fn("audit.compareBooks")(function* <E, R>(
  readView: (claims: Claims) => Effect.Effect<LedgerView, E, R>
) {
  const claims = yield* readClaims()
  const newest = claims.settlements.reduce((most, { ledger }) => Math.max(most, Number(ledger ?? 0n)), 0)
  const view = yield* Effect.repeat(readView(claims), {
    schedule: Schedule.spaced(againEvery),
    times: againMax,
    until: ({ toLedger }) => toLedger >= newest
  })
  const report: AuditReport = compare(claims, view)
  if (!report.mismatches.some(({ rule }) => maybeInFlight.has(rule))) return { claims, view, report }
  const later = yield* readClaims()
  return { claims, view, report: { ...report, mismatches: withoutInFlight(report.mismatches, claims, later, view) } }
})
