// The evidence of a second endpoint's nonce or transaction about an outcome.
import { describe, expect, it } from "vitest"
import { verdictByNonce, verdictByTransaction } from "../../../../kernel/settlement/follower/confirmOutcomes.ts"
import type { Outcome } from "../../../../kernel/settlement/state/Settlement.ts"
import { executed } from "../lives.ts"

const claim = (outcome: Partial<Outcome>) => ({
  authorizationExpiresLedger: 20,
  innerHash: "t",
  outcome: {
    state: "settled",
    transaction: "t",
    ledger: 10,
    reason: undefined,
    channel: undefined,
    ...outcome
  } as const
})
const settled = claim({})
const failed = claim({
  state: "failed",
  reason: "settle_ledger_transaction_failed",
  channel: { sequenceUsed: true, ledger: 10 }
})
const cancelled = claim({ ...failed.outcome, transaction: "no-op" })
const spent = claim({
  state: "failed",
  reason: "settle_ledger_authorization_spent",
  channel: { sequenceUsed: true, ledger: 10 }
})

describe("a second endpoint's nonce", () => {
  it.each([
    ["settled, used in that ledger, perhaps by another transaction", settled, 10, 12, "Unknown"],
    ["settled, used in another ledger", settled, 9, 12, "Contradicts"],
    ["settled, unspent at that ledger", settled, "unspent", 10, "Contradicts"],
    ["settled, unspent before that ledger", settled, "unspent", 9, "Behind"],
    ["failed, unspent at that ledger", failed, "unspent", 10, "Agrees"],
    ["failed, used before", failed, 10, 12, "Contradicts"],
    ["failed, used later", failed, 11, 12, "Behind"],
    ["failed, unspent before that ledger", failed, "unspent", 9, "Behind"],
    ["spent, used", spent, 8, 12, "Agrees"],
    ["spent, unspent", spent, "unspent", 12, "Contradicts"],
    ["failed, the entry may have expired", failed, "unspent", 21, "Unknown"],
    ["failed, another authorization used it after the expiry", failed, 22, 23, "Unknown"]
  ] as const)("decides: %s", (_, about, nonce, latestLedger, verdict) => {
    expect(verdictByNonce(about, { nonce }, latestLedger)).toBe(verdict)
  })
})

describe("a second endpoint's transaction", () => {
  const absent = (latestLedger: number, oldestLedger = 1) => ({ _tag: "NotFound", latestLedger, oldestLedger }) as const
  const included = (succeeded: boolean, ledger = 10) =>
    ({ _tag: "Included", latestLedger: 12, executed: executed({ ledger, succeeded }) }) as const

  it.each([
    ["settled, included", settled, included(true), "Agrees"],
    ["settled, failed there", settled, included(false), "Contradicts"],
    ["settled, in another ledger", settled, included(true, 9), "Contradicts"],
    ["settled, absent from its history", settled, absent(23), "Contradicts"],
    ["settled, perhaps not in its index yet", settled, absent(22), "Behind"],
    ["settled, before its history", settled, absent(30, 11), "Unknown"],
    ["failed, succeeded there", failed, included(true), "Contradicts"],
    ["failed by our no-op, which succeeded", cancelled, included(true), "Agrees"],
    ["failed, absent", failed, absent(11), "Agrees"]
  ] as const)("decides: %s", (_, about, answer, verdict) => {
    expect(verdictByTransaction(about, answer)).toBe(verdict)
  })
})
