// The claimer against the ledger: its claims for a seller, and claims that do not fit one transaction.
import { assert, describe, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { remoteAuthorizer, remoteChannels, setClaimPolicy } from "../../../examples/batch/remoteChannels.ts"
import type { BatchChannel } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type DatabaseKind, databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { trust } from "../../support/trust.ts"
import { startReceiver } from "../webhooks/receiver.ts"
import { startBatch } from "../x402-batch/world.ts"

const apiKey = "shop-secret-0123456789"
const environment = {
  FACILITATOR_API_KEYS: `shop:${apiKey}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}
const secret = "a-secret-that-signs-webhooks"
const network = "ledger:testnet"
/** A claim of two channels costs about 30,000 stroops, a claim of three 36,000. */
const fees = "{max_resource_fee_stroops: 33000, max_inclusion_fee_stroops: 10000, max_total_fee_stroops: 43000}"
const count = 4

/** A facilitator that settles for anyone, and another with the store, which checks each second. */
const watchedWorld = Effect.fnUntraced(function* (database: DatabaseKind) {
  const first = yield* startBatch({ channels: 5, closeMillis: 500 })
  const hook = yield* startReceiver({ secret })
  const store = yield* startBatch({
    database,
    ledgerUrl: first.ledgerUrl,
    set: [
      "plugins=[x402-exact,x402-batch,batch-store,webhooks]",
      `webhooks.receivers=${JSON.stringify([{ key: "shop", url: hook.url, secret_env: "SHOP_HOOK" }])}`,
      `networks.ledger:testnet.batch_contract=${first.contract}`,
      "batch_store.poll_seconds=1",
      "batch_store.watch_seconds=1"
    ],
    environment: { ...environment, SHOP_HOOK: secret }
  })
  const { batch } = first
  const options = { facilitator: store.url, apiKey, network }
  const { address } = yield* Effect.promise(() => remoteAuthorizer(options))
  const { payTo } = yield* first.seller
  const open = Effect.fnUntraced(function* (authorizer: string, receiver = payTo) {
    const payer = yield* first.account(1_000n)
    const made = batch.channel(payer, receiver, Keypair.random(), { receiverAuthorizer: authorizer })
    const payload = yield* Effect.promise(() => batch.deposit(made, 1_000n, 1n))
    const { json, text } = yield* first.settled(batch.body(made, payload, 1n))
    assert.strictEqual(json.success, true, text)
    return made
  })
  const record = (key: string, { channelId, config }: BatchChannel, voucher: any, amount: string) =>
    Effect.promise(async () => {
      const stored = remoteChannels({ ...options, apiKey: key })
      const pendingId = `request-0123456789-${amount}`
      const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
      const asked = { pendingId, channelConfig: config, voucher, price: amount, state, ttlMillis: 60_000 }
      assert.strictEqual((await stored.reserve(asked)).status, "reserved")
      assert.strictEqual((await stored.charge({ channelId, pendingId, amount, voucher })).status, "charged")
    })
  const withdraw = Effect.fnUntraced(function* (channel: BatchChannel, stage: "Start" | "End") {
    const payload = yield* Effect.promise(() => batch.withdraw(channel, stage))
    const { json, text } = yield* first.settled(batch.body(channel, payload, 0n))
    assert.strictEqual(json.success, true, text)
  })
  const requested = (channel: BatchChannel) =>
    Effect.map(
      store.sql<{ readonly at: number }>`select withdraw_requested_at::float8 as at from batch_store_channels
        where channel_id = ${channel.channelId}`,
      (rows) => rows.map(({ at }) => at)
    )
  return { batch, first, hook, store, address, payTo, open, record, withdraw, requested }
})

for (const database of databaseKinds)
  describe(`the claimer on ${database}`, () => {
    it.live(
      "halves claims until each fits one transaction, and pays the seller once",
      () =>
        Effect.gen(function* () {
          const first = yield* startBatch({ channels: 5 })
          const store = yield* startBatch({
            database,
            ledgerUrl: first.ledgerUrl,
            set: [
              "plugins=[x402-exact,x402-batch,batch-store]",
              `networks.ledger:testnet.batch_contract=${first.contract}`,
              `networks.ledger:testnet.fees={batch-settlement: ${fees}}`,
              "batch_store.poll_seconds=1"
            ],
            environment
          })
          const { batch } = first
          const options = { facilitator: store.url, apiKey, network }
          const { address } = yield* Effect.promise(() => remoteAuthorizer(options))
          const { payTo } = yield* first.seller
          const open = Effect.fnUntraced(function* (authorizer: string) {
            const payer = yield* first.account(1_000n)
            const made = batch.channel(payer, payTo, Keypair.random(), { receiverAuthorizer: authorizer })
            const payload = yield* Effect.promise(() => batch.deposit(made, 1_000n, 1n))
            const { json, text } = yield* first.settled(batch.body(made, payload, 1n))
            assert.strictEqual(json.success, true, text)
            return made
          })
          // A receiver's first claim creates its ledger entry. That cost alone exceeds this store's budget.
          const key = Keypair.random()
          const own: BatchChannel = { ...(yield* open(key.publicKey())), receiverAuthorizer: key }
          const claim = batch.claim([{ channel: own, max: 1n, total: 1n }])
          assert.strictEqual((yield* first.settled(batch.body(own, claim, 0n))).json.success, true)

          const channels = yield* Effect.forEach(Array.from({ length: count }), () => open(address), {
            concurrency: 2
          })
          const stored = remoteChannels(options)
          yield* Effect.promise(async () => {
            for (const [at, { channelId, config, payer }] of channels.entries()) {
              const pendingId = `request-0123456789-${at}`
              const voucher = batch.voucher({ ...channels[at]!, payerAuthorizer: payer }, 100n)
              const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
              const asked = { pendingId, channelConfig: config, voucher, price: "100", state, ttlMillis: 60_000 }
              assert.strictEqual((await stored.reserve(asked)).status, "reserved")
              const charge = { channelId, pendingId, amount: "100", voucher }
              assert.strictEqual((await stored.charge(charge)).status, "charged")
            }
            await setClaimPolicy(options, { token: testnetUsdc, claimEverySeconds: 1 })
          })
          yield* eventually(first.balance(payTo), (balance) => balance === 1n + 100n * BigInt(count))
          const claims = yield* store.sql<{ state: string; channels: number; reason: string | null }>`
            select state, jsonb_array_length(payload->'claims') as channels, reason from batch_store_claims
            where kind = 'claim' and state <> 'open' order by id`
          const settled = claims.filter(({ state }) => state === "settled").map((one) => one.channels)
          assert.strictEqual(
            settled.reduce((sum, one) => sum + one, 0),
            count
          )
          assert.strictEqual(Math.max(...settled), 2, JSON.stringify(claims))
          const halved = claims.filter(({ reason }) => reason?.endsWith("fee_exceeds_maximum"))
          assert.ok(halved.length > 0 && halved.every((one) => one.channels > 2), JSON.stringify(claims))
        }).pipe(Effect.scoped),
      240_000
    )

    it.live(
      "answers a withdrawal that another seller's record would hide",
      () =>
        Effect.gen(function* () {
          const { address, batch, first, open, payTo, record, store, withdraw } = yield* watchedWorld(database)
          const channel = yield* open(address)
          yield* record(apiKey, channel, batch.voucher(channel, 100n), "100")
          // The buyer's accomplice has a record of it, of a version that took it, with a larger voucher.
          const { maxClaimableAmount, signature } = batch.voucher(channel, 900n)
          yield* store.sql`insert into batch_store_channels (principal, network, channel_id, config, receiver, token,
              withdraw_delay, delegated, charged, signed_max, signature)
            select 'key:other', network, channel_id, config, receiver, token, withdraw_delay, false, 900,
              ${maxClaimableAmount}::numeric, ${signature} from batch_store_channels`
          yield* withdraw(channel, "Start")
          yield* eventually(first.balance(payTo), (balance) => balance === 100n)
        }).pipe(Effect.scoped),
      240_000
    )

    it.live(
      "notes withdrawals that ended, also those that it never saw",
      () =>
        Effect.gen(function* () {
          const { address, batch, first, hook, open, record, requested, store, withdraw } =
            yield* watchedWorld(database)
          // A seller that claims by its own key and does not, in a record of a version that took its channels.
          const silent = yield* open(address)
          yield* record(apiKey, silent, batch.voucher(silent, 100n), "100")
          yield* store.sql`update batch_store_channels set delegated = false`
          yield* withdraw(silent, "Start")
          const { withdrawRequestedAt } = yield* Effect.promise(() => batch.state(silent))
          assert.ok(withdrawRequestedAt > 0)
          yield* eventually(requested(silent), ([at]) => at === withdrawRequestedAt)
          yield* Effect.promise(() => fetch(`${first.ledgerUrl}/advance?seconds=901`, { method: "POST" }))
          yield* withdraw(silent, "End")
          yield* eventually(requested(silent), ([at]) => at === 0)

          // One that started and ended while the store was down: its record still shows the balance.
          const unseen = yield* open(address)
          yield* withdraw(unseen, "Start")
          yield* Effect.promise(() => fetch(`${first.ledgerUrl}/advance?seconds=901`, { method: "POST" }))
          yield* withdraw(unseen, "End")
          yield* record(apiKey, unseen, batch.voucher(unseen, 100n), "100")
          const ready = Effect.map(store.ask("/health/ready"), ({ text }) => text)
          yield* eventually(ready, (text) => text.includes("have withdrawn") && text.includes("charged in 2 channels"))
          // The seller's webhook reports each, once.
          const reported = Effect.sync(() => hook.received.filter(({ type }) => type === "channel.lost"))
          const messages = yield* eventually(reported, ({ length }) => length >= 2)
          assert.deepStrictEqual(
            messages.map(({ data, isSigned }) => [data.channelId, data.lost, data.payTo, isSigned]),
            [silent, unseen].map(({ channelId, config }) => [channelId, "100", config.receiver, true])
          )
        }).pipe(Effect.scoped),
      240_000
    )

    it.live(
      "shows what it claimed for a receiver that cannot be paid, and pays it later",
      () =>
        Effect.gen(function* () {
          const { address, batch, first, open, record, store } = yield* watchedWorld(database)
          const payee = yield* first.account(0n)
          const channel = yield* open(address, payee.publicKey())
          yield* trust(first, payee, testnetUsdc, "0")
          yield* record(apiKey, channel, batch.voucher(channel, 100n), "100")
          const options = { facilitator: store.url, apiKey, network }
          yield* Effect.promise(() => setClaimPolicy(options, { token: testnetUsdc, claimEverySeconds: 1 }))
          const ready = Effect.map(store.ask("/health/ready"), ({ text }) => text)
          const words = `100 of ${testnetUsdc}, claimed for ${payee.publicKey()} of key:shop, is not paid out`
          yield* eventually(ready, (text) => text.includes(words))
          const metrics = Effect.map(store.ask("/metrics"), ({ text }) => text)
          yield* eventually(metrics, (text) => /tollkeeper_batch_store_unpaid_units\{.*"USDC".*\} 100\b/.test(text))
          yield* trust(first, payee, testnetUsdc, "1000")
          yield* store.sql`update batch_store_claims set begun_at = clock_timestamp() where state = 'open'`
          yield* eventually(first.balance(payee.publicKey()), (balance) => balance === 100n)
          yield* eventually(ready, (text) => !text.includes("is not paid out"))
        }).pipe(Effect.scoped),
      240_000
    )

    it.live(
      "claims the channels anew of a claim whose outcome is not known",
      () =>
        Effect.gen(function* () {
          const first = yield* startBatch({ channels: 5, set: ["limits.settle_timeout_ms=20000"] })
          const store = yield* startBatch({
            database,
            ledgerUrl: first.ledgerUrl,
            set: [
              "plugins=[x402-exact,x402-batch,batch-store]",
              `networks.ledger:testnet.batch_contract=${first.contract}`,
              "limits.settle_timeout_ms=2000",
              "batch_store.poll_seconds=1"
            ],
            environment
          })
          const { batch } = first
          const options = { facilitator: store.url, apiKey, network }
          const { address } = yield* Effect.promise(() => remoteAuthorizer(options))
          const { payTo } = yield* first.seller
          const stored = remoteChannels(options)
          const charge = Effect.fnUntraced(function* (at: number) {
            const payer = yield* first.account(1_000n)
            const channel = batch.channel(payer, payTo, Keypair.random(), { receiverAuthorizer: address })
            const payload = yield* Effect.promise(() => batch.deposit(channel, 1_000n, 1n))
            assert.strictEqual((yield* first.settled(batch.body(channel, payload, 1n))).json.success, true)
            const pendingId = `request-0123456789-${at}`
            const voucher = batch.voucher({ ...channel, payerAuthorizer: payer }, 100n)
            const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
            yield* Effect.promise(async () => {
              const { channelId, config } = channel
              const asked = { pendingId, channelConfig: config, voucher, price: "100", state, ttlMillis: 60_000 }
              assert.strictEqual((await stored.reserve(asked)).status, "reserved")
              assert.strictEqual(
                (await stored.charge({ channelId, pendingId, amount: "100", voucher })).status,
                "charged"
              )
            })
          })
          yield* charge(0)
          yield* charge(1)
          yield* first.ledger.setFaults([{ drops: () => true }])
          yield* Effect.promise(() => setClaimPolicy(options, { token: testnetUsdc, claimEverySeconds: 1 }))
          // An operator gave up this claim before the network had taken it.
          const given = store.sql`update kernel_settlements set state = 'unresolved', resolved_at = clock_timestamp()
          where starts_with(authorization_key, 'claim:') and state in ('prepared', 'submitted') returning 1`
          yield* eventually(given, ({ length }) => length === 1)
          yield* store.sql`update kernel_channels set settlement = null, sequence = null where settlement is not null`
          yield* first.ledger.setFaults([])
          yield* eventually(first.balance(payTo), (balance) => balance === 200n)
          const [ended] = yield* store.sql<{ state: string; reason: string }>`
          select state, reason from batch_store_claims where kind = 'claim' order by id limit 1`
          assert.deepStrictEqual(ended, { state: "failed", reason: "unresolved" })
        }).pipe(Effect.scoped),
      240_000
    )
  })
