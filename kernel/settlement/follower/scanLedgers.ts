// Where one look through the new ledgers costs less than a question for each hash, the follower takes it for all open
// settlements together: many are open, or the ledgers hold few transactions. What a scan finds is as good as an answer
// to a question. What it does not find is only absent as far as it looked, so nothing ends by it: a settlement whose
// bound has passed is still asked for by its hash. What was looked through, and how much stood in it, is kept in memory
// and only saves work: after a restart the first scan begins at the oldest open settlement.
import { Context, Effect } from "effect"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { landedOf } from "./gatherEvidence.ts"
import type { Seen } from "../state/Settlement.ts"
import type { OpenRecord } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Open settlements above which ledgers are scanned whatever they hold. */
export const ScanAbove = Context.Reference<number>("tollkeeper/settlement/ScanAbove", { defaultValue: () => 50 })

/** Transactions on a page that cost as much as a question of its own; 0 scans by `ScanAbove` alone. */
export const TransactionsPerQuestion = Context.Reference<number>("tollkeeper/settlement/TransactionsPerQuestion", {
  defaultValue: () => 5
})

/** Ledgers for which it is believed how much stands in one, or that they cannot be looked through. */
const believedLedgers = 720
/** Ledgers that are looked through to find out. */
const triedLedgersMax = 8

/** How many transactions the ledgers of a scan held, and when that was found; none could be read: `Infinity`. */
const makeDensity = () => {
  let known: { readonly perLedger: number; readonly atLedger: number } | undefined
  return {
    note: (transactions: number, ledgers: number, atLedger: number) => {
      if (ledgers > 0) known = { perLedger: transactions / ledgers, atLedger }
    },
    /** Undefined when it has to be found out. */
    expected: (ledgers: number, atLedger: number): number | undefined =>
      known === undefined || atLedger - known.atLedger > believedLedgers ? undefined : known.perLedger * ledgers
  }
}

/** A scanner with nothing looked through yet. */
export const makeScanner = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const density = makeDensity()
  /** Settlements for which every ledger from their birth to `scannedTo` was looked through in vain. */
  let covered: ReadonlySet<string> = new Set()
  let scannedTo = 0

  const firstOf = (records: ReadonlyArray<OpenRecord>) =>
    records.reduce(
      (least, { id, recordedLedger }) => Math.min(least, covered.has(id) ? scannedTo + 1 : recordedLedger + 1),
      Infinity
    )

  const isWorthIt = Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>, fromLedger: number) {
    if (records.length > (yield* ScanAbove)) return true
    const perQuestion = yield* TransactionsPerQuestion
    if (records.length < 2 || perQuestion === 0) return false
    const { sequence } = yield* clock.now
    const ledgers = Math.max(0, sequence - fromLedger + 1)
    const expected = density.expected(ledgers, sequence)
    return expected === undefined ? ledgers <= triedLedgersMax : expected <= perQuestion * records.length
  })

  const scan = Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>, fromLedger: number) {
    const attempts = attemptsByHash(records)
    const seen = new Map<string, Seen>()
    if (fromLedger <= (yield* clock.now).sequence) {
      let polled = 0
      const matches = (hash: string) => {
        polled += 1
        return attempts.has(hash)
      }
      const answer = yield* rpc.scan({ fromLedger, matches })
      scannedTo = answer.scannedTo
      density.note(polled, scannedTo - fromLedger + 1, scannedTo)
      for (const { executed } of answer.found) {
        // Asked for by one hash and recomputed from the envelope: what is of nobody here is of no interest.
        const found = attempts.get(executed.outerHash) ?? attempts.get(executed.innerHash)
        if (found === undefined) continue
        const landed = yield* landedOf(found.record, found.kind, executed)
        seen.set(found.record.id, { _tag: "Included", landed, latestLedger: scannedTo })
      }
    }
    // One that is found and cannot be ended this time is looked for again.
    covered = new Set(records.flatMap(({ id }) => (seen.has(id) ? [] : [id])))
    for (const { authorizationExpiresLedger, id } of records) {
      if (!seen.has(id) && scannedTo < authorizationExpiresLedger)
        seen.set(id, { _tag: "Absent", latestLedger: scannedTo })
    }
    return seen as ReadonlyMap<string, Seen>
  })

  /**
   * What a scan tells of open settlements; those it cannot speak of are absent, all of them while no scan is worth it
   * or possible.
   */
  return Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>) {
    const fromLedger = firstOf(records)
    const worthIt = yield* Effect.catch(isWorthIt(records, fromLedger), () => Effect.succeed(false))
    if (!worthIt) return new Map<string, Seen>() as ReadonlyMap<string, Seen>
    return yield* Effect.catch(scan(records, fromLedger), (error) => {
      density.note(Infinity, 1, Number.isFinite(fromLedger) ? fromLedger : 0)
      return Effect.as(
        Effect.logWarning("ledgers could not be looked through; open settlements are asked for one by one", error),
        new Map<string, Seen>() as ReadonlyMap<string, Seen>
      )
    })
  }, withSpanIfSampled("settlement.scan"))
})

const attemptsByHash = (records: ReadonlyArray<OpenRecord>) =>
  new Map(
    records.flatMap((record) =>
      record.attempts.flatMap(({ innerHash, kind, outerHash }) =>
        [outerHash, innerHash].map((hash) => [hash, { record, kind }] as const)
      )
    )
  )
