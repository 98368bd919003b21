import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { channelIdOf } from "../../../plugins/x402-batch/batchCodec.ts"
import type { BatchChannel } from "../../support/batchBuyer.ts"
import { remoteAuthorizer, remoteChannels } from "../../../examples/batch/remoteChannels.ts"
import { eventually } from "../../support/eventually.ts"
import { startBatch } from "./world.ts"

const word = (reason: string) => `invalid_batch_settlement_ledger_${reason}`

describe("a voucher", () => {
  it.live("is refused with the reason of what is wrong with it, and nothing is asked of the database", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { batch, contract } = facilitator
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      const other = batch.channel(channel.payer, seller.payTo, seller.authorizer)
      const at = { networkId: new Uint8Array(32).fill(7), address: contract }
      const pay = (of: BatchChannel, max: bigint, price = 100n, changes: object = {}) =>
        Effect.map(facilitator.verify(batch.body(of, batch.pay(of, max), price, changes)), ({ json }) =>
          json.isValid ? "valid" : json.invalidReason
        )
      const changed = (config: Partial<BatchChannel["config"]>): BatchChannel => {
        const made = { ...channel.config, ...config }
        return { ...channel, config: made, channelId: channelIdOf(batch.at, made) }
      }
      const terms = batch.body(channel, {}, 0n).paymentRequirements
      const extra = (of: object) => ({ extra: { ...terms.extra, ...of } })
      const stranger = Keypair.random()
      assert.deepStrictEqual(
        {
          within: yield* pay(channel, 1_000n),
          above: yield* pay(channel, 1_001n),
          belowPrice: yield* pay(channel, 99n),
          unknown: yield* pay(other, 100n),
          otherId: yield* pay({ ...channel, channelId: other.channelId }, 200n),
          otherNetwork: yield* pay({ ...channel, channelId: channelIdOf(at, channel.config) }, 200n),
          unsigned: yield* pay({ ...channel, payerAuthorizer: stranger }, 200n),
          receiver: yield* pay(channel, 200n, 100n, { payTo: stranger.publicKey() }),
          authorizer: yield* pay(channel, 200n, 100n, extra({ receiverAuthorizer: stranger.publicKey() })),
          delay: yield* pay(channel, 200n, 100n, extra({ withdrawDelay: 901 })),
          delayRange: yield* pay(changed({ withdrawDelay: 899 }), 200n),
          contract: yield* pay(
            channel,
            200n,
            100n,
            extra({ batchContract: StrKey.encodeContract(new Uint8Array(32)) })
          ),
          idForm: yield* pay({ ...channel, channelId: channel.channelId.toUpperCase() }, 200n),
          facilitator: yield* pay(changed({ receiver: yield* sponsorOf(facilitator) }), 200n)
        },
        {
          within: "valid",
          above: word("cumulative_exceeds_balance"),
          belowPrice: word("cumulative_amount_mismatch"),
          unknown: word("channel_not_found"),
          otherId: word("channel_id_mismatch"),
          otherNetwork: word("channel_id_mismatch"),
          unsigned: word("voucher_signature"),
          receiver: word("receiver_mismatch"),
          authorizer: word("receiver_authorizer_mismatch"),
          delay: word("withdraw_delay_mismatch"),
          delayRange: word("withdraw_delay_out_of_range"),
          contract: word("channel_id_mismatch"),
          idForm: word("channel_id_invalid"),
          facilitator: word("facilitator_is_party")
        }
      )
      // The official seller's channel manager sends no timeout, where nothing expires by one.
      assert.strictEqual(yield* pay(channel, 1_000n, 100n, { maxTimeoutSeconds: 0 }), "valid")
      const depositing = { ...batch.pay(channel, 1_000n), type: "deposit" }
      const untimed = batch.body(channel, depositing, 100n, { maxTimeoutSeconds: 0 })
      assert.strictEqual((yield* facilitator.verify(untimed)).json.invalidReason, "invalid_request")
      const differing = batch.body(channel, batch.pay(channel, 200n), 100n)
      const dearer = { ...differing, paymentRequirements: { ...differing.paymentRequirements, amount: "150" } }
      assert.strictEqual((yield* facilitator.verify(dearer)).json.invalidReason, "requirements_mismatch")
      assert.strictEqual((yield* facilitator.settle(dearer)).json.errorReason, "requirements_mismatch")
      for (const of of [{ withdrawDelay: 901 }, { receiverAuthorizer: stranger.publicKey() }, { batchContract: "" }]) {
        const accepted = { ...terms, amount: "100", ...extra(of) }
        const other = { ...differing, paymentPayload: { ...differing.paymentPayload, accepted } }
        assert.strictEqual((yield* facilitator.verify(other)).json.invalidReason, "requirements_mismatch")
      }
      const lessCharged = { ...differing, paymentRequirements: { ...differing.paymentRequirements, amount: "40" } }
      assert.strictEqual((yield* facilitator.verify(lessCharged)).json.invalidReason, "requirements_mismatch")
      assert.strictEqual((yield* facilitator.settle(lessCharged)).json.errorReason, word("payload_type"))
      const declared = {
        ...lessCharged,
        paymentPayload: { ...lessCharged.paymentPayload, extensions: { bazaar: { info: {} } } }
      }
      const seen = yield* facilitator.verify({ ...declared, paymentRequirements: declared.paymentPayload.accepted })
      assert.notStrictEqual(seen.headers.get("extension-responses"), null, "its declaration is observed")
      const free = yield* facilitator.settle(declared)
      assert.strictEqual(free.headers.get("extension-responses"), null, "and never as a sale without a transaction")
      const rows = yield* facilitator.sql<{ n: number }>`select count(*)::int4 as n from kernel_settlements`
      assert.deepStrictEqual(rows, [{ n: 1 }])
    }).pipe(Effect.scoped)
  )

  it.live("is settled for a caller whose record in the store charged it, and for no other", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch({
        set: ["batch_store.allow_keyless=true"],
        environment: { BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test" }
      })
      const { batch } = facilitator
      const seller = yield* facilitator.seller
      const store = { facilitator: facilitator.url, network: "ledger:testnet" }
      const { address } = yield* Effect.promise(() => remoteAuthorizer(store))
      const channel = yield* facilitator.open({ ...seller, authorizer: Keypair.fromPublicKey(address) }, 1_000n)
      const settle = (max: bigint) =>
        Effect.map(facilitator.settle(batch.body(channel, batch.pay(channel, max), 100n)), ({ json }) => json)
      // Generic middleware keeps no record: it receives no success, however often it asks.
      for (const _ of [1, 2]) assert.strictEqual((yield* settle(200n)).errorReason, word("payload_type"))
      const channels = remoteChannels(store)
      const voucher = batch.voucher(channel, 200n)
      const pendingId = "request-0123456789"
      const { config, channelId } = channel
      const reservation = { pendingId, channelConfig: config, voucher, price: "100", ttlMillis: 60_000 }
      yield* Effect.promise(() => channels.reserve(reservation))
      assert.strictEqual((yield* settle(200n)).errorReason, word("payload_type"))
      yield* Effect.promise(() => channels.charge({ channelId, pendingId, amount: "40", voucher }))
      const { amount, extra, success, transaction } = yield* settle(200n)
      assert.deepStrictEqual([success, transaction, amount, extra.chargedAmount], [true, "", "", "100"])
      assert.strictEqual((yield* settle(300n)).errorReason, word("payload_type"))
    }).pipe(Effect.scoped)
  )

  it.live("and a deposit are the only payloads that verify for a price", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { batch } = facilitator
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      // The buyer's own channel with the seller: it holds the authorizer's key, and claims an atom.
      const own = yield* facilitator.open({ ...seller, authorizer: Keypair.random() }, 1_000n)
      const claim = (total: bigint) => batch.claim([{ channel: own, max: total, total }])
      assert.strictEqual((yield* facilitator.settled(batch.body(own, claim(1n), 0n))).json.success, true)
      const start = yield* Effect.promise(() => batch.withdraw(channel, "Start"))
      for (const payload of [start, claim(2n), batch.settle(seller.payTo)]) {
        const verified = (price: bigint) =>
          Effect.map(facilitator.verify(batch.body(channel, payload, price)), ({ json }) => json)
        // A seller without the scheme's own part would answer it: its settle succeeds.
        assert.strictEqual((yield* verified(100n)).invalidReason, word("payload_type"), payload.type)
        assert.strictEqual((yield* verified(0n)).isValid, true, payload.type)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is refused within a ledger of a withdrawal's start, and below what was claimed", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { batch } = facilitator
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      const pay = (max: bigint) => facilitator.verify(batch.body(channel, batch.pay(channel, max), 100n))
      assert.strictEqual((yield* pay(300n)).json.isValid, true)
      const claim = batch.claim([{ channel, max: 300n, total: 300n }])
      assert.strictEqual((yield* facilitator.settle(batch.body(channel, claim, 0n))).json.success, true)
      assert.strictEqual((yield* pay(300n)).json.invalidReason, word("cumulative_below_claimed"))
      // Above the claimed total, but not by the price.
      assert.strictEqual((yield* pay(399n)).json.invalidReason, word("cumulative_below_claimed"))
      assert.strictEqual((yield* pay(400n)).json.extra.totalClaimed, "300")
      const wish = { ...batch.pay(channel, 300n), type: "refund" }
      assert.strictEqual((yield* facilitator.verify(batch.body(channel, wish, 100n))).json.isValid, true)
      assert.strictEqual(
        (yield* facilitator.settle(batch.body(channel, wish, 100n))).json.errorReason,
        word("refund_payload")
      )
      const start = yield* Effect.promise(() => batch.withdraw(channel, "Start"))
      const started = yield* facilitator.settle(batch.body(channel, start, 0n))
      assert.deepStrictEqual([started.json.success, started.json.amount], [true, "0"], started.text)
      assert.strictEqual((yield* pay(400n)).json.invalidReason, word("withdrawal_started"))
      assert.strictEqual(yield* facilitator.balance(channel.config.payer), 0n)
      const early = yield* Effect.promise(() => batch.withdraw(channel, "End"))
      const refused = yield* facilitator.settle(batch.body(channel, early, 0n))
      assert.strictEqual(refused.json.errorReason, word("withdraw_simulation_failed"))
      assert.match(refused.json.errorMessage, /WithdrawalTooEarly/)
    }).pipe(Effect.scoped)
  )

  it.live("learns of what another facilitator settled with the next ledger", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { batch } = facilitator
      const other = yield* startBatch({
        ledgerUrl: facilitator.ledgerUrl,
        set: ["plugins=[x402-exact,x402-batch]", `networks.ledger:testnet.batch_contract=${facilitator.contract}`]
      })
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      const at = (one: typeof facilitator) =>
        Effect.map(one.verify(batch.body(channel, batch.pay(channel, 200n), 100n)), ({ json }) => json)
      assert.strictEqual((yield* at(facilitator)).isValid, true)
      const start = yield* Effect.promise(() => batch.withdraw(channel, "Start"))
      assert.strictEqual((yield* other.settle(batch.body(channel, start, 0n))).json.success, true)
      yield* eventually(at(facilitator), ({ invalidReason }) => invalidReason === word("withdrawal_started"))
    }).pipe(Effect.scoped)
  )
})

const sponsorOf = (facilitator: Effect.Success<ReturnType<typeof startBatch>>) =>
  Effect.map(facilitator.ask("/supported"), ({ json }) => json.kinds[0].signer as string)
