// The channel store and its claimer over HTTP: two instances of a stateless seller race for one voucher. Charged
// amounts are claimed and settled without the seller, in time before a withdrawal ends.
import assert from "node:assert/strict"
import { remoteAuthorizer, remoteChannels, setClaimPolicy } from "../../examples/batch/remoteChannels.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { batchOf, type Cases, inShop, makeBuyer, network, price, usdc } from "./batchWorld.ts"
import type { Part } from "./report.ts"
import type { World } from "./world.ts"

const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const end = performance.now() + 90_000
  while (!(await holds())) {
    assert.ok(performance.now() < end, `${what}: not within 90 s`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

export const batchStoreCases = async (world: World, part: Part): Promise<void> => {
  const cases: Cases = { world, part, batch: await batchOf(world) }
  const store = { facilitator: world.facilitator, network }
  const options = async () => ({
    receiver: await world.account(0),
    channels: remoteChannels(store),
    authorizer: await remoteAuthorizer(store)
  })

  await part.check("two instances without a store of their own race for one voucher, and one answers", async () => {
    const shared = await options()
    await inShop(
      cases,
      (first) =>
        inShop(
          cases,
          async (second) => {
            const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 20 })
            await buyer.pay(first.page)
            for (let round = 1; round <= 5; round++) {
              // Both start from the same base, so they sign the same voucher.
              const race = await Promise.all([buyer.buy(first.page), buyer.buy(second.page)])
              const paid = race.filter(({ receipt, status }) => status === 200 && receipt?.success === true)
              assert.ok(
                paid.length >= 1,
                JSON.stringify(race.map(({ receipt, required }) => receipt ?? required?.error))
              )
              const stored = (await shared.channels.list()).find(
                ({ channelConfig }) => channelConfig.payer === buyer.keypair.publicKey()
              )
              assert.equal(BigInt(stored!.chargedCumulativeAmount), BigInt(first.served() + second.served()) * price)
            }
          },
          shared
        ),
      shared
    )
  })

  await part.check("the claimer claims and settles by the seller's policy, and a refund returns the rest", async () => {
    await setClaimPolicy(store, { token: testnetUsdc, claimEverySeconds: 1, claimAt: "1" })
    const own = await options()
    await inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
        for (let call = 0; call < 4; call++) await buyer.pay(shop.page)
        await until("settled", async () => (await world.balance(shop.receiver)) === 4n * price)
        await buyer.pay(shop.page)
        await buyer.client.refund(shop.page)
        assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 5n * price)
        await until("settled after the refund", async () => (await world.balance(shop.receiver)) === 5n * price)
      },
      own
    )
  })

  await part.check("the claimer answers a withdrawal of a silent buyer before it ends", async () => {
    await setClaimPolicy(store, { token: testnetUsdc, claimEverySeconds: 86_400 })
    await inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
        for (let call = 0; call < 3; call++) await buyer.pay(shop.page)
        const terms = await cases.batch.termsOf(shop)
        const { paymentPayload } = await buyer.client.withdrawal("start", terms)
        assert.equal((await cases.batch.settle(paymentPayload.payload, terms)).json?.success, true)
        await until("settled", async () => (await world.balance(shop.receiver)) === 3n * price)
        await cases.batch.advance(901)
        const end = await buyer.client.withdrawal("end", terms)
        const ended = await cases.batch.settle(end.paymentPayload.payload, terms)
        assert.equal(ended.json?.success, true, ended.text)
        assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 3n * price)
      },
      await options()
    )
  })
}
