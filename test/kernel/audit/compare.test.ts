// Compares a settlement's recorded amount with its transaction, over handmade books: all, a part and nothing of the
// signed amount.
import { describe, expect, it } from "vitest"
import type { Claims } from "../../../kernel/audit/auditRows.ts"
import { harmlessAfterRestore, isHarmlessAfterRestore } from "../../support/harmlessAfterRestore.ts"
import { readFileSync } from "node:fs"
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

/**
 * Books after a restore: the settlement's own record has `aa`, and the ledger executed `cc`, but the record of `cc` was
 * lost.
 */
const lostRulesOf = (
  change: { readonly charged?: bigint; readonly moved?: bigint; readonly own?: boolean; readonly endedBy?: string } = {}
) => {
  const { charged = 100n, endedBy = "cc", moved = 5n, own = false } = change
  const claims = {
    settlements: [
      {
        id: "one",
        state: "settled",
        payer,
        payTo,
        asset,
        amount: "5",
        moved: "5",
        inner_hash: "aa",
        ended_by: endedBy,
        sponsor,
        channel,
        channel_sequence: 9n,
        recorded_ledger: 12n,
        ledger: 11n,
        fee_charged_stroops: charged,
        budget_day: "2026-01-01",
        budget_stroops: 1_000n,
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
  const lost = {
    ledger: 11,
    innerHash: "cc",
    outerHash: "dd",
    source: "GANOTHER",
    feeSource: sponsor,
    sequence: 7n,
    succeeded: true,
    feeChargedStroops: 100n,
    transfers: [{ contract: asset, from: payer, to: payTo, amount: moved }]
  }
  const failed = { ...lost, ledger: 13, innerHash: "aa", outerHash: "bb", source: channel, sequence: 9n }
  const entries = own ? [lost, { ...failed, succeeded: false, feeChargedStroops: 30n, transfers: [] }] : [lost]
  const report = compare(claims, {
    fromLedger: 1,
    toLedger: 20,
    entries,
    sequences: new Map()
  } as unknown as LedgerView)
  return [report.endedByLost, ...report.mismatches.map(({ rule }) => rule)]
}

describe("the auditor", () => {
  it("the auditor checks and accepts a settlement ended by an unrecorded transaction", () => {
    expect(lostRulesOf()).toEqual([1])
    expect(lostRulesOf({ charged: 1_100n })).toEqual([1])
    expect(lostRulesOf({ own: true, charged: 130n })).toEqual([1])
    expect(lostRulesOf({ charged: 90n })).toEqual([1, "fee"])
    expect(lostRulesOf({ own: true })).toEqual([1, "fee"])
    expect(lostRulesOf({ moved: 4n })).toEqual([1, "movement"])
    // A transaction that no record mentions is still one without a record.
    expect(lostRulesOf({ endedBy: "ee" })).toEqual([0, "recorded before sent", "has the ledger's word"])
  })

  it("the runbook explains each auditor finding after a restore", () => {
    const runbook = readFileSync(new URL("../../../examples/guides/runbook.md", import.meta.url), "utf8")
    const rows = [...runbook.matchAll(/^\| `([a-z ]+)` \| (.*) \|$/gmu)].map(([, rule, why]) => [rule, why])
    expect(rows.filter(([rule]) => isHarmlessAfterRestore(rule!))).toEqual(Object.entries(harmlessAfterRestore))
  })

  it("the auditor accepts matching transfers, and none where nothing moved", () => {
    expect(rulesOf("5", [5n])).toEqual([])
    expect(rulesOf("0", [])).toEqual([])
  })

  it("the auditor reports unclaimed, missing and duplicate transfers", () => {
    expect(rulesOf("0", [5n])).toEqual(["one movement"])
    expect(rulesOf("5", [])).toEqual(["movement", "one movement"])
    expect(rulesOf("5", [5n, 5n])).toEqual(["one movement"])
    expect(rulesOf("4", [5n])).toEqual(["movement"])
  })
})
