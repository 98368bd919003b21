import { Keypair } from "@stellar/stellar-sdk"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { claimsMax, decodePayload } from "../../../plugins/x402-batch/BatchWire.ts"
import { type Batch, makeBatch } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"

const batch: Batch = makeBatch(() => Promise.resolve({ sequence: 10 }), testnetUsdc)
const channel = batch.channel(Keypair.random(), Keypair.random().publicKey(), Keypair.random())
const claim = batch.claim([{ channel, max: 5n, total: 4n }])

const decoded = (payload: object) => {
  const read = decodePayload(payload as Readonly<Record<string, unknown>>)
  return Result.isSuccess(read) ? read.success._tag : read.failure.word
}

describe("the payload of batch-settlement", () => {
  it("is of its type", async () => {
    const refund = batch.refund(channel, 5n, 3n, 0n)
    expect(decoded(batch.pay(channel, 5n))).toBe("Voucher")
    expect(decoded({ ...batch.pay(channel, 5n), type: "refund" })).toBe("Voucher")
    expect(decoded(await batch.deposit(channel, 7n, 5n))).toBe("Deposit")
    expect(decoded(claim)).toBe("Claim")
    expect(decoded(batch.settle(channel.config.receiver))).toBe("Settle")
    expect(decoded(refund)).toBe("Refund")
    expect(decoded(await batch.withdraw(channel, "Start"))).toBe("Withdraw")
  })

  it("has every member in its one form", async () => {
    const pay = batch.pay(channel, 5n)
    const deposit = await batch.deposit(channel, 7n, 5n)
    const voucher = (changes: object) => ({ ...pay, voucher: { ...pay.voucher, ...changes } })
    const wrong: ReadonlyArray<readonly [object, string]> = [
      [{}, "payload_type"],
      [{ ...pay, type: "vouchers" }, "payload_type"],
      [{ ...pay, channelConfig: undefined }, "payload_type"],
      [{ ...pay, channelConfig: { ...channel.config, salt: "0x" } }, "payload_type"],
      [voucher({ channelId: `0x${channel.channelId}` }), "channel_id_invalid"],
      [voucher({ maxClaimableAmount: 5 }), "payload_type"],
      [voucher({ maxClaimableAmount: "05" }), "payload_type"],
      [voucher({ maxClaimableAmount: "-1" }), "payload_type"],
      [voucher({ maxClaimableAmount: "1".repeat(40) }), "payload_type"],
      [voucher({ signature: pay.voucher.signature.toUpperCase() }), "payload_type"],
      [{ ...deposit, deposit: { ...deposit.deposit, amount: "1.0" } }, "payload_type"],
      [{ ...deposit, deposit: { ...deposit.deposit, authorization: { transaction: "AAAA" } } }, "payload_type"],
      [{ ...claim, claims: [] }, "payload_type"],
      [{ ...claim, claims: [{ ...claim.claims[0], totalClaimed: "x" }] }, "payload_type"],
      [{ ...claim, claims: Array.from({ length: claimsMax + 1 }, () => claim.claims[0]) }, "too_many_claims"],
      [{ ...batch.refund(channel, 5n, 3n, 0n), refundNonce: "18446744073709551616" }, "refund_payload"]
    ]
    for (const [payload, word] of wrong) expect([decoded(payload), payload]).toEqual([word, payload])
  })
})
