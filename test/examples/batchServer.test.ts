// The seller's class when its record of channels fails: the official server ignores a hook that throws, so each failure
// has to be an answer.
import { Keypair } from "@stellar/stellar-sdk"
import { createServer } from "node:http"
import { describe, expect, it, vi } from "vitest"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { listen } from "../../examples/seller-http.ts"
import { claimPauseSeconds } from "../../plugins/batch-store/contract.ts"
import { BatchStellarServer } from "../../examples/batch/BatchStellarServer.ts"
import { channelIdIn, placeOf, signerOf, signVoucher } from "../../examples/batch/vouchers.ts"
import { type Channel, channelsOver, memoryStorage, type SellerChannels } from "../../examples/batch/channels.ts"

const channelConfig = {
  payer: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
  payerAuthorizer: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
  receiver: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  receiverAuthorizer: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  token: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  withdrawDelay: 900,
  salt: "00".repeat(32)
}
const voucher = { channelId: "ab".repeat(32), maxClaimableAmount: "100", signature: "cd".repeat(64) }
const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: "0" }
const requirements = { network: "ledger:testnet", amount: "100", maxTimeoutSeconds: 5 }
const word = (reason: string) => `invalid_batch_settlement_ledger_${reason}`

const serverOf = (changes: Partial<SellerChannels> = {}) => {
  const channels = { ...channelsOver(memoryStorage()), ...changes }
  const authorizer = { address: channelConfig.receiverAuthorizer, refund: () => Promise.reject(new Error("no")) }
  const server = new BatchStellarServer({ receiver: channelConfig.receiver, channels, authorizer })
  const request = async (type: string, of = voucher) => {
    const context = { paymentPayload: { payload: { type, channelConfig, voucher: of } }, requirements }
    const result = { isValid: true, extra: state }
    const verified = await server.schemeHooks.onAfterVerify({ ...context, result })
    return { context, verified }
  }
  return { channels, hooks: server.schemeHooks, request }
}
const unreachable = () => Promise.reject(new Error("the store does not answer"))
const get = (channels: SellerChannels) => channels.get(voucher.channelId) as Promise<Channel>

describe("claims of a seller", () => {
  it("rest after a failure by themselves, and cost no request of the others", async () => {
    let requests = 0
    const server = createServer(async (request, response) => {
      let body = ""
      for await (const chunk of request) body += chunk
      requests++
      const answer = body.includes("poisoned")
        ? { success: false, errorReason: word("voucher_signature") }
        : { success: true, transaction: "ff" }
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
    })
    const { close, url } = await listen(server, 0)
    const storage = memoryStorage()
    const { channels } = serverOf(channelsOver(storage))
    for (let at = 0; at < 24; at++) {
      const channelId = at.toString(16).padStart(64, "0")
      const signature = [3, 11, 19].includes(at) ? "poisoned" : "ab".repeat(64)
      const record = { channelId, channelConfig, chargedCumulativeAmount: "5", signedMaxClaimable: "5", signature }
      const ledger = { balance: "9", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
      await storage.updateChannel(channelId, () => ({ ...record, ...ledger, lastRequestTimestamp: 0 }))
    }
    const { receiver, receiverAuthorizer, token } = channelConfig
    const authorizer = { address: receiverAuthorizer, signClaims: () => undefined, refund: unreachable }
    const claiming = new BatchStellarServer({ receiver, channels, authorizer })
    const network = requirements.network
    const claims = new BatchClaims({ server: claiming, facilitator: url, network, token, contract: "C" })
    await expect(claims.claim()).rejects.toThrow(/3 of 24 channels are not claimed/)
    expect(requests).toBeGreaterThan(3)
    requests = 0
    await claims.claim()
    expect(requests).toBe(0)
    const [first] = await channels.list()
    await storage.updateChannel(first!.channelId, (one) => ({ ...one!, chargedCumulativeAmount: "6" }))
    await claims.claim()
    expect(requests).toBe(1)
    vi.useFakeTimers({ now: Date.now() + 61_000, toFake: ["Date"] })
    requests = 0
    await expect(claims.claim()).rejects.toThrow(/3 of 3 channels/)
    vi.useRealTimers()
    expect(requests).toBe(3)
    await close()
  })

  it("repeat a settle by one key, and take another key for the next", async () => {
    const keys: Array<string | undefined> = []
    const server = createServer((request, response) => {
      request.resume()
      keys.push(request.headers["idempotency-key"] as string | undefined)
      // The first answer is lost.
      if (keys.length === 1) return void response.destroy()
      response.writeHead(200, { "content-type": "application/json" })
      return void response.end(JSON.stringify({ success: true, transaction: "ff" }))
    })
    const { close, url } = await listen(server, 0)
    const { receiver, receiverAuthorizer, token } = channelConfig
    const authorizer = { address: receiverAuthorizer, signClaims: () => undefined, refund: unreachable }
    const { channels } = serverOf()
    const seller = new BatchStellarServer({ receiver, channels, authorizer })
    const claims = new BatchClaims({ server: seller, facilitator: url, network: requirements.network, token })
    await claims.settle()
    await claims.settle()
    const [first, repeated, next] = keys
    expect(keys.length).toBe(3)
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(repeated).toBe(first)
    expect(next).not.toBe(first)
    await close()
  })

  it("pause for a tenth of their wait, and shortly while the payer withdraws", () => {
    expect([0, 600, 1_200, 36_000, 99_999].map((waited) => claimPauseSeconds(false, waited))).toEqual([
      60, 60, 120, 3_600, 3_600
    ])
    expect(claimPauseSeconds(true, 99_999)).toBe(60)
  })
})

describe("a seller of batch-settlement", () => {
  it("asks the facilitator where its clock was set back", async () => {
    const payer = signerOf(Keypair.random().secret())
    const contract = channelConfig.token
    const config = { ...channelConfig, payerAuthorizer: payer.address }
    const { network } = requirements
    const channelId = channelIdIn(network, contract, config)
    const signed = signVoucher(payer, placeOf(network, contract), channelId, 100n)
    const storage = memoryStorage()
    const record = { channelId, channelConfig: config, chargedCumulativeAmount: "0", ...state, refundNonce: 0 }
    const read = { signedMaxClaimable: "0", signature: "", lastRequestTimestamp: 0, onchainSyncedAt: Date.now() }
    await storage.updateChannel(channelId, () => ({ ...record, ...read }))
    const { hooks } = serverOf(channelsOver(storage))
    const { receiver: payTo, receiverAuthorizer, token: asset, withdrawDelay } = config
    const extra = { batchContract: contract, receiverAuthorizer, withdrawDelay }
    const context = {
      paymentPayload: { payload: { type: "voucher", channelConfig: config, voucher: signed } },
      requirements: { ...requirements, payTo, asset, extra }
    }
    expect(await hooks.onBeforeVerify(context)).toMatchObject({ skip: true, result: { isValid: true } })
    // The reading is from an hour ahead, and would be used until then.
    vi.useFakeTimers({ now: Date.now() - 3_600_000, toFake: ["Date"] })
    const late = await hooks.onBeforeVerify(context)
    vi.useRealTimers()
    expect(late).toBeUndefined()
  })

  it("answers no voucher that its record does not charge", async () => {
    const { hooks, request } = serverOf({ charge: unreachable })
    const { context } = await request("voucher")
    expect(await hooks.onBeforeSettle(context)).toMatchObject({ abort: true, reason: "settlement_pending" })
    const failing = serverOf({ reserve: unreachable })
    expect((await failing.request("voucher")).verified).toMatchObject({
      abort: true,
      reason: word("verification_state_unavailable")
    })
  })

  it("answers no deposit that its record does not charge, and keeps the channel for as long as it takes", async () => {
    const { channels, hooks, request } = serverOf()
    const { context } = await request("deposit")
    expect((await get(channels)).pendingRequest!.expiresAt).toBeGreaterThan(Date.now() + 50_000)
    await channels.release(voucher.channelId, (await get(channels)).pendingRequest!.pendingId)
    const result: Record<string, unknown> = { success: true, transaction: "ff", extra: { channelState: state } }
    await hooks.onAfterSettle({ ...context, result })
    expect(result).toMatchObject({ success: false, errorReason: word("channel_busy") })
  })

  it("sells nothing below a signed refund until its nonce moved or its time is over", async () => {
    for (const isSettled of [true, false]) {
      const { channels, hooks, request } = serverOf()
      const paid = await request("voucher")
      await hooks.onBeforeSettle(paid.context)
      const { context } = await request("refund")
      const { pendingId } = (await get(channels)).pendingRequest!
      const { expiresAt } = await channels.holdRefund({ channelId: voucher.channelId, pendingId, voucher })
      if (isSettled) await hooks.onAfterSettle({ ...context, result: { success: true, extra: {} } })
      else await hooks.onSettleFailure({ ...context, error: new Error("its outcome is not known") })
      const held = { amount: "900", refundNonce: 0, expiresAt }
      expect(await get(channels)).toMatchObject({ chargedCumulativeAmount: "100", pendingRefund: held })
      expect((await get(channels)).pendingRequest).toBeUndefined()
      const next = { ...voucher, maxClaimableAmount: "200" }
      const asked = { pendingId: "next", channelConfig, voucher: next, price: "100", ttlMillis: 5_000 }
      const reserve = async (changes: object) => {
        const { status } = await channels.reserve({ ...asked, state: { ...state, refundNonce: 0, ...changes } })
        await channels.release(voucher.channelId, "next")
        return status
      }
      expect((await channels.reserve({ ...asked, price: "0", voucher })).status).toBe("busy")
      expect(await reserve({})).toBe("busy")
      expect(await reserve({ asOf: expiresAt })).toBe("busy")
      // A deposit in the same request pays for more.
      expect(await reserve({ balance: "1100" })).toBe("reserved")
      expect(await reserve(isSettled ? { refundNonce: 1, balance: "200" } : { asOf: expiresAt + 1 })).toBe("reserved")
    }
  })

  it("raises a restored record by a voucher that builds on more", async () => {
    const { channels, hooks, request } = serverOf()
    await hooks.onBeforeSettle((await request("voucher")).context)
    const newer = { ...voucher, maxClaimableAmount: "900", signature: "ef".repeat(64) }
    const { context, verified } = await request("voucher", newer)
    expect(verified?.abort).toBeUndefined()
    // Earlier charges can be claimed, even if the request fails.
    const raised = { chargedCumulativeAmount: "800", signedMaxClaimable: "900", signature: newer.signature }
    expect(await get(channels)).toMatchObject(raised)
    expect(await hooks.onBeforeSettle(context)).toMatchObject({ result: { success: true } })
    expect((await get(channels)).chargedCumulativeAmount).toBe("900")
  })

  it("raises and keeps no record above the channel's balance", async () => {
    const { channels, hooks, request } = serverOf()
    const unsent = { ...voucher, maxClaimableAmount: "1101", signature: "ef".repeat(64) }
    // The channel holds 1,000. Only the deposit in the same request would cover the base, and may never be sent.
    const refused = { abort: true, reason: word("cumulative_amount_mismatch") }
    expect((await request("deposit", unsent)).verified).toMatchObject(refused)
    expect(await get(channels)).toBeUndefined()
    await hooks.onBeforeSettle((await request("voucher")).context)
    expect((await request("deposit", unsent)).verified).toMatchObject(refused)
    const kept = { chargedCumulativeAmount: "100", signedMaxClaimable: "100", signature: voucher.signature }
    expect(await get(channels)).toMatchObject(kept)
    const covered = { ...unsent, maxClaimableAmount: "1100" }
    expect((await request("deposit", covered)).verified?.abort).toBeUndefined()
  })

  it("deletes a record without a deposit and a charge when its request ends", async () => {
    const channels = channelsOver(memoryStorage())
    const asked = { pendingId: "one", channelConfig, voucher, price: "100", ttlMillis: 5_000 }
    const ledger = { balance: "0", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
    for (const balance of ["0", "1000"]) {
      await channels.reserve({ ...asked, state: { ...ledger, balance } })
      await channels.release(voucher.channelId, "another")
      expect(await get(channels)).toBeDefined()
      await channels.release(voucher.channelId, "one")
      expect((await channels.list()).length).toBe(balance === "0" ? 0 : 1)
    }
  })

  it("takes no refund from a buyer with the seller's members", async () => {
    const { hooks } = serverOf()
    for (const members of [{ claims: [] }, { refundNonce: "0" }]) {
      const payload = { type: "refund", channelConfig, voucher, ...members }
      const verified = await hooks.onBeforeVerify({ paymentPayload: { payload }, requirements })
      expect(verified).toMatchObject({ abort: true, reason: word("refund_payload") })
    }
  })

  it("signs no refund of more than what is not charged", async () => {
    const { channels, hooks, request } = serverOf()
    await hooks.onBeforeSettle((await request("voucher")).context)
    await request("refund")
    const { pendingId } = (await get(channels)).pendingRequest!
    const hold = (amount: string) => channels.holdRefund({ channelId: voucher.channelId, pendingId, voucher, amount })
    await expect(hold("901")).rejects.toThrow(/900 is left/)
    expect((await hold("900")).amount).toBe("900")
    expect((await hold("1")).amount).toBe("900")
  })

  it("keeps what a refund has left when a claim is noted by an earlier reading", async () => {
    const { channels, hooks, request } = serverOf()
    await hooks.onBeforeSettle((await request("voucher")).context)
    const earlier = await get(channels)
    const refunded = { balance: "300", totalClaimed: "0", withdrawRequestedAt: 7, refundNonce: 1 }
    await channels.sync(voucher.channelId, refunded)
    const { onchainSyncedAt = 0 } = await get(channels)
    await channels.sync(voucher.channelId, { ...earlier, totalClaimed: "100", onchainSyncedAt })
    const noted = { ...refunded, totalClaimed: "100", onchainSyncedAt }
    expect(await get(channels)).toMatchObject(noted)
    await channels.sync(voucher.channelId, { ...earlier, totalClaimed: "50", onchainSyncedAt })
    expect(await get(channels)).toMatchObject(noted)
  })
})
