// The report of a payment, state by state: no line may claim that money is lost, or may be paid again, before the
// ledger has proved it.
import { expect, it } from "@effect/vitest"
import { Option } from "effect"
import type { SettlementHistory } from "../../../kernel/settlement/operators/OperatorReports.ts"
import type { SettlementRecord } from "../../../kernel/settlement/store/Settlements.ts"
import { linesOf, storyOf } from "../../../runtime/commands/settlementStory.ts"

const record: SettlementRecord = {
  id: "00000000-0000-4000-a000-000000000001",
  network: "ledger:testnet",
  scheme: "exact",
  authorizationKey: "secret-of-the-scheme",
  authorizationExpiresLedger: 1_012,
  fingerprint: "f".repeat(64),
  principal: "key:shop",
  identifier: Option.none(),
  payer: "PAYER",
  payTo: "SELLER",
  asset: "USDC-CONTRACT",
  amount: 12_345n,
  innerHash: "a".repeat(64),
  transaction: Option.some("a".repeat(64)),
  channel: "CHANNEL",
  state: "submitted",
  recordedAt: new Date("2026-01-01T00:00:00Z"),
  deadlineAt: new Date("2026-01-01T00:00:25Z"),
  resolvedAt: Option.none(),
  ledger: Option.none(),
  amountTransferred: Option.none(),
  feeChargedStroops: Option.none(),
  reason: Option.none(),
  reasonMessage: Option.none(),
  delivery: "undelivered",
  traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`
}

const life: SettlementHistory = {
  record,
  askedAt: new Date("2025-12-31T23:59:58.000Z"),
  verifiedAt: new Date("2025-12-31T23:59:59.000Z"),
  leasedAt: new Date("2025-12-31T23:59:59.500Z"),
  resourceUrl: "https://shop.example/report",
  recordedLedger: 1_000n,
  closedAt: null,
  deliveredAt: null,
  reservedStroops: 50_000n,
  budgetDay: "2026-01-01",
  budgetPrincipal: "key:shop",
  channelSequence: 77n,
  attempts: [
    {
      number: 1,
      kind: "payment",
      outerHash: "b".repeat(64),
      inclusionStroops: 200n,
      recordedLedger: 1_000n,
      sentStatus: "Error",
      sentLedger: 1_001n,
      sentCode: "txINSUFFICIENT_FEE",
      taken: false,
      recordedAt: null,
      sentAt: null
    },
    {
      number: 2,
      kind: "payment",
      outerHash: "c".repeat(64),
      inclusionStroops: 2_000n,
      recordedLedger: 1_001n,
      sentStatus: "Lost",
      sentLedger: 1_001n,
      sentCode: null,
      taken: true,
      recordedAt: null,
      sentAt: null
    }
  ]
}

const around = {
  assets: new Map([["USDC-CONTRACT", { symbol: "USDC", decimals: 7 } as never]]),
  newestLedger: 1_004,
  now: new Date("2026-01-01T00:01:00Z")
}

const reported = (changes: Partial<SettlementRecord>, others: Partial<SettlementHistory> = {}) =>
  linesOf(storyOf({ ...life, ...others, record: { ...record, ...changes } }, around)).join("\n")

it("lists an open payment's steps and bids, and forbids paying again", () => {
  const text = reported({})
  expect(text).toContain("12345 of USDC-CONTRACT (0.0012345 USDC) from PAYER to SELLER for https://shop.example/report")
  expect(text).toContain(`trace ${"1".repeat(32)}`)
  expect(text).toContain("2025-12-31T23:59:59.000Z, verified again")
  expect(text).toContain("2025-12-31T23:59:59.500Z, channel CHANNEL, its number 77")
  expect(reported({}, { leasedAt: null })).toMatch(/lease {5}channel CHANNEL, its number 77/)
  expect(text).toContain("50000 stroops reserved of the budget of key:shop for 2026-01-01")
  expect(text).toMatch(
    /1: the payment, bid 200 stroops.*sent by ledger 1001: refused by the node.*\(txINSUFFICIENT_FEE\)/
  )
  expect(text).toMatch(/2: the payment at another bid, bid 2000 stroops.*no answer came, so it counts as sent/)
  expect(text).toContain("the caller receives pending, with the hash, on every request; never that it failed")
  expect(text).toContain("lives until ledger 1012, 8 from now")
  expect(text).toContain("is never paid twice")
  expect(text).toContain(`settlements give-up ${record.id}`)
  expect(text).not.toContain("secret-of-the-scheme")
  expect(reported({}, { attempts: [{ ...life.attempts[0]!, sentStatus: null, sentLedger: null }] })).toContain(
    "not sent yet"
  )
})

it("shows the answer of a settled payment, by its delivery", () => {
  const settled = {
    state: "settled",
    ledger: Option.some(1_003),
    moved: Option.some(12_345n),
    feeChargedStroops: Option.some(12_000n)
  } as const
  expect(reported(settled)).toContain("the success has not been fetched yet")
  const deliveredAt = new Date("2026-01-01T00:00:09Z")
  const given = reported(settled, { deliveredAt })
  expect(given).toContain(
    "settled in ledger 1003; 12345 of USDC-CONTRACT (0.0012345 USDC) moved; 12000 stroops charged"
  )
  expect(given).toMatch(/delivered at 2026-01-01T00:00:09\.000Z; the same settle now receives settle_ledger_already/)
  const keyed = { ...settled, delivery: "confirmed", deliveredKey: "digest" } as const
  expect(reported(keyed, { deliveredAt })).toContain("it again with the same Idempotency-Key")
  expect(reported({ ...settled, delivery: "given" })).toContain("a process is sending the success")
  expect(given).toMatch(/open {6}nothing$/m)
})

it("shows how long a failed payment's authorization lives, and an expired one", () => {
  const failed = { state: "failed", reason: Option.some("settle_ledger_transaction_failed") } as const
  expect(reported(failed)).toMatch(/failed \(settle_ledger_transaction_failed\); no money moved/)
  expect(reported(failed)).toContain("nothing here; the authorization lives until ledger 1012, 8 from now")
  const expired = reported({ state: "expired", reason: Option.some("settle_ledger_transaction_expired") })
  expect(expired).toContain("the authorization has expired and no money moved")
  expect(expired).toContain("the payer may safely sign a new payment")
})

it("claims of an authorization that another transaction used neither that nothing moved nor that it lives", () => {
  const spent = reported({
    state: "failed",
    reason: Option.some("settle_ledger_authorization_spent"),
    reasonMessage: Option.some("the authorization was used in transaction ab")
  })
  expect(spent).toContain("failed (settle_ledger_authorization_spent): the authorization was used in transaction ab")
  expect(spent).not.toMatch(/no money moved|lives until/)
})

it("refers an unresolved payment to the operator, with the ending command", () => {
  const text = reported({ state: "unresolved" })
  expect(text).toContain("whether it landed")
  expect(text).toContain(`settlements resolve ${record.id} --reason WHY --as settled --ledger N --fee-stroops N`)
  expect(text).not.toMatch(/no money moved|without any risk/)
})
