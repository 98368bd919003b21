// The end of `batch-settlement` channels, over HTTP on the local ledger: by a refund, by a payer's withdrawal against a
// silent seller and against a responding seller, by a claim during which the facilitator dies, and after the ledger
// archived them.
import assert from "node:assert/strict"
import { signerOf, placeOf, signVoucher } from "../../examples/batch/vouchers.ts"
import { assertRefusedSettle, assertRefusedVerify } from "../../runtime/redteam/ask.ts"
import { batchOf, type Cases, inShop, makeBuyer, price, usdc, word } from "./batchWorld.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

const withdrawals = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  const withdraw = async (buyer: Awaited<ReturnType<typeof makeBuyer>>, step: "start" | "end", terms: any) => {
    const { paymentPayload } = await buyer.client.withdrawal(step, terms)
    return batch.settle(paymentPayload.payload, terms)
  }
  await part.check("against a silent seller the payer alone withdraws all, after the delay and not before", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      await buyer.pay(shop.page)
      const terms = await batch.termsOf(shop)
      const started = await withdraw(buyer, "start", terms)
      assert.equal(started.json?.success, true, started.text)
      assertRefusedSettle(await withdraw(buyer, "end", terms))
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 10n * price)
      await batch.advance(901)
      const ended = await withdraw(buyer, "end", terms)
      assert.equal(ended.json?.success, true, ended.text)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc)
    })
  )
  await part.check("a seller that answers a withdrawal in time keeps what it charged", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      for (let call = 0; call < 3; call++) await buyer.pay(shop.page)
      const terms = await batch.termsOf(shop)
      assert.equal((await withdraw(buyer, "start", terms)).json?.success, true)
      // Once a withdrawal has started, no voucher is accepted any more.
      const voucher = signVoucher(
        signerOf(buyer.keypair.secret()),
        placeOf("stellar:testnet", batch.contract),
        buyer.client.channelIdOf(terms),
        4n * price
      )
      const payload = { type: "voucher", channelConfig: buyer.client.configOf(terms), voucher }
      assertRefusedVerify(await batch.verify(payload, terms), [word("withdrawal_started")])
      await shop.claims.claim()
      await batch.advance(901)
      const ended = await withdraw(buyer, "end", terms)
      assert.equal(ended.json?.success, true, ended.text)
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 3n * price)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 3n * price)
    })
  )
}

/** Number of ledgers after which an untouched entry is archived: more than the contract's thirty days. */
const archivedAfterLedgers = 700_000

/** Months later. This is the last part, since the facilitator restarts afterwards. */
export const batchArchived = async (world: World, part: Part): Promise<void> => {
  const cases = { world, part, batch: await batchOf(world) }
  const { batch } = cases
  const { crash } = world
  if (crash === undefined) return
  await part.check("a channel that was archived is restored by the claim, and nothing of it is lost", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      for (let call = 0; call < 3; call++) await buyer.pay(shop.page)
      await batch.closeMany(archivedAfterLedgers)
      await crash()
      // The seller still has its own record, so the voucher is charged without the ledger.
      await buyer.pay(shop.page)
      await shop.claims.claim()
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 4n * price)
      await buyer.client.refund(shop.page)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 4n * price)
    })
  )
}

const partialRefund = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("a part is refunded immediately, and the channel continues with what is left", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      await buyer.pay(shop.page)
      await buyer.client.refund(shop.page, 5n * price)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 5n * price)
      const deposits = []
      for (let call = 0; call < 5; call++) deposits.push((await buyer.pay(shop.page)).transaction !== "")
      assert.deepEqual(deposits, [false, false, false, false, true])
      const channelId = buyer.client.channelIdOf(await batch.termsOf(shop))
      assert.deepEqual(await batch.state(channelId), {
        balance: 15n * price,
        totalClaimed: price,
        withdrawRequestedAt: 0,
        refundNonce: 1n
      })
      await shop.claims.claim()
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 6n * price)
    })
  )
}

/** A facilitator that dies between the record of a claim and its submission. */
const killedClaim = async (cases: Cases): Promise<void> => {
  const { part, world } = cases
  const { crash } = world
  if (crash === undefined) return
  await part.check("a facilitator killed between record and submit of a claim ends it once", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      for (let call = 0; call < 5; call++) await buyer.pay(shop.page)
      await crash({ TOLLKEEPER_TEST_CRASH_AT: "afterRecord" })
      await assert.rejects(shop.claims.claim())
      await crash()
      const until = performance.now() + 60_000
      for (;;) {
        const error = await shop.claims.claim().then(
          () => undefined,
          (error) => String(error)
        )
        if (error === undefined || /already_settled|nothing_to_claim/.test(error)) break
        assert.ok(performance.now() < until, error)
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 5n * price)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 10n * price)
    })
  )
}

export const batchEndings = async (cases: Cases): Promise<void> => {
  await partialRefund(cases)
  await killedClaim(cases)
  await withdrawals(cases)
}

/** Runs after all other cases: compares the ledger's transactions with the facilitator's records. */
export const batchAudited = async ({ audit }: World, part: Part): Promise<void> => {
  if (audit === undefined) return
  await part.check("the audit finds the ledger and the records in agreement", async () => {
    const { mismatches, settlements } = await audit()
    assert.ok(settlements > 50, `only ${settlements} settlements`)
    assert.deepEqual(mismatches, [])
  })
}
