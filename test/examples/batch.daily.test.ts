// The scheme's classes after a loss: a deposit with a lost answer is not repeated, a channel with less than the buyer's
// record is filled again, and one channel that cannot be claimed does not block the seller's others.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { BatchStellarClient, memoryClientStorage } from "../../examples/batch/BatchStellarClient.ts"
import { BatchStellarServer, keyAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import { channelsOver, memoryStorage, type SellerChannels } from "../../examples/batch/channels.ts"
import { startBatchSeller } from "../../examples/batch/startBatchSeller.ts"
import { decode, encode } from "../../examples/client/keptPayments.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"

const network = "ledger:testnet"
const price = 100n

const makeWorld = Effect.fnUntraced(function* (channels?: SellerChannels) {
  // A deposit's lifetime is counted in ledgers of five seconds, so it is shorter on ledgers that close faster.
  const facilitator = yield* startBatch({ channels: 5, closeMillis: 500 })
  const receiver = (yield* facilitator.account(0n)).publicKey()
  const server = new BatchStellarServer({
    receiver,
    authorizer: keyAuthorizer(Keypair.random().secret()),
    minDepositTimes: 1,
    ...(channels === undefined ? {} : { channels })
  })
  const shop = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startBatchSeller({
        server,
        facilitator: facilitator.url,
        network,
        asset: testnetUsdc,
        price,
        maxTimeoutSeconds: 300
      })
    ),
    (one) => Effect.promise(() => one.close())
  )
  const url = `${shop.url}/page`
  const terms = decode((yield* Effect.promise(() => fetch(url))).headers.get("payment-required")).accepts[0]
  const buyer = yield* facilitator.account(10_000n)
  const clientOf = (keypair: Keypair, storage = memoryClientStorage()) =>
    new BatchStellarClient({
      secret: keypair.secret(),
      rpcUrl: facilitator.ledgerUrl,
      depositTimes: 5,
      storage
    })
  /** The steps of an official client: it pays, and pays once more if the answer allowed it to recover. */
  const buy = async (client: BatchStellarClient, isLost = false): Promise<string> => {
    for (let attempt = 1; ; attempt++) {
      const { payload } = await client.createPaymentPayload(2, terms)
      const paymentPayload = { x402Version: 2, accepted: terms, payload }
      const response = await fetch(url, { headers: { "payment-signature": encode(paymentPayload) } })
      if (isLost) return payload.type
      const settleResponse = decode(response.headers.get("payment-response"))
      const paymentRequired = decode(response.headers.get("payment-required"))
      const context = { paymentPayload, requirements: terms, settleResponse, paymentRequired }
      const recovered = await client.schemeHooks.onPaymentResponse(context)
      if (response.status === 200) return payload.type
      if (recovered?.recovered !== true || attempt === 2) throw new Error(paymentRequired?.error)
    }
  }
  return { facilitator, server, receiver, url, terms, buyer, clientOf, buy }
})

it.live("a deposit whose answer was lost is not made again, and an emptied channel is filled again", () =>
  Effect.gen(function* () {
    const { buy, buyer, clientOf, facilitator, url } = yield* makeWorld()
    const client = clientOf(buyer)
    yield* Effect.promise(async () => {
      assert.strictEqual(await buy(client, true), "deposit")
      // The seller's total is proven by the voucher of the lost deposit.
      assert.strictEqual(await buy(client), "voucher")
    })
    assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 9_500n)
    yield* Effect.promise(async () => {
      assert.strictEqual(await buy(client), "voucher")
      // Another process of the same buyer has everything refunded.
      const other = clientOf(buyer)
      await other.refund(url)
    })
    assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 9_700n)
    yield* Effect.promise(async () => assert.strictEqual(await buy(client), "deposit"))
    assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 9_200n)
  }).pipe(Effect.scoped)
)

it.live("one channel that cannot be claimed keeps no other from its seller, and is named", () =>
  Effect.gen(function* () {
    const { buy, clientOf, facilitator, receiver, server } = yield* makeWorld()
    const buyers = yield* Effect.forEach([1, 2, 3], () => facilitator.account(1_000n))
    yield* Effect.promise(async () => {
      for (const keypair of buyers) await buy(clientOf(keypair))
    })
    const before = yield* Effect.promise(() => server.channels.list())
    const [dead] = before
    // The state after an unanswered withdrawal: more was charged than is left.
    const more = { chargedCumulativeAmount: "501", signedMaxClaimable: "501" }
    const { list } = server.channels
    const withDead = async () => (await list()).map((one) => (one === dead ? { ...one, ...more } : one))
    Object.assign(server.channels, { list: withDead })
    const claims = new BatchClaims({ server, facilitator: facilitator.url, network, token: testnetUsdc })
    const error = yield* Effect.promise(() => claims.claim().then(() => "", String))
    assert.match(error, new RegExp(`1 of 3 channels are not claimed: ${dead!.channelId}: invalid_batch_settlement_`))
    yield* Effect.promise(() => claims.settle())
    assert.strictEqual(yield* facilitator.balance(receiver), 200n)
    // Our claims are recorded; a claim by another process is not a failure.
    const others = (yield* Effect.promise(() => list())).filter((one) => one !== dead)
    assert.deepStrictEqual(new Set(others.map(({ totalClaimed }) => totalClaimed)), new Set(["100"]))
    // A claim does not count as a reading: a withdrawal may have begun since the ledger was read.
    const readAt = (channels: typeof before) => channels.map(({ onchainSyncedAt }) => onchainSyncedAt)
    assert.deepStrictEqual(readAt(others), readAt(before.slice(1)))
    yield* Effect.promise(async () => {
      for (const one of others)
        await server.channels.sync(one.channelId, { ...one, totalClaimed: "0", onchainSyncedAt: undefined })
      assert.deepStrictEqual(new Set((await list()).map(({ totalClaimed }) => totalClaimed)), new Set(["0"]))
      Object.assign(server.channels, { list: async () => (await list()).filter((one) => one !== dead) })
      assert.deepStrictEqual(await claims.claim(), [])
    })
  }).pipe(Effect.scoped)
)

it.live("a seller's record of a backup continues from what was claimed, whatever its buyers know", () =>
  Effect.gen(function* () {
    const storage = memoryStorage()
    const { buy, clientOf, facilitator, receiver, server } = yield* makeWorld(channelsOver(storage))
    const buyers = yield* Effect.forEach([1, 2], () => facilitator.account(1_000n))
    const [ahead, even] = buyers.map((keypair) => clientOf(keypair)) as [BatchStellarClient, BatchStellarClient]
    const claims = new BatchClaims({ server, facilitator: facilitator.url, network, token: testnetUsdc })
    yield* Effect.promise(async () => {
      for (const client of [ahead, even]) await buy(client)
      const backup = await storage.list()
      for (const client of [ahead, even]) await buy(client)
      await claims.claim()
      await claims.settle()
      await buy(ahead)
      for (const one of backup) await storage.updateChannel(one.channelId, () => ({ ...one, onchainSyncedAt: 0 }))
      for (const client of [even, ahead, even, ahead]) assert.strictEqual(await buy(client), "voucher")
      const charged = (await storage.list()).map((one) => one.chargedCumulativeAmount)
      // The voucher of the buyer that is ahead raises the record.
      assert.deepStrictEqual(charged, ["500", "400"])
      await claims.claim()
      await claims.settle()
    })
    assert.strictEqual(yield* facilitator.balance(receiver), 900n)
  }).pipe(Effect.scoped)
)

it.live("a seller without a record sells nothing for a voucher below what was claimed", () =>
  Effect.gen(function* () {
    const storage = memoryStorage()
    const { buy, buyer, clientOf, facilitator, server, terms } = yield* makeWorld(channelsOver(storage))
    const claims = new BatchClaims({ server, facilitator: facilitator.url, network, token: testnetUsdc })
    const known = memoryClientStorage()
    const client = clientOf(buyer, known)
    yield* Effect.promise(async () => {
      for (let call = 0; call < 3; call++) await buy(client)
      await claims.claim()
      for (const one of await storage.list()) await storage.updateChannel(one.channelId, () => undefined)
      // One atom above the claimed amount: such a voucher would pay one atom.
      await known.set(client.channelIdOf(terms), { charged: "201", balance: "500" })
      assert.match(await buy(client).then(String, String), /cumulative_below_claimed/)
      await known.set(client.channelIdOf(terms), { charged: "300", balance: "500" })
      assert.strictEqual(await buy(client), "voucher")
    })
  }).pipe(Effect.scoped)
)

it.live("a buyer's record of a backup continues from what was claimed, where its seller has no record", () =>
  Effect.gen(function* () {
    const storage = memoryStorage()
    const { buy, buyer, clientOf, facilitator, server, terms, url } = yield* makeWorld(channelsOver(storage))
    const claims = new BatchClaims({ server, facilitator: facilitator.url, network, token: testnetUsdc })
    const known = memoryClientStorage()
    const client = clientOf(buyer, known)
    yield* Effect.promise(async () => {
      await buy(client)
      const id = client.channelIdOf(terms)
      const backup = (await known.get(id))!
      for (let call = 0; call < 2; call++) await buy(client)
      await claims.claim()
      for (const one of await storage.list()) await storage.updateChannel(one.channelId, () => undefined)
      // The newest claim may be of the voucher just sent: that one is not paid a second time.
      await known.set(id, { charged: "200", balance: "500" })
      assert.match(await buy(clientOf(buyer, known)).then(String, String), /cumulative_below_claimed/)
      await known.set(id, backup)
      assert.strictEqual(await buy(clientOf(buyer, known)), "voucher")
      assert.deepStrictEqual(
        (await storage.list()).map((one) => one.chargedCumulativeAmount),
        ["400"]
      )
      await claims.claim()
      // The facilitator's store has no proof for a channel without a record.
      await known.set(id, { charged: "301", balance: "500", signed: "401" })
      const error = "invalid_batch_settlement_ledger_cumulative_amount_mismatch"
      const paymentRequired = { error, accepts: [terms] }
      const again = clientOf(buyer, known)
      assert.isTrue((await again.schemeHooks.onPaymentResponse({ paymentRequired }))?.recovered)
      assert.strictEqual((await known.get(id))?.charged, "400")
      for (const one of await storage.list()) await storage.updateChannel(one.channelId, () => undefined)
      await known.set(id, backup)
      assert.strictEqual((await clientOf(buyer, known).refund(url)).amount, "100")
    })
  }).pipe(Effect.scoped)
)

it.live("five unanswered requests make one deposit, and three stop the client", () =>
  Effect.gen(function* () {
    const { buyer, clientOf, facilitator, terms } = yield* makeWorld()
    const storage = memoryClientStorage()
    yield* Effect.promise(async () => {
      const transactions = new Set<string>()
      for (const _ of [1, 2, 3]) {
        // A client in a new process gets it from its storage.
        const { payload } = await clientOf(buyer, storage).createPaymentPayload(2, terms)
        transactions.add(payload.deposit.authorization.transaction)
      }
      assert.strictEqual(transactions.size, 1)
      const stopped = clientOf(buyer, storage)
      for (const _ of [1, 2])
        assert.match(
          await stopped.createPaymentPayload(2, terms).then(String, String),
          /3 answers .* in a row were lost/
        )
      await stopped.goOn(terms)
      assert.strictEqual((await stopped.createPaymentPayload(2, terms)).payload.type, "deposit")
      // Other terms of the same seller are another channel, and no other deposit.
      const other = { ...terms, extra: { ...terms.extra, receiverAuthorizer: Keypair.random().publicKey() } }
      assert.match(await stopped.createPaymentPayload(2, other).then(String, String), /has no answer yet/)
    })
    assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 10_000n)
  }).pipe(Effect.scoped)
)

it.live("a deposit and its delay are bounded, whatever a seller announces", () =>
  Effect.gen(function* () {
    const { buyer, clientOf, terms } = yield* makeWorld()
    const refusals: ReadonlyArray<readonly [object, RegExp]> = [
      [{ amount: "1", extra: { ...terms.extra, minDeposit: "500000000" } }, /above this buyer's limit/],
      [{ amount: "1", extra: { ...terms.extra, minDeposit: "51" } }, /above this buyer's limit/],
      [{ amount: "10000001" }, /above this buyer's limit/],
      [{ extra: { ...terms.extra, withdrawDelay: 2_592_000 } }, /withdraw delay/],
      [{ extra: { ...terms.extra, withdrawDelay: 60 } }, /withdraw delay/]
    ]
    for (const [changes, why] of refusals)
      yield* Effect.promise(async () => {
        const asked = clientOf(buyer).createPaymentPayload(2, { ...terms, ...changes })
        assert.match(await asked.then(String, String), why)
      })
  }).pipe(Effect.scoped)
)
