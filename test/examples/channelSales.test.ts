// Sales by payment channels: a channel's next voucher may be for a total that an earlier one had.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { jsonWork } from "../../examples/seller-http.ts"
import { memoryStore, soldOnce } from "../../examples/seller/soldOnce.mjs"

/** Sales by one channel: its server charges what a voucher's base allows. `at`: the pages that were computed. */
const makeChannelSales = () => {
  const { sell } = soldOnce({ store: memoryStore() })
  const terms = { scheme: "batch-settlement", network: "stellar:testnet" }
  const channel: { total: bigint; refuses: string | undefined } = { total: 0n, refuses: undefined }
  const at: Array<string> = []
  const client = {
    verify: async ({ payload }: any, { amount }: any) =>
      BigInt(payload.voucher.maxClaimableAmount) === channel.total + BigInt(amount)
        ? { isValid: true }
        : { isValid: false, invalidReason: "invalid_cumulative_amount_mismatch" },
    settle: async (_: any, { amount, network }: any) => {
      if (channel.refuses !== undefined)
        return { success: false, errorReason: channel.refuses, transaction: "", network }
      channel.total += BigInt(amount)
      const channelState = { chargedCumulativeAmount: String(channel.total) }
      return { success: true, transaction: "", network, extra: { chargedAmount: amount, channelState } }
    }
  }
  const sold = (
    { max, more, price }: { max: string; price: string; more?: string },
    request: string,
    work: () => string
  ) => {
    const requirements = { ...terms, amount: price }
    const voucher = { channelId: "ab".repeat(32), maxClaimableAmount: max, signature: max }
    const payment = { accepted: requirements, payload: { type: "voucher", voucher, more } }
    const made = () => {
      const amount = work()
      at.push(request)
      return { ...jsonWork({ request }), amount }
    }
    return Effect.tryPromise(() => sell({ client, payment, requirements, request, work: made }))
  }
  return { at, channel, sold }
}

describe("a sale by a channel", () => {
  it.live("sells a channel's total again after a sale that charged less", () =>
    Effect.gen(function* () {
      const { at, channel, sold } = makeChannelSales()
      // Two prices of one seller: 40 of 100 are charged, so the voucher for the page of 60 is for 100 again.
      expect((yield* sold({ max: "100", price: "100" }, "/a", () => "40")).released).toBe(true)
      expect((yield* sold({ max: "100", price: "60" }, "/b", () => "60")).released).toBe(true)
      expect(yield* sold({ max: "100", price: "60" }, "/c", () => "60")).toMatchObject({ state: "refused" })
      expect([channel.total, at]).toEqual([100n, ["/a", "/b"]])
    })
  )

  it.live("sells a channel's total again after a sale that ended uncharged", () =>
    Effect.gen(function* () {
      const { at, channel, sold } = makeChannelSales()
      const voucher = { max: "100", price: "100" }
      const failing = () => {
        throw new Error("the work failed")
      }
      expect((yield* Effect.exit(sold(voucher, "/fails", failing)))._tag).toBe("Failure")
      // A deposit whose transaction expired: the next one is for the same total.
      channel.refuses = "settle_ledger_transaction_expired"
      expect(yield* sold(voucher, "/a", () => "100")).toMatchObject({ state: "refused", reason: channel.refuses })
      channel.refuses = undefined
      const again = { ...voucher, more: "another deposit" }
      expect((yield* sold(again, "/a", () => "100")).released).toBe(true)
      expect((yield* sold(again, "/a", () => "100")).released).toBe(true)
      expect(yield* sold(voucher, "/b", () => "100")).toMatchObject({ released: false, state: "refused" })
      expect([channel.total, at]).toEqual([100n, ["/a", "/a"]])
    })
  )
})
