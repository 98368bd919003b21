// The follower scans new ledgers for all open settlements together if that costs less than a request for each hash:
// many are open, or the ledgers hold few transactions. A hit of a scan is as good as an answer to a request. A miss
// only means absence in the scanned range, so it ends nothing: we still request a settlement by its hash after its
// bound has passed. The scanned range, and the size of its ledgers, are kept in memory and only save work: after a
// restart the first scan begins at the oldest open settlement.
import { Context, Effect } from "effect"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { makeLandedOf } from "./gatherEvidence.ts"
import type { Seen } from "../state/Settlement.ts"
import type { OpenRecord } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Open settlements above which ledgers are scanned regardless of their size. */
export const ScanAbove = Context.Reference<number>("tollkeeper/settlement/ScanAbove", { defaultValue: () => 50 })

/** Transactions on a page that cost as much as one request by hash; 0 scans only by `ScanAbove`. */
export const TransactionsPerQuestion = Context.Reference<number>("tollkeeper/settlement/TransactionsPerQuestion", {
  defaultValue: () => 5
})

/** Validity, in ledgers, of a measured ledger size, or of the finding that scanning is not possible. */
const believedLedgers = 720
/** Maximum ledgers of a measuring scan. */
const triedLedgersMax = 8

/**
 * The number of transactions in the ledgers of a scan, with the ledger of the measurement; `Infinity` if no ledger was
 * readable.
 */
const makeDensity = () => {
  let density: { readonly perLedger: number; readonly atLedger: number } | undefined
  return {
    note: (transactions: number, ledgers: number, atLedger: number) => {
      if (ledgers > 0) density = { perLedger: transactions / ledgers, atLedger }
    },
    /** Undefined if it must be measured. */
    expected: (ledgers: number, atLedger: number): number | undefined =>
      density === undefined || atLedger - density.atLedger > believedLedgers ? undefined : density.perLedger * ledgers
  }
}

/** A scanner that has not scanned yet. */
export const makeScanner = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const landedOf = yield* makeLandedOf
  const density = makeDensity()
  /** Settlements not found in any ledger from their birth to `scannedTo`. */
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
        // Matched by one hash and recomputed from the envelope: transactions of others are skipped.
        const found = attempts.get(executed.outerHash) ?? attempts.get(executed.innerHash)
        if (found === undefined) continue
        const landed = landedOf(found.record, found.kind, executed)
        seen.set(found.record.id, { _tag: "Included", landed, latestLedger: scannedTo })
      }
    }
    // A hit that cannot be ended this time is searched for again.
    covered = new Set(records.flatMap(({ id }) => (seen.has(id) ? [] : [id])))
    for (const { authorizationExpiresLedger, id } of records) {
      if (!seen.has(id) && scannedTo < authorizationExpiresLedger)
        seen.set(id, { _tag: "Absent", latestLedger: scannedTo })
    }
    return seen as ReadonlyMap<string, Seen>
  })

  /**
   * The state of open settlements by a scan. Settlements that it cannot show are absent; all are absent while a scan is
   * not worthwhile or not possible.
   */
  return Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>) {
    const fromLedger = firstOf(records)
    const worthIt = yield* Effect.catch(isWorthIt(records, fromLedger), () => Effect.succeed(false))
    if (!worthIt) return new Map<string, Seen>() as ReadonlyMap<string, Seen>
    return yield* Effect.catch(scan(records, fromLedger), (error) => {
      density.note(Infinity, 1, Number.isFinite(fromLedger) ? fromLedger : 0)
      const reported = Effect.logWarning("ledgers could not be scanned; open settlements are polled by hash", error)
      return Effect.as(reported, new Map<string, Seen>() as ReadonlyMap<string, Seen>)
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
