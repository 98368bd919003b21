import { assert, describe, it } from "@effect/vitest"
import { Keypair, nativeToScVal, StrKey, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { checks } from "../../../plugins/x402-upto/checks.ts"
import { refusals, type UptoReason } from "../../../plugins/x402-upto/refusals.ts"
import { callOf, invocationOf } from "../../../runtime/redteam/authorization.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import type { UptoOptions, UptoTamper } from "../../support/uptoBuyer.ts"
import { max, startUpto, type UptoFacilitator } from "./world.ts"

const prefix = "invalid_upto_ledger_"
const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
const stranger = Keypair.random()

interface World {
  readonly facilitator: UptoFacilitator
  readonly payer: Keypair
  readonly payTo: string
}

interface Breach {
  readonly what: string
  /** The name of the check that finds it; absent: the decoder or the simulation does. */
  readonly check?: string
  readonly tamper?: (world: World) => UptoTamper
  readonly options?: (world: World) => Partial<UptoOptions>
  /** Changes to the body of both requests. */
  readonly body?: (body: any) => any
  /** The amount to settle; by default a part. A breach that sets it concerns settling only. */
  readonly actual?: string
  readonly reason: string
}

const at = (index: number, value: xdr.ScVal) => (args: ReadonlyArray<xdr.ScVal>) =>
  args.map((argument, position) => (position === index ? value : argument))
const scAddress = (address: string) =>
  xdr.ScVal.scvAddress(xdr.ScAddress.scAddressTypeAccount(Keypair.fromPublicKey(address).xdrAccountId()))
const muxedOf = (address: string) =>
  StrKey.encodeMed25519PublicKey(Uint8Array.from([...StrKey.decodeEd25519PublicKey(address), 0, 0, 0, 0, 0, 0, 0, 5]))
const i128 = (amount: bigint) => nativeToScVal(amount, { type: "i128" })
/** The same allowance with another amount. */
const withAmount = (approval: xdr.SorobanAuthorizedInvocation, amount: bigint): xdr.SorobanAuthorizedInvocation => {
  const wire: any = approval.toXdrObject()
  const { contractFn } = wire.function
  const args = [...contractFn.args.slice(0, 2), i128(amount).toXdrObject(), contractFn.args[3]]
  return xdr.SorobanAuthorizedInvocation.fromXdrObject({
    ...wire,
    function: { ...wire.function, contractFn: { ...contractFn, args } }
  })
}
const approveOf = (spender: string) => invocationOf(callOf(native, "approve", [scAddress(spender)]))
/** The entry with an approval of the spender below its call. */
const withSubInvocation = (entry: xdr.SorobanAuthorizationEntry, spender: string): xdr.SorobanAuthorizationEntry => {
  const wire: any = entry.toXdrObject()
  const { rootInvocation } = wire
  const subInvocations = [...rootInvocation.subInvocations, approveOf(spender).toXdrObject()]
  return xdr.SorobanAuthorizationEntry.fromXdrObject({ ...wire, rootInvocation: { ...rootInvocation, subInvocations } })
}

const breaches: ReadonlyArray<Breach> = [
  { what: "text that is no base64", tamper: () => ({ base64: () => "*" }), reason: "payload_malformed" },
  {
    what: "two operations",
    tamper: () => ({ operations: ([one]) => [one!, one!] }),
    reason: "payload_wrong_operation"
  },
  {
    what: "the sponsor as source",
    check: "no source of ours",
    tamper: ({ facilitator }) => ({ source: facilitator.sponsor }),
    reason: "payload_unsafe_tx_or_op_source"
  },
  {
    what: "another contract",
    check: "the contract is this network's settlement contract",
    tamper: () => ({ contract: native }),
    reason: "payload_wrong_contract"
  },
  {
    what: "another function",
    check: "the profile's function with all its arguments",
    tamper: () => ({ functionName: "settle_all" }),
    reason: "payload_wrong_function_name"
  },
  {
    what: "an argument too few",
    check: "the profile's function with all its arguments",
    tamper: () => ({ args: (args) => args.slice(1) }),
    reason: "payload_wrong_function_name"
  },
  {
    what: "a multiplexed recipient",
    check: "plain addresses",
    tamper: ({ payTo }) => ({ payTo: muxedOf(payTo) }),
    reason: "payload_muxed_address"
  },
  {
    what: "a maximum of another type",
    check: "every argument has its type",
    tamper: () => ({ args: at(3, xdr.ScVal.scvU64(max)) }),
    reason: "payload_wrong_arguments"
  },
  {
    what: "an id of 31 bytes",
    check: "every argument has its type",
    options: () => ({ settlementId: new Uint8Array(31) }),
    reason: "payload_wrong_arguments"
  },
  {
    what: "another token",
    check: "the token is the asset",
    tamper: () => ({ token: native }),
    reason: "payload_wrong_asset"
  },
  {
    what: "another facilitator",
    check: "the facilitator is this one",
    tamper: () => ({ facilitator: stranger.publicKey() }),
    reason: "payload_wrong_facilitator"
  },
  {
    what: "the sponsor as payer",
    check: "the facilitator is not the payer",
    tamper: ({ facilitator }) => ({ args: at(0, scAddress(facilitator.sponsor)) }),
    reason: "payload_facilitator_is_payer"
  },
  {
    what: "the sponsor as recipient",
    check: "the facilitator receives nothing",
    options: ({ facilitator }) => ({ payTo: facilitator.sponsor }),
    reason: "payload_facilitator_is_recipient"
  },
  {
    what: "another recipient",
    check: "the recipient is payTo",
    tamper: () => ({ payTo: stranger.publicKey() }),
    reason: "payload_wrong_recipient"
  },
  {
    what: "the payer as recipient",
    check: "payer and recipient differ",
    options: ({ payer }) => ({ payTo: payer.publicKey() }),
    reason: "payload_self_payment"
  },
  {
    what: "a signed maximum above the accepted amount",
    check: "the signed maximum is the accepted amount, above zero, within the asset's bound",
    tamper: () => ({ max: max + 1n }),
    reason: "payload_invalid_max_amount"
  },
  {
    what: "a maximum of zero",
    check: "the signed maximum is the accepted amount, above zero, within the asset's bound",
    options: () => ({ max: 0n }),
    actual: "0",
    reason: "payload_invalid_max_amount"
  },
  {
    what: "a maximum above the asset's largest payment",
    check: "the signed maximum is the accepted amount, above zero, within the asset's bound",
    options: () => ({ max: 2_000_000n }),
    reason: "payload_invalid_max_amount"
  },
  {
    what: "another amount than the maximum in the envelope",
    check: "the signed maximum is the accepted amount, above zero, within the asset's bound",
    tamper: () => ({ sentAmount: 1n }),
    reason: "payload_invalid_max_amount"
  },
  {
    what: "one atom above the maximum to settle",
    check: "the amount to settle is within the signed maximum",
    actual: String(max + 1n),
    reason: "settlement_exceeds_amount"
  },
  {
    what: "a negative amount to settle",
    check: "the amount to settle is within the signed maximum",
    actual: "-1",
    reason: "settlement_negative_amount"
  },
  {
    what: "a fraction to settle",
    check: "the amount to settle is within the signed maximum",
    actual: "1.5",
    reason: "settlement_invalid_amount"
  },
  {
    what: "no authorization",
    check: "authorized by entries",
    tamper: () => ({ authEntries: () => [] }),
    reason: "payload_no_auth_entries"
  },
  {
    what: "the source's credentials",
    check: "address credentials only",
    tamper: () => ({ credentials: "sourceAccount" }),
    reason: "payload_unsupported_credential_type"
  },
  {
    what: "the sponsor in a call below",
    check: "the facilitator appears in its argument alone",
    tamper: ({ facilitator }) => ({ subInvocations: (honest) => [...honest, approveOf(facilitator.sponsor)] }),
    reason: "payload_facilitator_in_auth"
  },
  {
    what: "the sponsor in a further authorization beside the payer's",
    check: "the facilitator appears in its argument alone",
    tamper: ({ facilitator }) => ({ authEntries: ([one]) => [one!, withSubInvocation(one!, facilitator.sponsor)] }),
    reason: "payload_facilitator_in_auth"
  },
  {
    what: "the sponsor's credentials",
    check: "the facilitator appears in its argument alone",
    tamper: ({ facilitator }) => ({ authAddress: facilitator.sponsor }),
    reason: "payload_facilitator_in_auth"
  },
  {
    what: "a stranger's authorization",
    check: "exactly the payer authorizes, once",
    tamper: () => ({ authAddress: stranger.publicKey() }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "two authorizations",
    check: "exactly the payer authorizes, once",
    tamper: () => ({ authEntries: ([one]) => [one!, one!] }),
    reason: "payload_unexpected_pending_signatures"
  },
  {
    what: "an authorization for another maximum",
    check: "the payer authorizes this very call, all but its amount",
    tamper: () => ({ signedArgs: at(3, xdr.ScVal.scvI128(new xdr.Int128Parts({ hi: 0n, lo: max - 1n }))) }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "an authorization with the amount in it",
    check: "the payer authorizes this very call, all but its amount",
    tamper: () => ({ signedArgs: (args) => [...args, args[3]!] }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "an authorization for another function",
    check: "the payer authorizes this very call, all but its amount",
    tamper: () => ({ signedFunctionName: "settle_all" }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "a larger allowance",
    check: "below it the allowance and its end",
    tamper: () => ({ subInvocations: ([opened, closed]) => [withAmount(opened!, max + 1n), closed!] }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "no end of the allowance",
    check: "below it the allowance and its end",
    tamper: () => ({ subInvocations: ([opened]) => [opened!] }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "the end of the allowance first",
    check: "below it the allowance and its end",
    tamper: () => ({ subInvocations: ([opened, closed]) => [closed!, opened!] }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "a third call below",
    check: "below it the allowance and its end",
    tamper: () => ({ subInvocations: (honest) => [...honest, approveOf(stranger.publicKey())] }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "no signature",
    check: "signed",
    tamper: () => ({ signatureValue: () => xdr.ScVal.scvVoid() }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "a deadline that has passed",
    check: "the window has not ended",
    tamper: () => ({ deadline: 1_000 }),
    reason: "settlement_expired"
  },
  {
    what: "a signature that has ended",
    check: "the window has not ended",
    tamper: () => ({ expirationLedger: 1_000 }),
    reason: "settlement_expired"
  },
  {
    what: "a window that has not begun",
    check: "the window has begun",
    tamper: () => ({ validAfter: 100_000 }),
    reason: "settlement_not_yet_valid"
  },
  {
    what: "a deadline too far",
    check: "not too far in the future",
    tamper: () => ({ deadline: 100_000 }),
    reason: "expiration_too_far"
  },
  {
    what: "a deadline too far under a signature that ends in time",
    check: "not too far in the future",
    tamper: ({ facilitator }) => ({
      deadline: 100_000,
      expirationLedger: facilitator.ledger.ledger.latest.sequence + 10
    }),
    reason: "expiration_too_far"
  },
  {
    what: "a signature without end",
    check: "not too far in the future",
    tamper: () => ({ expirationLedger: 100_000 }),
    reason: "expiration_too_far"
  },
  {
    what: "one bit of the signature",
    check: "signatures by listed keys verify",
    tamper: () => ({ signature: (bytes) => bytes.map((byte, index) => (index === 9 ? byte ^ 1 : byte)) }),
    reason: "account_authentication"
  },
  {
    what: "another network's signature",
    check: "signatures by listed keys verify",
    tamper: () => ({ signedPassphrase: "Public Global Stellar Network ; September 2015" }),
    reason: "account_authentication"
  },
  {
    what: "a stranger's key",
    tamper: () => ({ signers: [stranger] }),
    reason: "simulation_failed"
  },
  {
    what: "a recipient without a trustline",
    options: () => ({ payTo: stranger.publicKey() }),
    reason: "simulation_failed"
  }
]

/** Clauses of the stateless draft, each broken in `stateless.daily.test.ts`. */
const ofStateless = [
  "the terms name this contract",
  "the terms say that fees are sponsored",
  "the window is within the timeout",
  "allowance and signature end together"
]

describe("the rules of an upto payment", () => {
  it("every upto rule has a breaching payment", () => {
    const broken = new Set([...breaches.flatMap(({ check }) => check ?? []), ...ofStateless])
    assert.deepStrictEqual([...broken].sort(), checks.map(({ name }) => name).sort())
  })

  it("every upto refusal has its own reason", () => {
    const words: ReadonlyArray<UptoReason> = refusals.map(({ reason }) => reason)
    assert.strictEqual(new Set(words).size, words.length)
    for (const word of words) assert.match(word, /^invalid_upto_ledger_[a-z_]+$/)
  })

  it.live(
    "each breach is refused at verify and at settle, and nothing moves [S74, S76, S219, S273]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto({
          set: [
            "networks.ledger:testnet.assets=" +
              `[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7, max_payment: 1000000}]`
          ]
        })
        const { payTo, payer } = yield* facilitator.parties(5_000_000n)
        const world = { facilitator, payer, payTo }
        for (const { actual, options, reason, tamper, what } of breaches) {
          const payment = yield* facilitator.upto({
            payer,
            payTo,
            ...options?.(world),
            ...(tamper === undefined ? {} : { tamper: tamper(world) })
          })
          const settled = yield* facilitator.settle(payment.settleBody(actual ?? 250n))
          assert.deepStrictEqual(
            [what, settled.json.success, settled.json.errorReason, settled.json.transaction],
            [what, false, prefix + reason, ""]
          )
          const verified = yield* facilitator.verify(payment.verifyBody)
          const expected = actual !== undefined && what !== "a maximum of zero" ? undefined : prefix + reason
          assert.deepStrictEqual([what, verified.json.invalidReason], [what, expected])
        }
        assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 5_000_000n)
        assert.strictEqual(yield* facilitator.balance(payTo), 0n)
        const [{ count }] = (yield* facilitator.sql`select count(*)::int as count from kernel_settlements`) as any
        assert.strictEqual(count, 0)
        const honest = yield* facilitator.upto({ payer, payTo })
        assert.strictEqual((yield* facilitator.settle(honest.settleBody(max))).json.success, true)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "verify accepts the maximum alone",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto()
        const { payTo, payer } = yield* facilitator.parties()
        const payment = yield* facilitator.upto({ payer, payTo })
        const verified = yield* facilitator.verify(payment.settleBody(250n))
        assert.strictEqual(verified.json.invalidReason, `${prefix}payload_invalid_max_amount`)
      }).pipe(Effect.scoped) as Effect.Effect<void>
  )
})
