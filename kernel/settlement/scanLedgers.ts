// While many settlements are open, the follower looks through the new ledgers once for all of them instead of asking
// for each hash. What a scan finds is as good as an answer to a question. What it does not find is only absent as far
// as it looked, so nothing ends by it: a settlement whose bound has passed is still asked for by its hash. What was
// looked through is kept in memory and only saves work: after a restart the first scan begins at the oldest open
// settlement.
import { Context, Effect } from "effect"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import { landedOf } from "./gatherEvidence.ts"
import type { Seen } from "./Settlement.ts"
import type { OpenRecord } from "./Settlements.ts"
import { spanned } from "../spanned.ts"

/** Open settlements above which ledgers are scanned. */
export const ScanAbove = Context.Reference<number>("tollkeeper/settlement/ScanAbove", { defaultValue: () => 50 })

/** A scanner with nothing looked through yet. */
export const makeScanner = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  /** Settlements for which every ledger from their birth to `scannedTo` was looked through in vain. */
  let covered: ReadonlySet<string> = new Set()
  let scannedTo = 0

  const scan = Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>) {
    const attempts = attemptsByHash(records)
    const fromLedger = records.reduce(
      (least, { id, recordedLedger }) => Math.min(least, covered.has(id) ? scannedTo + 1 : recordedLedger + 1),
      Infinity
    )
    const seen = new Map<string, Seen>()
    if (fromLedger <= (yield* clock.now).sequence) {
      const answer = yield* rpc.scan({ fromLedger, matches: (hash) => attempts.has(hash) })
      scannedTo = answer.scannedTo
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
    if (records.length <= (yield* ScanAbove)) return new Map<string, Seen>() as ReadonlyMap<string, Seen>
    return yield* Effect.catch(scan(records), (error) =>
      Effect.as(
        Effect.logWarning("ledgers could not be looked through; open settlements are asked for one by one", error),
        new Map<string, Seen>() as ReadonlyMap<string, Seen>
      )
    )
  }, spanned("settlement.scan"))
})

const attemptsByHash = (records: ReadonlyArray<OpenRecord>) =>
  new Map(
    records.flatMap((record) =>
      record.attempts.flatMap(({ innerHash, kind, outerHash }) =>
        [outerHash, innerHash].map((hash) => [hash, { record, kind }] as const)
      )
    )
  )
