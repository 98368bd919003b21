// When one ledger scan replaces a request for each hash, and when it does not.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable, type ScanRequest } from "../../../../kernel/ledger/LedgerRpc.ts"
import { Authorizations } from "../../../../kernel/settlement/Authorizations.ts"
import { makeScanner } from "../../../../kernel/settlement/follower/scanLedgers.ts"
import type { OpenRecord } from "../../../../kernel/settlement/store/Settlements.ts"
import { attempt } from "../lives.ts"
import { provideTest } from "../../../support/layerTest.ts"

const openOnes = (count: number, recordedLedger: number): ReadonlyArray<OpenRecord> =>
  Array.from(
    { length: count },
    (_, at) =>
      ({
        id: `${recordedLedger} ${at}`,
        recordedLedger,
        authorizationExpiresLedger: recordedLedger + 12,
        attempts: [attempt({ innerHash: `inner ${at}`, outerHash: `outer ${at}` })]
      }) as unknown as OpenRecord
  )

/** A ledger with `transactionsPerLedger` foreign transactions in each number; undefined: it cannot be scanned. */
const worldOf = (transactionsPerLedger: number | undefined) => {
  const scans: Array<number> = []
  const now = {
    sequence: 1_001,
    closedAtSeconds: 0,
    secondsPerLedger: 5,
    fastestSecondsPerLedger: 5,
    isFirstWord: false
  }
  const rpc = {
    scan: ({ fromLedger, matches }: ScanRequest) =>
      Effect.suspend(() => {
        scans.push(fromLedger)
        if (transactionsPerLedger === undefined)
          return Effect.fail(new LedgerUnavailable({ operation: "getTransactions", message: "no history" }))
        for (let ledger = fromLedger; ledger <= now.sequence; ledger++)
          for (let at = 0; at < transactionsPerLedger; at++) matches(`foreign ${ledger} ${at}`)
        return Effect.succeed({ scannedTo: now.sequence, oldestLedger: 1, found: [] })
      })
  }
  /** How many of the open settlements each scan covers, by ledgers. */
  const reported = (polls: ReadonlyArray<readonly [ledger: number, open: number]>) =>
    Effect.gen(function* () {
      const scan = yield* makeScanner
      const answers: Array<number> = []
      for (const [ledger, open] of polls) {
        now.sequence = ledger
        answers.push((yield* scan(openOnes(open, ledger - 1))).size)
      }
      return answers
    }).pipe(
      provideTest(LedgerRpc, rpc),
      provideTest(LedgerClock, { now: Effect.sync(() => ({ ...now })) }),
      provideTest(Authorizations, {})
    )
  return { scans, reported }
}

describe("the follower's ledger scan", () => {
  it.effect("scans for all open settlements when ledgers are small, never for one", () =>
    Effect.gen(function* () {
      const { reported, scans } = worldOf(20)
      expect(
        yield* reported([
          [1_001, 20],
          [1_002, 1],
          [1_003, 4]
        ])
      ).toEqual([20, 0, 4])
      expect(scans).toEqual([1_001, 1_003])
    })
  )

  it.effect("skips scanning large ledgers until many are open or an hour passed", () =>
    Effect.gen(function* () {
      const { reported, scans } = worldOf(250)
      expect(
        yield* reported([
          [1_001, 5],
          [1_002, 20],
          [1_003, 51],
          [1_004, 20],
          [1_724, 5]
        ])
      ).toEqual([5, 0, 51, 0, 5])
      expect(scans).toEqual([1_001, 1_003, 1_724])
    })
  )

  it.effect("does not retry a failed ledger scan on each ledger", () =>
    Effect.gen(function* () {
      const { reported, scans } = worldOf(undefined)
      expect(
        yield* reported([
          [1_001, 5],
          [1_002, 5],
          [1_003, 5]
        ])
      ).toEqual([0, 0, 0])
      expect(scans).toEqual([1_001])
    })
  )
})
