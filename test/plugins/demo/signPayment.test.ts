// Lifetime of the demonstration's payment: as its terms ask, at any ledger speed, and at most the longest life that
// facilitators accept from an honest client.
import { expect, it } from "vitest"
import { latestExpiry } from "../../../kernel/ledger/latestExpiry.ts"
import { ledgersOf } from "../../../plugins/demo/signPayment.ts"

it("a payment lives for its time in ledgers of the measured pace", () => {
  expect([0.2, 1, 1.002, 1.4, 5.2, 60].map((pace) => ledgersOf(300, pace))).toEqual([300, 300, 300, 150, 60, 60])
  for (const fastestSecondsPerLedger of [0.1, 0.2, 1, 1.002, 1.06, 1.4, 2.2, 4.9, 5.3, 60])
    expect([fastestSecondsPerLedger, ledgersOf(300, fastestSecondsPerLedger)]).toEqual([
      fastestSecondsPerLedger,
      expect.toSatisfy((ledgers: number) => ledgers <= latestExpiry({ fastestSecondsPerLedger, sequence: 0 }, 300, 0))
    ])
})
