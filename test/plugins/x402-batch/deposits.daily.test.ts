// Invalid deposits: each role of a channel in another's place, and an authorization of another call, amount, address or
// key, with more or fewer invocations below it. Each is refused with its own reason before the ledger is called, and a
// deposit by another account for the payer is accepted.
import { Keypair, StrKey, xdr } from "@stellar/stellar-sdk"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { depositArgs, depositTransferArgs, settleArgs } from "../../../plugins/x402-batch/batchCalls.ts"
import { channelIdOf } from "../../../plugins/x402-batch/batchCodec.ts"
import { encodeValue, type Value } from "../../../kernel/stellar/Value.ts"
import { callOf } from "../../../runtime/redteam/authorization.ts"
import type { BatchChannel, Below, Otherwise } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { trust } from "../../support/trust.ts"
import { startBatch } from "./world.ts"

const word = (reason: string) => `invalid_batch_settlement_ledger_${reason}`
const scVal = (value: Value) => xdr.ScVal.fromXdr(encodeValue(value))

/** A test's changes to an honest deposit of 1,000. */
interface Changes {
  readonly of?: BatchChannel
  /** The amount in the payload. */
  readonly amount?: bigint
  readonly max?: bigint
  readonly voucher?: object
  /** The authorized amount. */
  readonly authorized?: bigint
  readonly signer?: Keypair
  readonly from?: string
  readonly config?: BatchChannel["config"]
  readonly functionName?: string
  readonly args?: ReadonlyArray<Value>
  readonly below?: (honest: Below) => ReadonlyArray<Below>
  readonly life?: number
  readonly otherwise?: Otherwise
}

it.live("a deposit is refused by its reason when anything of it is another's", () =>
  Effect.gen(function* () {
    const assets = `[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7, max_payment: 100000}]`
    const facilitator = yield* startBatch({ set: [`networks.ledger:testnet.assets=${assets}`] })
    const { batch, contract } = facilitator
    const seller = yield* facilitator.seller
    const payer = yield* facilitator.account(5_000n)
    const friend = yield* facilitator.account(5_000n)
    const stranger = Keypair.random()
    const session = Keypair.random()
    const channel = batch.channel(payer, seller.payTo, seller.authorizer, { payerAuthorizerKey: session })
    const { config } = channel
    const sponsor: string = (yield* facilitator.ask("/supported")).json.kinds[0].signer
    const changed = (change: Partial<BatchChannel["config"]>): BatchChannel => {
      const made = { ...config, ...change }
      return { ...channel, config: made, channelId: channelIdOf(batch.at, made) }
    }

    const bodyOf = (changes: Changes) =>
      Effect.promise(async () => {
        const { amount = 1_000n, max = 100n, of = channel, signer = payer, life = 50 } = changes
        const { authorized = amount, from = signer.publicKey() } = changes
        const honest: Below = { contract: config.token, args: depositTransferArgs(from, contract, authorized) }
        const authorization = await batch.signed(
          signer,
          changes.functionName ?? "deposit",
          changes.args ?? depositArgs(from, changes.config ?? of.config, authorized),
          changes.below?.(honest) ?? [honest],
          life,
          changes.otherwise
        )
        const voucher = { ...batch.voucher(of, max), ...changes.voucher }
        const deposit = { amount: String(amount), authorization }
        return batch.body(channel, { type: "deposit", channelConfig: of.config, voucher, deposit }, 100n)
      })
    const reasonOf = (changes: Changes) =>
      Effect.gen(function* () {
        const body = yield* bodyOf(changes)
        const { json } = yield* facilitator.verify(body)
        return json.isValid === true ? "valid" : String(json.invalidReason)
      })

    const cases: Readonly<Record<string, readonly [reason: string, changes: Changes]>> = {
      // Roles in another's place.
      "the receiver as payer": [
        "receiver_mismatch",
        { of: changed({ payer: config.receiver, receiver: config.payer }) }
      ],
      "the receiver's authorizer as the payer's": [
        "receiver_authorizer_mismatch",
        { of: changed({ payerAuthorizer: config.receiverAuthorizer, receiverAuthorizer: config.payerAuthorizer }) }
      ],
      "the facilitator as payer": ["facilitator_is_party", { of: changed({ payer: sponsor }) }],
      "the facilitator as the payer's authorizer": [
        "facilitator_is_party",
        { of: changed({ payerAuthorizer: sponsor }) }
      ],
      "another token": [
        "token_mismatch",
        { of: changed({ token: StrKey.encodeContract(new Uint8Array(32).fill(3)) }) }
      ],
      "another channel's id": ["channel_id_mismatch", { voucher: { channelId: "00".repeat(32) } }],
      // The voucher.
      "a voucher of the payer, not of its session key": [
        "voucher_signature",
        { voucher: batch.voucher({ ...channel, payerAuthorizer: payer }, 100n) }
      ],
      "a voucher above the deposit": ["cumulative_exceeds_balance", { max: 1_001n }],
      // Amounts.
      "an amount of zero": ["deposit_amount", { amount: 0n, authorized: 1n }],
      "an amount above the asset's bound": ["deposit_amount", { amount: 100_001n }],
      "another amount than authorized": ["deposit_authorization", { authorized: 1_001n }],
      "more than the depositor has": ["insufficient_balance", { amount: 5_001n }],
      // The call.
      "another channel's config": ["deposit_authorization", { config: changed({ salt: "11".repeat(32) }).config }],
      "another function": [
        "deposit_authorization",
        { functionName: "settle", args: settleArgs(seller.payTo, config.token) }
      ],
      "another contract": [
        "deposit_authorization",
        { otherwise: { contract: StrKey.encodeContract(new Uint8Array(32).fill(4)) } }
      ],
      "another call than authorized": [
        "deposit_authorization",
        {
          otherwise: {
            called: callOf(contract, "deposit", depositArgs(payer.publicKey(), config, 1_000n).map(scVal))
          },
          args: depositArgs(payer.publicKey(), config, 999n)
        }
      ],
      // The invocations below it.
      "nothing below": ["deposit_authorization", { below: () => [] }],
      "a transfer to another": [
        "deposit_authorization",
        {
          below: (honest) => [{ ...honest, args: depositTransferArgs(payer.publicKey(), stranger.publicKey(), 1_000n) }]
        }
      ],
      "a larger transfer": [
        "deposit_authorization",
        { below: (honest) => [{ ...honest, args: depositTransferArgs(payer.publicKey(), contract, 1_001n) }] }
      ],
      "a transfer of another token": [
        "deposit_authorization",
        { below: (honest) => [{ ...honest, contract: StrKey.encodeContract(new Uint8Array(32).fill(5)) }] }
      ],
      "two transfers": ["deposit_authorization", { below: (honest) => [honest, honest] }],
      "a transfer below the transfer": [
        "deposit_authorization",
        { below: (honest) => [{ ...honest, below: [honest] }] }
      ],
      // Authorization.
      "no authorization": ["deposit_authorization", { otherwise: { entries: () => [] } }],
      "two authorizations": ["deposit_authorization", { otherwise: { entries: (entry) => [entry, entry] } }],
      "the authorization of another than the call's": [
        "deposit_authorization",
        { signer: friend, from: payer.publicKey() }
      ],
      "the source's authorization": [
        "deposit_authorization",
        { otherwise: { authorization: { credentials: "sourceAccount" } } }
      ],
      "the facilitator as source": ["facilitator_is_party", { otherwise: { source: sponsor } }],
      "another key's signature": [
        "receive_authorization_signature",
        { otherwise: { authorization: { signers: [stranger], signature: (bytes) => bytes.map((byte) => byte ^ 1) } } }
      ],
      "no signature": [
        "receive_authorization_signature",
        { otherwise: { authorization: { signatureValue: () => xdr.ScVal.scvVoid() } } }
      ],
      "an authorization that outlives the timeout": ["payload_authorization_valid_after", { life: 5_000 }],
      "an authorization that ends now": ["payload_authorization_valid_before", { life: 0 }]
    }
    for (const [name, [reason, changes]] of Object.entries(cases))
      assert.strictEqual(yield* reasonOf(changes), word(reason), name)

    const rows = yield* facilitator.sql<{ n: number }>`select count(*)::int4 as n from kernel_settlements`
    assert.deepStrictEqual(rows, [{ n: 0 }])
    assert.strictEqual(yield* reasonOf({}), "valid")
    const forPayer = yield* facilitator.settle(yield* bodyOf({ signer: friend }))
    assert.strictEqual(forPayer.json.success, true, forPayer.text)
    assert.strictEqual(yield* facilitator.balance(friend.publicKey()), 4_000n)
    assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 5_000n)

    const byFriend = yield* Effect.promise(() => batch.withdraw(channel, "Start", friend))
    const refused = yield* facilitator.settle(batch.body(channel, byFriend, 0n))
    assert.strictEqual(refused.json.errorReason, word("deposit_authorization"))
  }).pipe(Effect.scoped)
)

it.live("deposits of dust and beyond a budget of their own are not sponsored", () =>
  Effect.gen(function* () {
    const facilitator = yield* startBatch({
      set: ["networks.ledger:testnet.batch_deposits_stroops_per_key_per_day=500000"]
    })
    const { batch } = facilitator
    const { kinds } = (yield* facilitator.ask("/supported")).json
    const { minDeposit } = kinds.find(({ scheme }: { scheme: string }) => scheme === "batch-settlement").extra
    // Twice what opening a channel and its share of a claim cost, at 10,000 stroops an atomic unit.
    assert.strictEqual(minDeposit, "24")
    const seller = yield* facilitator.seller
    const payer = yield* facilitator.account(10_000n)
    const deposit = Effect.fnUntraced(function* (amount: bigint, extra: object = {}) {
      const channel = batch.channel(payer, seller.payTo, seller.authorizer)
      const payload = yield* Effect.promise(() => batch.deposit(channel, amount, 1n))
      const terms = batch.body(channel, payload, 1n).paymentRequirements
      const body = batch.body(channel, payload, 1n, { extra: { ...terms.extra, ...extra } })
      const [verified, settled] = [(yield* facilitator.verify(body)).json, (yield* facilitator.settle(body)).json]
      return settled.success ? "settled" : [verified.invalidReason, settled.errorReason]
    })
    const below = [word("deposit_below_min_deposit"), word("deposit_below_min_deposit")]
    for (const _ of [1, 2]) assert.deepStrictEqual(yield* deposit(1n), below)
    assert.deepStrictEqual(yield* deposit(23n), below)
    assert.deepStrictEqual(yield* deposit(100n, { minDeposit: "101" }), below)
    assert.strictEqual(yield* deposit(101n, { minDeposit: "101" }), "settled")
    // Each new channel has another salt, and costs the sponsor a new entry.
    const spent = "settle_ledger_sponsor_budget_exceeded"
    const outcomes: Array<unknown> = []
    for (let at = 0; at < 6; at++) outcomes.push(yield* deposit(100n))
    assert.deepStrictEqual(outcomes.at(-1), [spent, spent])
  }).pipe(Effect.scoped)
)

it.live("a deposit for a receiver that cannot be paid is refused", () =>
  Effect.gen(function* () {
    const facilitator = yield* startBatch()
    const { batch } = facilitator
    const payer = yield* facilitator.account(5_000n)
    const payee = yield* facilitator.account(0n)
    const answers = Effect.fnUntraced(function* (payTo: string) {
      const channel = batch.channel(payer, payTo, Keypair.random())
      const payload = yield* Effect.promise(() => batch.deposit(channel, 1_000n, 100n))
      const body = batch.body(channel, payload, 100n)
      const verified = (yield* facilitator.verify(body)).json
      return [verified.invalidReason, (yield* facilitator.settled(body)).json.errorReason]
    })
    const refused = [word("receiver_cannot_be_paid"), word("receiver_cannot_be_paid")]
    assert.deepStrictEqual(yield* answers(Keypair.random().publicKey()), refused)
    assert.deepStrictEqual(yield* answers(payee.publicKey()), [undefined, undefined])
    // A contract holds tokens without a trustline.
    assert.deepStrictEqual(yield* answers(StrKey.encodeContract(Keypair.random().rawPublicKey())), [
      undefined,
      undefined
    ])
    const other = yield* facilitator.account(0n)
    yield* trust(facilitator, other, testnetUsdc, "0.0000999")
    assert.deepStrictEqual(yield* answers(other.publicKey()), refused)
    yield* trust(facilitator, other, testnetUsdc, "0.0001")
    assert.deepStrictEqual(yield* answers(other.publicKey()), [undefined, undefined])
  }).pipe(Effect.scoped)
)
