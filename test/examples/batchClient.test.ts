// A seller's answer to a voucher must fit the voucher: the price is the most that it charges, and its total is the
// voucher's base and the charge. Otherwise the buyers keep their record and sign nothing more in the channel.
import { Keypair } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { BatchStellarClient, memoryClientStorage } from "../../examples/batch/BatchStellarClient.ts"
import { answeredTotal, makeBatchPayload, noteCharged } from "../../examples/client/preparedBatch.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { isVoucherOf, placeOf, signerOf, signVoucher } from "../../examples/batch/vouchers.ts"
import { contradictions, fittings } from "./answeredTotals.ts"

const keys = { payTo: Keypair.random().publicKey(), receiverAuthorizer: Keypair.random().publicKey() }
const terms = {
  scheme: "batch-settlement",
  network: "stellar:testnet",
  asset: testnetUsdc,
  amount: "100",
  payTo: keys.payTo,
  maxTimeoutSeconds: 60,
  extra: { receiverAuthorizer: keys.receiverAuthorizer, withdrawDelay: 900, batchContract: testnetUsdc }
}
const secret = Keypair.random().secret()
const sent = { channelId: "ab", max: 400n, price: 100n }

/** The same members with the real channel's id. */
const of = (extra: any, channelId: string): any => {
  const { channelState } = extra
  return channelState?.channelId === "ab" ? { ...extra, channelState: { ...channelState, channelId } } : extra
}

it("proves no total above the ledger's largest amount by a smaller voucher", () => {
  const [signer, place, channelId] = [signerOf(secret), placeOf(terms.network, testnetUsdc), "ab".repeat(32)]
  const voucher = signVoucher(signer, place, channelId, 400n)
  const proves = (max: bigint) => isVoucherOf(signer.address, place, { ...voucher, maxClaimableAmount: String(max) })
  // The bytes of an i128 end alike.
  expect([400n, 401n, (1n << 128n) + 400n].map(proves)).toEqual([true, false, false])
  expect(() => signVoucher(signer, place, channelId, (1n << 128n) + 400n)).toThrow(/exceeds/)
})

/** The buyer on the official client, and the buyer without an SDK, each with 300 charged of 1,000. */
const buyers = {
  BatchStellarClient: async () => {
    const storage = memoryClientStorage()
    const client = new BatchStellarClient({ secret, rpcUrl: "http://127.0.0.1:9", storage })
    const channelId = client.channelIdOf(terms)
    await storage.set(channelId, { charged: "300", balance: "1000" })
    return {
      channelId,
      pay: async () => (await client.createPaymentPayload(2, terms)).payload,
      answer: (payload: any, extra: unknown) =>
        client.schemeHooks.onPaymentResponse({
          paymentPayload: { payload },
          requirements: terms,
          settleResponse: { success: true, extra }
        }),
      known: async () => (await storage.get(channelId))!,
      goOn: () => client.goOn(terms)
    }
  },
  preparedBatch: async () => {
    const channels = new Map<string, any>()
    const options = { secret, batch: { contracts: [testnetUsdc], channels } }
    const channelId = new BatchStellarClient({ secret, rpcUrl: "http://127.0.0.1:9" }).channelIdOf(terms)
    channels.set(channelId, { charged: 300n, balance: 1_000n })
    return {
      channelId,
      pay: (): Promise<any> =>
        makeBatchPayload(terms, options as never, () => Promise.reject(new Error("it asks for a deposit"))),
      answer: async (payload: any, extra: unknown) => noteCharged(terms, options as never, payload, { extra }),
      known: async () => channels.get(channelId),
      goOn: async () => {
        const { disputed: _, ...known } = channels.get(channelId)
        channels.set(channelId, known)
      }
    }
  }
}

describe("a seller's answer to a voucher", () => {
  it("has a total that fits the voucher, or names what contradicts it", () => {
    for (const [extra, total] of fittings) expect([extra, answeredTotal(sent, extra)]).toEqual([extra, total])
    for (const [extra, why] of contradictions) expect(answeredTotal(sent, extra)).toMatch(why)
  })

  it.each(["BatchStellarClient", "preparedBatch"] as const)("stops a buyer that it contradicts: %s", async (name) => {
    for (const [extra] of contradictions) {
      const { answer, channelId, goOn, known, pay } = await buyers[name]()
      const payload = await pay()
      expect(payload).toMatchObject({ type: "voucher", voucher: { channelId, maxClaimableAmount: "400" } })
      await answer(payload, of(extra, channelId))
      const { balance, charged, signed } = await known()
      expect([charged, balance, signed].map(String)).toEqual(["300", "1000", "400"])
      await expect(pay()).rejects.toThrow(/contradicts the voucher/)
      // Going on signs the same voucher again, for no atom more.
      await goOn()
      expect((await pay()).voucher).toEqual(payload.voucher)
    }
  })

  it.each(["BatchStellarClient", "preparedBatch"] as const)("sets the next base if it fits: %s", async (name) => {
    for (const [extra, total] of fittings) {
      const { answer, channelId, pay } = await buyers[name]()
      await answer(await pay(), of(extra, channelId))
      expect((await pay()).voucher.maxClaimableAmount).toBe(String(total + 100n))
    }
  })
})
