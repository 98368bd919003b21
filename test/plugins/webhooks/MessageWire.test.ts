// A message describes its own event, even if the settlement has changed since.
import { Option } from "effect"
import { describe, expect, it } from "vitest"
import { encodeBody } from "../../../plugins/webhooks/MessageWire.ts"
import type { SettlementRecord } from "../../../kernel/settlement/store/Settlements.ts"

const inner = "a".repeat(64)
const other = "b".repeat(64)
const spent = "settle_ledger_authorization_spent"
const failure = "settle_ledger_transaction_failed"
const at = new Date(5_000)

/** A failed settlement after a later use of its authorization. */
const corrected = (state: "settled" | "failed"): SettlementRecord => ({
  id: "8f0c2a3e-0000-4000-8000-000000000001",
  network: "ledger:testnet",
  scheme: "exact",
  authorizationKey: "key",
  authorizationExpiresLedger: 90,
  fingerprint: "f",
  principal: "shop",
  identifier: Option.none(),
  payer: "payer",
  payTo: "shop",
  asset: "asset",
  amount: 10_000n,
  innerHash: inner,
  transaction: Option.some(state === "settled" ? other : inner),
  channel: "channel",
  state,
  recordedAt: new Date(1_000),
  deadlineAt: new Date(26_000),
  resolvedAt: Option.some(new Date(9_000)),
  ledger: state === "settled" ? Option.some(77) : Option.none(),
  amountTransferred: state === "settled" ? Option.some(10_000n) : Option.none(),
  feeChargedStroops: Option.some(200n),
  reason: state === "settled" ? Option.none() : Option.some(spent),
  reasonMessage:
    state === "settled" ? Option.none() : Option.some(`the authorization was used in transaction ${other}`),
  confirmations: 2,
  delivery: "undelivered"
})

const dataOf = (type: string, record: SettlementRecord, reason?: string | null) =>
  JSON.parse(encodeBody({ type, at, ...(reason === undefined ? {} : { reason }) }, record, "ledger")).data

describe("the message of a failure that was corrected since", () => {
  it.each(["settled", "failed"] as const)("says that it failed when it is %s", (state) => {
    const data = dataOf("settlement.failed", corrected(state), failure)
    expect(data).toMatchObject({
      status: "failed",
      transaction: inner,
      errorReason: failure,
      authorizationLivesUntilLedger: 90,
      feeStroops: "200",
      resolvedAt: at.toISOString()
    })
    expect(data).not.toHaveProperty("ledger")
    expect(data).not.toHaveProperty("spentBy")
  })

  it("names no reason without the fact", () => {
    const data = dataOf("settlement.failed", corrected("settled"))
    expect(data).toMatchObject({ status: "failed", transaction: inner })
    expect(data).not.toHaveProperty("errorReason")
  })
})

describe("the message of an end", () => {
  it("is the settlement as it is", () => {
    expect(dataOf("settlement.settled", corrected("settled"), null)).toMatchObject({
      status: "success",
      transaction: other
    })
    expect(dataOf("settlement.spent", corrected("failed"), spent)).toMatchObject({ spentBy: other })
    expect(dataOf("settlement.failed", corrected("failed"), spent)).toMatchObject({
      errorReason: spent,
      spentBy: other
    })
  })
})
