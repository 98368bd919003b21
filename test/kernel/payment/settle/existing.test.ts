// The answer for a settled payment after another request received the success: the transaction that settled it.
import { Option } from "effect"
import { expect, it } from "vitest"
import type { Payment } from "../../../../kernel/payment/Payment.ts"
import { existingFrom } from "../../../../kernel/payment/settle/existing.ts"
import type { SettlementRecord } from "../../../../kernel/settlement/store/Settlements.ts"

const payment = { principal: { owner: "key:a" }, fingerprint: "f", identifier: Option.none() } as unknown as Payment
const record = {
  principal: "key:a",
  fingerprint: "f",
  state: "settled",
  delivery: "undelivered",
  payer: "payer",
  innerHash: "built first",
  transaction: Option.some("paid")
} as unknown as SettlementRecord

it("pending names the transaction that paid, where its own did not", () => {
  expect(existingFrom(payment, [record])).toMatchObject({
    _tag: "Undelivered",
    otherwise: { _tag: "Pending", transaction: "paid" }
  })
})
