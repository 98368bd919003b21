// What a settlement says it moved against what its transaction shows, over books made by hand: the whole, a part and
// nothing of what was signed.
import { describe, expect, it } from "vitest"
import type { Claims } from "../../../kernel/audit/auditRows.ts"
import { compare } from "../../../kernel/audit/compare.ts"
import type { LedgerView } from "../../../kernel/audit/readLedger.ts"

const [asset, payer, payTo, sponsor, channel] = ["CASSET", "GPAYER", "GPAYTO", "GSPONSOR", "GCHANNEL"]

/** Books with one settlement that claims `moved`, and a ledger that shows transfers of these amounts. */
const rulesOf = (moved: string, transfers: ReadonlyArray<bigint>): ReadonlyArray<string> => {
  const claims = {
    settlements: [
      {
        id: "one",
        state: "settled",
        payer,
        payTo,
        asset,
        amount: "5",
        moved,
        inner_hash: "aa",
        sponsor,
        channel,
        channel_sequence: 7n,
        recorded_ledger: 10n,
        ledger: 11n,
        fee_charged_stroops: 100n,
        budget_day: "2026-01-01",
        budget_stroops: 100n,
        principal: "ip:test"
      }
    ],
    attempts: [{ settlement: "one", kind: "payment", inner_hash: "aa", outer_hash: "bb" }],
    sponsorTransactions: [],
    channels: [],
    budgets: [],
    totals: [],
    facts: [{ subject: "one", types: ["settlement.recorded", "settlement.settled"] }]
  } as unknown as Claims
  const entry = {
    ledger: 11,
    innerHash: "aa",
    outerHash: "bb",
    source: channel,
    feeSource: sponsor,
    sequence: 7n,
    succeeded: true,
    feeChargedStroops: 100n,
    transfers: transfers.map((amount) => ({ contract: asset, from: payer, to: payTo, amount }))
  }
  const view = { fromLedger: 1, toLedger: 20, entries: [entry], sequences: new Map() } as unknown as LedgerView
  return compare(claims, view).mismatches.map(({ rule }) => rule)
}

describe("the auditor", () => {
  it("agrees with one transfer of what was moved, and with none where nothing was", () => {
    expect(rulesOf("5", [5n])).toEqual([])
    expect(rulesOf("0", [])).toEqual([])
  })

  it("finds a transfer where nothing is claimed, none where something is, and two for one", () => {
    expect(rulesOf("0", [5n])).toEqual(["one movement"])
    expect(rulesOf("5", [])).toEqual(["movement", "one movement"])
    expect(rulesOf("5", [5n, 5n])).toEqual(["one movement"])
    expect(rulesOf("4", [5n])).toEqual(["movement"])
  })
})
