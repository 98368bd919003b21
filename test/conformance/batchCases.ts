// `batch-settlement` over HTTP on the local ledger, with sellers and buyers of the official packages, every balance
// checked to the atom by the ledger's own entries: one deposit and many vouchers, attempts of a dishonest buyer, the
// cost of a lost record, and the end of a channel.
import assert from "node:assert/strict"
import { Keypair } from "@stellar/stellar-sdk"
import { memoryClientStorage } from "../../examples/batch/BatchStellarClient.ts"
import { channelsOver, memoryStorage } from "../../examples/batch/channels.ts"
import { placeOf, signerOf, signVoucher } from "../../examples/batch/vouchers.ts"
import { lyingToken } from "./uptoWorld.ts"
import { assertRefusedSettle, assertRefusedVerify } from "../../runtime/redteam/ask.ts"
import { batchEndings } from "./batchEndings.ts"
import { batchOf, type Cases, inShop, makeBuyer, price, usdc, word } from "./batchWorld.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

/** Expiry of a signature, Unix seconds. */
const soon = () => Math.floor(Date.now() / 60_000) * 60 + 600

const manyVouchers = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("one deposit pays 1,000 calls, which are claimed, settled and refunded to the atom", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 1_500 })
      const before = await batch.held()
      const deposit = await buyer.pay(shop.page)
      assert.match(deposit.transaction, /^[0-9a-f]{64}$/)
      const started = performance.now()
      for (let call = 1; call < 1_000; call++) {
        const receipt = await buyer.pay(shop.page)
        assert.equal(receipt.transaction, "", "a voucher needs no transaction")
      }
      part.figure("ms per paid call", ((performance.now() - started) / 999).toFixed(2))
      const [deposited, charged] = [1_500n * price, 1_000n * price]
      assert.equal(await batch.held(), before + deposited)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - deposited)
      assert.equal((await shop.claims.claim()).length, 1)
      assert.equal(await world.balance(shop.receiver), 0n)
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), charged)
      const refund = await buyer.client.refund(shop.page)
      assert.match(refund.transaction, /^[0-9a-f]{64}$/)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - charged)
      assert.equal(await batch.held(), before)
    })
  )

  await part.check("a channel that runs out is topped up by the next deposit", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 3 })
      const deposits = []
      for (let call = 0; call < 7; call++) deposits.push((await buyer.pay(shop.page)).transaction !== "")
      assert.deepEqual(deposits, [true, false, false, true, false, false, true])
      const { balance, totalClaimed } = await batch.state(buyer.client.channelIdOf(await batch.termsOf(shop)))
      assert.deepEqual([balance, totalClaimed], [9n * price, 0n])
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 9n * price)
    })
  )

  await part.check("a call that used less is charged less, and the next voucher builds on it", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      for (const used of ["40", "0", "100", "7"]) {
        const receipt = await buyer.pay(`${shop.page}?used=${used}`)
        assert.equal(receipt.extra.chargedAmount, used)
      }
      await shop.claims.claim()
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 147n)
      await buyer.client.refund(shop.page)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 147n)
    })
  )
}

const depositsOnce = async (cases: Cases): Promise<void> => {
  const { part, world } = cases
  await part.check("a deposit that is sent again with the buyer's identifier buys one page", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 3 })
      await buyer.pay(shop.page)
      const extensions = { "payment-identifier": { info: { required: false, id: "an-identifier-of-the-buyer" } } }
      for (const sent of [buyer.sent(), { ...buyer.sent(), extensions }, { ...buyer.sent(), extensions }]) {
        const header = Buffer.from(JSON.stringify(sent)).toString("base64")
        assert.equal((await fetch(shop.page, { headers: { "payment-signature": header } })).status, 402)
      }
      assert.equal(shop.served(), 1)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 3n * price)
    })
  )
}

const claimedTogether = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("40 channels are claimed in one transaction, and a claim that lands twice changes nothing", () =>
    inShop(cases, async (shop) => {
      const payer = await world.account(1)
      const salts = Array.from({ length: 40 }, (_, index) => index.toString(16).padStart(64, "0"))
      const open = async (salt: string) => {
        const buyer = await makeBuyer(world, payer, { salt, depositTimes: 3 })
        await buyer.pay(shop.page)
        await buyer.pay(shop.page)
      }
      for (let at = 0; at < salts.length; at += 8) await Promise.all(salts.slice(at, at + 8).map(open))
      const channels = await shop.server.channels.list()
      assert.equal(channels.length, 40)
      const transactions = await shop.claims.claim()
      assert.equal(transactions.length, 1)
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 80n * price)
      // A seller that lost its record of a claim makes the claim again.
      for (const one of channels) await shop.server.channels.sync(one.channelId, { ...one, totalClaimed: "0" })
      await shop.claims.claim().catch((error) => assert.match(String(error), /nothing_to_claim|already_settled/))
      await shop.claims.settle().catch((error) => assert.match(String(error), /nothing_to_settle/))
      assert.equal(await world.balance(shop.receiver), 80n * price)
      assert.equal(await world.balance(payer.publicKey()), usdc - 120n * price)
      const totals = await Promise.all(channels.map(({ channelId }) => batch.state(channelId)))
      assert.deepEqual(new Set(totals.map(({ totalClaimed }) => totalClaimed)), new Set([2n * price]))
    })
  )
}

const refusedVouchers = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64")
  await inShop(cases, async (shop) => {
    const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
    await buyer.pay(shop.page)
    await buyer.pay(shop.page)
    const terms = await batch.termsOf(shop)
    const channelConfig = buyer.client.configOf(terms)
    const channelId = buyer.client.channelIdOf(terms)
    const signer = signerOf(buyer.keypair.secret())
    const place = placeOf("stellar:testnet", batch.contract)
    const payloadOf = (voucher: unknown) => ({ type: "voucher", channelConfig, voucher })
    const honest = (max: bigint) => signVoucher(signer, place, channelId, max)
    const send = async (payload: unknown) => {
      const paymentPayload = { x402Version: 2, accepted: terms, payload }
      return fetch(shop.page, { headers: { "payment-signature": encode(paymentPayload) } })
    }

    await part.check("a seller refuses a voucher that was sent before, and a lower one", async () => {
      const served = shop.served()
      assert.equal((await send(payloadOf(honest(2n * price)))).status, 402)
      assert.equal((await send(payloadOf(honest(price)))).status, 402)
      assert.equal(shop.served(), served)
    })
    await part.check(
      "a voucher is verified without a transaction, and one not above the claims is refused",
      async () => {
        const { json } = await batch.verify(payloadOf(honest(3n * price)), terms)
        assert.equal(json?.isValid, true, JSON.stringify(json))
        assert.equal(json.extra.balance, String(10n * price))
        await shop.claims.claim()
        for (const max of [price, 2n * price])
          assertRefusedVerify(await batch.verify(payloadOf(honest(max)), terms), [word("cumulative_below_claimed")])
        assertRefusedVerify(await batch.verify(payloadOf(honest(10n * price + 1n)), terms), [
          word("cumulative_exceeds_balance")
        ])
      }
    )
    const other = await makeBuyer(world, buyer.keypair, { salt: "ab".repeat(32) })
    const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
      [
        "another channel",
        { ...honest(3n * price), channelId: other.client.channelIdOf(terms) },
        word("channel_id_mismatch")
      ],
      [
        "another channel's signature",
        { ...honest(3n * price), signature: signVoucher(signer, place, "00".repeat(32), 3n * price).signature },
        word("voucher_signature")
      ],
      [
        "another network",
        signVoucher(signer, placeOf("stellar:pubnet", batch.contract), channelId, 3n * price),
        word("voucher_signature")
      ],
      [
        "another contract",
        signVoucher(signer, placeOf("stellar:testnet", lyingToken), channelId, 3n * price),
        word("voucher_signature")
      ],
      [
        "another payer",
        signVoucher(signerOf(Keypair.random().secret()), place, channelId, 3n * price),
        word("voucher_signature")
      ]
    ]
    for (const [what, voucher, reason] of wrong) {
      await part.check(`a voucher of ${what} is refused by facilitator and seller`, async () => {
        const served = shop.served()
        assertRefusedVerify(await batch.verify(payloadOf(voucher), terms), [reason])
        assert.equal((await send(payloadOf(voucher))).status, 402)
        assert.equal(shop.served(), served)
      })
    }
    await part.check("a claim above the voucher, or without the seller's signature, moves nothing", async () => {
      const before = await batch.state(channelId)
      const voucher = honest(3n * price)
      const claim = {
        voucher: { channel: channelConfig, maxClaimableAmount: voucher.maxClaimableAmount },
        signature: voucher.signature
      }
      const sign = shop.server.authorizer.signClaims!
      for (const [claims, reason] of [
        [[{ ...claim, totalClaimed: String(3n * price + 1n) }], "charge_exceeds_signed_cumulative"],
        [[{ ...claim, totalClaimed: String(3n * price) }], "authorizer_not_configured"]
      ] as const) {
        const signature =
          reason === "authorizer_not_configured"
            ? {}
            : { claimAuthorizerSignature: sign("stellar:testnet", batch.contract, claims, soon()) }
        const payload = { type: "claim", claims, expiresAt: soon(), ...signature }
        assertRefusedSettle(await batch.settle(payload, terms), [word(reason)])
      }
      assert.deepEqual(await batch.state(channelId), before)
    })
  })
}

const lostRecords = async (cases: Cases): Promise<void> => {
  const { part, world } = cases
  await part.check("a buyer that lost its record takes the seller's, proven by its own voucher", () =>
    inShop(cases, async (shop) => {
      const keypair = await world.account(1)
      const first = await makeBuyer(world, keypair, { depositTimes: 10 })
      for (let call = 0; call < 3; call++) await first.pay(shop.page)
      const again = await makeBuyer(world, keypair, { depositTimes: 10, storage: memoryClientStorage() })
      const receipt = await again.pay(shop.page)
      assert.equal(receipt.transaction, "", "no second deposit")
      assert.equal(receipt.extra.channelState.chargedCumulativeAmount, String(4n * price))
      assert.equal(await world.balance(keypair.publicKey()), usdc - 10n * price)
    })
  )
  await part.check("a seller that lost its record continues from the buyer's voucher, and loses nothing", async () => {
    const receiver = await world.account(0)
    const keypair = await world.account(1)
    const buyer = await makeBuyer(world, keypair, { depositTimes: 10 })
    await inShop(
      cases,
      async (shop) => {
        for (let call = 0; call < 3; call++) await buyer.pay(shop.page)
      },
      { receiver }
    )
    await inShop(
      cases,
      async (shop) => {
        const receipt = await buyer.pay(shop.page)
        assert.equal(receipt.extra.channelState.chargedCumulativeAmount, String(4n * price))
        await shop.claims.claim()
        await shop.claims.settle()
        assert.equal(await world.balance(receiver.publicKey()), 4n * price)
      },
      { receiver, channels: channelsOver(memoryStorage()) }
    )
  })
}

export const batchCases = async (world: World, part: Part): Promise<void> => {
  const cases = { world, part, batch: await batchOf(world) }
  await manyVouchers(cases)
  await depositsOnce(cases)
  await claimedTogether(cases)
  await refusedVouchers(cases)
  await lostRecords(cases)
  await batchEndings(cases)
}
