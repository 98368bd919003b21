// A channel's terms and totals as a seller sends them: a wrong one never raises what is charged.
import { Keypair } from "@stellar/stellar-sdk"
import { expect, it } from "vitest"
import {
  answeredTotal,
  depositFor,
  depositOf,
  isEarlier,
  readCorrection
} from "../../../plugins/mcp-tools-pay/channel/channelTerms.ts"
import type { Challenge, Fields, PaymentOption } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"
import { contradictions, fittings } from "../../examples/answeredTotals.ts"

const batch = { contract: "C", depositMax: 100n, depositCalls: 5, withdrawDelayMax: 3_600, refundIdleMillis: 1 }
const authorizer = Keypair.random().publicKey()
const channelId = "aa"

it("deposits several calls, at least the minimum, at most the bound", () => {
  const deposit = (amount: bigint, depositMin: bigint) => depositFor({ amount }, { depositMin }, batch)
  expect([deposit(10n, 0n), deposit(10n, 60n), deposit(10n, 50n)]).toEqual([50n, 60n, 50n])
  expect([deposit(20n, 0n), deposit(21n, 0n), deposit(30n, 99n)]).toEqual([100n, 100n, 100n])
})

it("knows the deposit of a channel that the operator allows, and of no other", () => {
  const extra = { batchContract: "C", receiverAuthorizer: authorizer, withdrawDelay: 900 }
  const option = (changes: object = {}, more: object = {}) =>
    ({
      scheme: "batch-settlement",
      amount: 10n,
      sent: { extra: { ...extra, ...more } },
      ...changes
    }) as unknown as PaymentOption
  expect(depositOf(option(), batch)).toEqual({ amount: 50n, price: 10n, contract: "C", withdrawDelaySeconds: 900 })
  expect(depositOf(option({}, { minDeposit: "100" }), batch)?.amount).toBe(100n)
  expect(depositOf(option({}, { withdrawDelay: 3_600 }), batch)?.withdrawDelaySeconds).toBe(3_600)
  for (const refused of [
    option({ scheme: "exact" }),
    option({ amount: 101n }),
    option({ sent: {} }),
    option({}, { minDeposit: "101" }),
    option({}, { withdrawDelay: 3_601 }),
    option({}, { withdrawDelay: 900.5 })
  ])
    expect(depositOf(refused, batch)).toBeUndefined()
  expect(depositOf(option({ amount: 100n }), batch)?.amount).toBe(100n)
  expect(depositOf(option(), undefined)).toBeUndefined()
})

it("an open voucher proves no total, an earlier or later one does", () => {
  const earlier = (signedMax: bigint) =>
    isEarlier({ signedMax, charged: 0n, signature: "" }, { counted: 20n, sent: 40n } as never)
  expect([20n, 21n, 40n, 41n].map(earlier)).toEqual([true, false, false, true])
})

it("reads the same totals and contradictions as our other clients", () => {
  const read = (extra: object) => answeredTotal({ channelId: "ab", max: 400n, price: 100n }, extra as Fields)
  for (const [extra, total] of fittings) expect(read(extra)).toBe(total)
  for (const [extra, reason] of contradictions) expect(read(extra)).toMatch(reason)
  // Without a charge, any total up to the voucher and from the one before on.
  for (const total of ["300", "400"])
    expect(read({ channelState: { chargedCumulativeAmount: total } })).toBe(BigInt(total))
  expect(read({ chargedAmount: "much" })).toBe("it charges no amount for a price of 100")
  expect(read({ channelState: "340" })).toBe(400n)
})

it("reads a correction of this channel whose total its voucher covers", () => {
  const signature = "0f".repeat(64)
  const extra = {
    channelState: { channelId, chargedCumulativeAmount: "20" },
    voucherState: { signedMaxClaimable: "20", signature }
  }
  const read = (...extras: ReadonlyArray<unknown>) =>
    readCorrection({ options: extras.map((extra) => ({ sent: { extra } })) } as unknown as Challenge, channelId)
  const found = { charged: 20n, signedMax: 20n, signature }
  expect(read(extra)).toEqual(found)
  const wrong = [
    undefined,
    { ...extra, voucherState: undefined },
    { ...extra, channelState: undefined },
    { ...extra, channelState: { ...extra.channelState, channelId: "bb" } },
    { ...extra, channelState: { ...extra.channelState, chargedCumulativeAmount: "21" } },
    { ...extra, channelState: { ...extra.channelState, chargedCumulativeAmount: 20 } },
    { ...extra, voucherState: { ...extra.voucherState, signedMaxClaimable: "-1" } },
    // Its digest, and so its signature, are those of a voucher for 20.
    { ...extra, voucherState: { ...extra.voucherState, signedMaxClaimable: String((1n << 128n) + 20n) } },
    { ...extra, voucherState: { ...extra.voucherState, signature: signature.slice(2) } },
    { ...extra, voucherState: { ...extra.voucherState, signature: 7 } }
  ]
  for (const one of wrong) expect(read(one)).toBeUndefined()
  expect(read(...wrong, extra)).toEqual(found)
  expect([readCorrection(undefined, channelId), read()]).toEqual([undefined, undefined])
})
