// `batch-settlement` against an adversary, over HTTP on the local ledger, for sellers with their own key and sellers
// in the facilitator's store: refunds that fail and leak, vouchers that only some runtimes accept, repeated settles,
// dust, an older backup, a second facilitator, an RPC outage amid claims, a token that takes a fee, reopened channels,
// and a facilitator that is down for longer than the delay.
import assert from "node:assert/strict"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { keyAuthorizer, type ReceiverAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import { type Channel, channelsOver, type ChannelStorage } from "../../examples/batch/channels.ts"
import { remoteAuthorizer, remoteChannels } from "../../examples/batch/remoteChannels.ts"
import { channelIdIn } from "../../examples/batch/vouchers.ts"
import { isProof, Watchtower } from "../../examples/watchtower.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"
import { makeBatch } from "../support/batchBuyer.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startRpcProxy } from "../support/rpcProxy.ts"
import { assertRefusedSettle, assertRefusedVerify } from "../../runtime/redteam/ask.ts"
import { type Cases, inShop, makeBuyer, network, price, type Shop, usdc, word } from "./batchWorld.ts"
import { lyingToken, Mode, startToken } from "./uptoWorld.ts"
import type { World } from "./world.ts"

const kinds = ["its own key", "the store"] as const
type Kind = (typeof kinds)[number]

/** Life of a deposit's authorization, within the timeout of the terms. */
const lifeLedgers = 10
/** Mode of the token in which it keeps half of a transfer. */
const feeMode = 11

const optionsOf = async (world: World, kind: Kind) => {
  const receiver = await world.account(0)
  if (kind === "its own key") return { receiver, authorizer: keyAuthorizer(receiver.secret()) }
  const store = { facilitator: world.facilitator, network }
  return { receiver, authorizer: await remoteAuthorizer(store), channels: remoteChannels(store) }
}

/** The record of a buyer's channel. */
const recordOf = async (shop: Shop, payer: Keypair): Promise<Channel> =>
  (await shop.server.channels.list()).find(({ channelConfig }) => channelConfig.payer === payer.publicKey())!

const leakedRefund = async (cases: Cases, kind: Kind): Promise<void> => {
  const { batch, part, world } = cases
  await part.check(
    `a refund that leaks stays claimable for a seller with ${kind}: nothing is sold below it`,
    async () => {
      const options = await optionsOf(world, kind)
      const leaked: Array<object> = []
      // The signature leaves the seller, and its payment fails.
      const authorizer: ReceiverAuthorizer = {
        ...options.authorizer,
        refund: async (asked) => {
          leaked.push(await options.authorizer.refund(asked))
          throw new Error("the refund's transaction failed")
        }
      }
      await inShop(
        cases,
        async (shop) => {
          const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
          for (let call = 0; call < 2; call++) await buyer.pay(shop.page)
          await assert.rejects(buyer.client.refund(shop.page))
          for (let call = 0; call < 3; call++) assert.equal((await buyer.buy(shop.page)).status, 402)
          assert.equal(shop.served(), 2)
          const terms = await batch.termsOf(shop)
          const { channelConfig, channelId, signature, signedMaxClaimable } = await recordOf(shop, buyer.keypair)
          const voucher = { channelId, maxClaimableAmount: signedMaxClaimable, signature }
          const refund = { type: "refund", channelConfig, voucher, ...leaked[0] }
          const { json, text } = await batch.settle(refund, terms)
          assert.equal(json?.success, true, text)
          // The same signature pays once.
          assertRefusedSettle(await batch.settle({ ...refund, amount: "1" }, terms))
          const { balance } = await batch.state(channelId)
          assert.equal(balance, 2n * price)
          assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 2n * price)
        },
        { ...options, authorizer }
      )
    }
  )
}

const poisoned = async (cases: Cases, kind: Kind): Promise<void> => {
  const { batch, part, world } = cases
  await part.check(`a voucher of a small-order key buys nothing from a seller with ${kind}`, async () =>
    inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
        const terms = await batch.termsOf(shop)
        const payerAuthorizer = StrKey.encodeEd25519PublicKey(Uint8Array.from({ length: 32 }, (_, at) => +(at === 0)))
        const channelConfig = { ...buyer.client.configOf(terms), payerAuthorizer }
        const channelId = channelIdIn(terms.network, batch.contract, channelConfig)
        const signature = `01${"00".repeat(63)}`
        const voucher = { channelId, maxClaimableAmount: String(price), signature }
        const payload = { type: "voucher", channelConfig, voucher }
        assertRefusedVerify(await batch.verify(payload, terms), [word("voucher_signature")])
        const header = Buffer.from(JSON.stringify({ x402Version: 2, accepted: terms, payload })).toString("base64")
        assert.equal((await fetch(shop.page, { headers: { "payment-signature": header } })).status, 402)
        assert.equal(shop.served(), 0)
      },
      await optionsOf(world, kind)
    )
  )
}

const settledOnce = async (cases: Cases, kind: Kind): Promise<void> => {
  const { batch, part, world } = cases
  await part.check(`settle succeeds only for a voucher that the store charged, for a seller with ${kind}`, async () =>
    inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
        for (let call = 0; call < 2; call++) await buyer.pay(shop.page)
        const terms = await batch.termsOf(shop)
        const { channelConfig } = await recordOf(shop, buyer.keypair)
        const charged = { type: "voucher", channelConfig, voucher: buyer.sent().payload.voucher }
        const unpaid = { ...charged, voucher: { ...charged.voucher, maxClaimableAmount: String(3n * price) } }
        if (kind === "the store") assert.equal((await batch.settle(charged, terms)).json?.success, true)
        else assertRefusedSettle(await batch.settle(charged, terms), [word("payload_type")])
        assertRefusedSettle(await batch.settle(unpaid, terms))
      },
      await optionsOf(world, kind)
    )
  )
}

const dust = async (cases: Cases, kind: Kind): Promise<void> => {
  const { batch, part, world } = cases
  await part.check(`a deposit of one atom is not sponsored, for a seller with ${kind}`, async () =>
    inShop(
      cases,
      async (shop) => {
        const payer = await world.account(1)
        const terms = { ...(await batch.termsOf(shop)), amount: "1" }
        const { deposit } = makeBatch(world.rpc, batch.contract)
        const { channelConfig, ...others } = await makeBuyer(world, payer).then(({ client }) => ({
          channelConfig: client.configOf(terms),
          channelId: client.channelIdOf(terms)
        }))
        const channel = { config: channelConfig, ...others, payer, payerAuthorizer: payer, receiverAuthorizer: payer }
        const sent = await batch.settle(await deposit(channel, 1n, 1n, payer, lifeLedgers), terms)
        assertRefusedSettle(sent, [word("deposit_below_min_deposit")])
        assert.equal(await world.balance(payer.publicKey()), usdc)
      },
      await optionsOf(world, kind)
    )
  )
}

const olderBackup = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("a seller's older backup is raised by the next voucher, and nothing of it is lost", async () => {
    let records = new Map<string, Channel>()
    const storage: ChannelStorage = {
      get: async (id) => records.get(id),
      list: async () => [...records.values()],
      updateChannel: async (id, update) => {
        const next = update(records.get(id))
        if (next !== undefined) records.set(id, next)
        return { channel: next, status: "updated" }
      }
    }
    await inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 20 })
        for (let call = 0; call < 5; call++) await buyer.pay(shop.page)
        const backup = new Map(records)
        for (let call = 0; call < 10; call++) await buyer.pay(shop.page)
        records = backup
        const receipt = await buyer.pay(shop.page)
        assert.equal(receipt.extra.channelState.chargedCumulativeAmount, String(16n * price))
        await shop.claims.claim()
        const { channelId } = await recordOf(shop, buyer.keypair)
        assert.equal((await batch.state(channelId)).totalClaimed, 16n * price)
      },
      { ...(await optionsOf(world, "its own key")), channels: channelsOver(storage) }
    )
  })
}

const reopened = async (cases: Cases, kind: Kind): Promise<void> => {
  const { batch, part, world } = cases
  await part.check(`a channel that is refunded and reopened keeps its totals, for a seller with ${kind}`, async () =>
    inShop(
      cases,
      async (shop) => {
        const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 5 })
        for (let call = 0; call < 2; call++) await buyer.pay(shop.page)
        const spent = buyer.sent()
        await buyer.client.refund(shop.page)
        assert.notEqual((await buyer.pay(shop.page)).transaction, "", "a deposit reopens it")
        const header = Buffer.from(JSON.stringify(spent)).toString("base64")
        assert.equal((await fetch(shop.page, { headers: { "payment-signature": header } })).status, 402)
        await buyer.pay(shop.page)
        const { channelId, chargedCumulativeAmount } = await recordOf(shop, buyer.keypair)
        assert.equal(chargedCumulativeAmount, String(4n * price))
        assert.equal((await batch.state(channelId)).balance, 7n * price)
      },
      await optionsOf(world, kind)
    )
  )
}

const feeToken = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("a token that takes a fee is credited by what arrived, and no voucher exceeds that", async () => {
    const token = await startToken(world.ledger)
    const [payer, receiver] = [await world.account(0), await world.account(0)]
    await token.set(Mode.honest)
    await token.mint(payer.publicKey(), 10_000_000n)
    const made = makeBatch(world.rpc, batch.contract)
    const channel = made.channel(payer, receiver.publicKey(), Keypair.random(), { token: lyingToken })
    const terms = {
      ...{ scheme: "batch-settlement", network, asset: lyingToken, amount: "100", payTo: receiver.publicKey() },
      maxTimeoutSeconds: 60,
      extra: {
        ...{ areFeesSponsored: true, batchContract: batch.contract, withdrawDelay: channel.config.withdrawDelay },
        receiverAuthorizer: channel.config.receiverAuthorizer
      }
    }
    await token.set(feeMode)
    const { json, text } = await batch.settle(await made.deposit(channel, 10_000n, 100n, payer, lifeLedgers), terms)
    await token.set(Mode.honest)
    assert.equal(json?.success, true, text)
    assert.equal((await batch.state(channel.channelId)).balance, 5_000n)
    assertRefusedVerify(await batch.verify(made.pay(channel, 5_001n), terms))
    const { json: verified, text: answer } = await batch.verify(made.pay(channel, 5_000n), terms)
    assert.equal(verified?.isValid, true, answer)
  })
}

const second = (world: World, contract: string, rpcUrl = world.ledger) =>
  startBatch({
    ...{ ledgerUrl: world.ledger, channels: 3 },
    set: [
      "plugins=[x402-exact,x402-batch,batch-store]",
      `networks.ledger:testnet.batch_contract=${contract}`,
      `networks.ledger:testnet.rpc_urls=["${rpcUrl}"]`,
      "batch_store.allow_keyless=true"
    ],
    environment: { BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of conformance" }
  })

const twoFacilitators = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("a second facilitator with the same secret sells on no channel of the first", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const other = yield* second(world, batch.contract)
        yield* Effect.promise(async () => {
          const options = await optionsOf(world, "the store")
          await inShop(
            cases,
            async (shop) => {
              const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
              await buyer.pay(shop.page)
              const elsewhere = { ...options, channels: remoteChannels({ facilitator: other.url, network }) }
              await inShop(
                cases,
                async (copy) => {
                  assert.equal((await buyer.buy(copy.page)).receipt?.success, undefined)
                  assert.equal(copy.served(), 0)
                },
                elsewhere
              )
            },
            options
          )
        })
      }).pipe(Effect.scoped)
    )
  )
}

const outage = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("claims during an RPC outage are made once it ends, each once", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        let isDown = false
        const proxy = yield* startRpcProxy(world.ledger, () => (isDown ? Promise.resolve(undefined) : undefined))
        const other = yield* second(world, batch.contract, proxy.url)
        yield* Effect.promise(() =>
          inShop(cases, async (shop) => {
            const payer = await world.account(1)
            for (const salt of ["01", "02", "03"]) {
              const buyer = await makeBuyer(world, payer, { salt: salt.repeat(32), depositTimes: 5 })
              await buyer.pay(shop.page)
            }
            const { server } = shop
            const options = { server, facilitator: other.url, network, token: testnetUsdc, claimsPerTransaction: 1 }
            const claims = new BatchClaims(options)
            isDown = true
            const failed = await claims.claim().then(() => undefined, String)
            assert.ok(failed !== undefined)
            isDown = false
            const until = performance.now() + 120_000
            for (let error: string | undefined = failed; error !== undefined;) {
              assert.ok(performance.now() < until, error)
              error = await new BatchClaims(options).claim().then(() => undefined, String)
            }
            for (const { channelId } of await server.channels.list())
              assert.equal((await batch.state(channelId)).totalClaimed, price)
          })
        )
      }).pipe(Effect.scoped)
    )
  )
}

const downBeyondDelay = async (cases: Cases): Promise<void> => {
  const { batch, part, world } = cases
  await part.check("a seller and its facilitator are down beyond the delay: a watchtower claims, nothing is lost", () =>
    inShop(cases, async (shop) => {
      const buyer = await makeBuyer(world, await world.account(1), { depositTimes: 10 })
      for (let call = 0; call < 3; call++) await buyer.pay(shop.page)
      const terms = await batch.termsOf(shop)
      const exported = await shop.claims.exportForWatch()
      // From here on the seller does nothing.
      const step = async (name: "start" | "end") => {
        const { paymentPayload } = await buyer.client.withdrawal(name, terms)
        const { json, text } = await batch.settle(paymentPayload.payload, terms)
        assert.equal(json?.success, true, text)
      }
      await step("start")
      const secret = (await world.account(0)).secret()
      const lines: Array<string> = []
      const keep = async () => undefined
      const tower = new Watchtower({ secret, rpcUrls: [world.ledger], keep, report: (line) => void lines.push(line) })
      tower.load(exported)
      const [proof] = await tower.turn()
      assert.ok(proof !== undefined && isProof(proof), lines.join("\n"))
      await batch.advance(901)
      await step("end")
      await shop.claims.settle()
      assert.equal(await world.balance(shop.receiver), 3n * price)
      assert.equal(await world.balance(buyer.keypair.publicKey()), usdc - 3n * price)
    })
  )
}

/** Whether this machine's clock is still near the ledger's, which cases advance. */
const isOnTime = async ({ rpc }: World): Promise<boolean> => {
  const { latestLedgerCloseTime } = await rpc("getTransaction", { hash: "0".repeat(64) })
  return Number(latestLedgerCloseTime) < Date.now() / 1_000 + 60
}

/** Adversaries that sign by this machine's clock, so they play before any case advances the ledger. */
export const batchOnTime = async (cases: Cases): Promise<void> => {
  // A facilitator that runs already lists no token that takes a fee, and its ledger may not be ours.
  if (cases.world.crash === undefined) return
  for (const play of [feeToken, outage, downBeyondDelay])
    if (await isOnTime(cases.world)) await play(cases)
    else console.log(`  left out: ${play.name}, since the ledger's clock is ahead of this machine's`)
}

export const batchAdversaries = async (cases: Cases): Promise<void> => {
  if (cases.world.crash === undefined) return
  for (const kind of kinds) {
    await leakedRefund(cases, kind)
    await poisoned(cases, kind)
    await settledOnce(cases, kind)
    await dust(cases, kind)
    await reopened(cases, kind)
  }
  await olderBackup(cases)
  await twoFacilitators(cases)
}
