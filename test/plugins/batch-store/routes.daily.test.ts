// The channel store over HTTP: each decision by its name, one key's channels separate from another's, and refusals with
// their message. Uses the examples' client, which sellers use too.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchStellarServer } from "../../../examples/batch/BatchStellarServer.ts"
import { channelIdIn, placeOf, signerOf, signVoucher } from "../../../examples/batch/vouchers.ts"
import { remoteAuthorizer, remoteChannels, setClaimPolicy } from "../../../examples/batch/remoteChannels.ts"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const secret = "a secret for the authorizers of this test"
const environment = { FACILITATOR_API_KEYS: `shop:${keys.shop},other:${keys.other}`, BATCH_AUTHORIZER_SECRET: secret }
const network = "stellar:testnet"
const plugins = "plugins=[ledger-local,x402-batch-local,x402-batch,batch-store]"
const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }

/** A buyer's channel: its first reservation, and its vouchers. */
const reservation = (contract: string, receiverAuthorizer: string) => {
  const signer = signerOf(Keypair.random().secret())
  const channelConfig = {
    payer: signer.address,
    payerAuthorizer: signer.address,
    receiver: Keypair.random().publicKey(),
    receiverAuthorizer,
    token: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    withdrawDelay: 900,
    salt: "00".repeat(32)
  }
  const channelId = channelIdIn(network, contract, channelConfig)
  const voucherOf = (max: bigint) => signVoucher(signer, placeOf(network, contract), channelId, max)
  const pendingId = "request-0123456789"
  return {
    first: { pendingId, channelConfig, voucher: voucherOf(100n), price: "100", state, ttlMillis: 60_000 },
    voucherOf
  }
}

it.live.each(databaseKinds)(
  "reserves, charges and signs refunds for a seller's key, and shows no other seller its channels, on %s",
  (database) =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ database, set: [plugins], environment })
      const store = { facilitator: facilitator.url, apiKey: keys.shop, network }
      const [shop, other] = [remoteChannels(store), remoteChannels({ ...store, apiKey: keys.other })]
      yield* Effect.promise(async () => {
        const authorizer = await remoteAuthorizer(store)
        expect((await remoteAuthorizer(store)).address).toBe(authorizer.address)
        expect((await remoteAuthorizer({ ...store, apiKey: keys.other })).address).not.toBe(authorizer.address)

        const headers = { authorization: `Bearer ${keys.shop}` }
        const { kinds }: any = await (await fetch(`${facilitator.url}/supported`, { headers })).json()
        const { batchContract } = kinds.find((one: any) => one.scheme === "batch-settlement").extra
        const { first, voucherOf } = reservation(batchContract, authorizer.address)
        const { channelId } = first.voucher
        const poisoned = { ...first, voucher: { ...first.voucher, signature: `01${"00".repeat(63)}` } }
        await expect(shop.reserve(poisoned)).rejects.toThrow(/not signed by its payerAuthorizer/)
        const elsewhere = { ...first, voucher: { ...first.voucher, channelId: "ab".repeat(32) } }
        await expect(shop.reserve(elsewhere)).rejects.toThrow(/not for this channel/)
        expect((await shop.reserve(first)).status).toBe("reserved")
        expect((await shop.reserve({ ...first, pendingId: "another-0123456789" })).status).toBe("busy")
        const charge = { channelId, pendingId: first.pendingId, amount: "60", voucher: first.voucher }
        expect((await shop.charge(charge)).channel?.chargedCumulativeAmount).toBe("60")
        expect((await shop.charge(charge)).channel?.chargedCumulativeAmount).toBe("60")
        expect((await other.get(channelId)) ?? (await other.list())[0]).toBeUndefined()
        expect((await other.charge(charge)).status).toBe("missing")

        const report = await fetch(`${facilitator.url}/batch/v1/operator/channels`)
        expect(await report.json()).toMatchObject({
          items: [{ channel_id: channelId, principal: "key:shop", held: "1000", charged: "60", claimed: "0" }],
          more: false
        })
        const refund = { ...first, pendingId: "refund-0123456789", price: "0" }
        const voucher = voucherOf(60n)
        const { channel } = await shop.reserve({ ...refund, voucher })
        const hold = { channelId, pendingId: refund.pendingId, voucher }
        await expect(shop.holdRefund({ ...hold, pendingId: "not-the-one-that-has-it" })).rejects.toThrow(/conflict/)
        const held = await shop.holdRefund(hold)
        const asked = { network, contract: "", channel: channel!, voucher, held }
        const signed = await authorizer.refund(asked)
        expect(await authorizer.refund(asked)).toEqual(signed)
        expect(signed).toMatchObject({ amount: "940", refundNonce: "0" })
        expect(signed.claims).toMatchObject([{ totalClaimed: "60" }])
        expect(signed.refundAuthorizerSignature).toMatch(/^[0-9a-f]{128}$/)
        await shop.release(channelId, refund.pendingId)
        expect((await shop.get(channelId))?.pendingRefund).toMatchObject({ amount: "940", refundNonce: 0 })
        const next = { ...refund, pendingId: "after-0123456789", voucher }
        expect((await shop.reserve(next)).status).toBe("busy")
        await setClaimPolicy(store, { token: first.channelConfig.token, claimEverySeconds: 60 })

        // A buyer chooses its payment identifier; another one must not get a second answer to one voucher.
        const { first: second } = reservation(batchContract, authorizer.address)
        const { receiver } = second.channelConfig
        const instances = [1, 2].map(() => new BatchStellarServer({ receiver, channels: shop, authorizer }))
        const raced = second.voucher
        const requirements = { network, amount: "100", maxTimeoutSeconds: 60 }
        const contexts = instances.map(() => {
          const payload = { type: "voucher", channelConfig: second.channelConfig, voucher: raced }
          const extensions = { "payment-identifier": { info: { id: "pay_0123456789abcdef" } } }
          return { paymentPayload: { payload, extensions }, requirements }
        })
        const [result, each] = [{ isValid: true, extra: state }, [...instances.entries()]]
        const verified = await Promise.all(
          each.map(([at, { schemeHooks }]) => schemeHooks.onAfterVerify({ ...contexts[at], result }))
        )
        const settled = each
          .filter(([at]) => verified[at]?.abort !== true)
          .map(([at, { schemeHooks }]) => schemeHooks.onBeforeSettle(contexts[at]))
        const answers = await Promise.all(settled)
        expect(answers.map((one) => one.result?.success)).toEqual([true])
        expect((await shop.get(raced.channelId))?.chargedCumulativeAmount).toBe("100")
      })
    }).pipe(Effect.scoped),
  120_000
)

it.live(
  "refuses callers without a key and bodies of another form, with a sentence",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ set: [plugins], environment })
      const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
        facilitator.ask(path, { method: "POST", headers, body: JSON.stringify(body) })
      const keyed = { authorization: `Bearer ${keys.shop}` }
      expect((yield* post("/batch/v1/authorizer", { network })).status).toBe(401)
      const operated = yield* startFacilitator({
        ledgerUrl: facilitator.ledgerUrl,
        set: ["plugins=[x402-batch,batch-store]"],
        environment: { OPERATOR_API_KEYS: "ops:operator-secret-0123456789" }
      })
      expect((yield* operated.ask("/batch/v1/operator/channels")).status).toBe(401)
      for (const body of [
        { network, payment: "short" },
        { network: "stellar:pubnet", channelId: "ab".repeat(32), payment: "request-0123456789" },
        { network, channelId: "AB".repeat(32), payment: "request-0123456789" },
        []
      ]) {
        const answer = yield* post("/batch/v1/channels/release", body, keyed)
        expect([answer.status, answer.json.error]).toEqual([400, "invalid_request"])
        expect(answer.json.details[0].length).toBeGreaterThan(5)
      }
      const unkeyed = yield* startFacilitator({
        ledgerUrl: facilitator.ledgerUrl,
        set: ["plugins=[x402-batch,batch-store]"]
      })
      const refused = yield* unkeyed.ask("/batch/v1/authorizer", { method: "POST", body: JSON.stringify({ network }) })
      expect([refused.status, refused.json.error]).toEqual([403, "forbidden"])
    }).pipe(Effect.scoped),
  120_000
)
