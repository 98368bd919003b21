// Each rule of an `exact` payment, by payments that break it and no earlier rule: the refusal's reason, and that the
// same payment is decided differently with the rule removed. So no rule is covered by another, and no test of one
// passes without it.
import { expect, layer } from "@effect/vitest"
import { Address, Keypair, nativeToScVal, xdr } from "@stellar/stellar-sdk"
import { Context, Effect, Layer } from "effect"
import { type Check, checks } from "../../../plugins/x402-exact/checks.ts"
import { invocationOf, callOf, signAuthorization } from "../../../runtime/redteam/authorization.ts"
import { type PaymentOptions, type PaymentTamper, testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10_000n
const exact = "invalid_exact_ledger_payload"
const xlm = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"

interface Cast {
  readonly buyer: Keypair
  readonly seller: string
  readonly stranger: Keypair
  readonly sponsor: string
  readonly channel: string
}

interface Breach {
  readonly check: string
  readonly name: string
  readonly reason: string
  readonly tamper: (cast: Cast) => PaymentTamper
  readonly options?: (cast: Cast) => Partial<PaymentOptions>
}

const second =
  (of: (cast: Cast) => Keypair, address?: (cast: Cast) => string) =>
  (cast: Cast): PaymentTamper => ({
    authEntries: (entries, { call, expirationLedger, networkPassphrase }) => [
      ...entries,
      signAuthorization({
        payer: of(cast),
        address: address?.(cast),
        invocation: invocationOf(call),
        nonce: 7n,
        expirationLedger,
        networkPassphrase
      })
    ]
  })

/** `address` with the sub-account 7, as an M-address. */
const muxedOf = (address: string): string =>
  Address.muxedAccount(
    new Uint8Array([...Keypair.fromPublicKey(address).rawPublicKey(), 0, 0, 0, 0, 0, 0, 0, 7])
  ).toString()

const listOf = (value: xdr.ScVal): ReadonlyArray<xdr.ScVal> => (value.type === "scvVec" ? (value.vec ?? []) : [])

/** The same list of signatures, each with 64 zero bytes. */
const brokenOf = (value: xdr.ScVal): xdr.ScVal =>
  xdr.ScVal.scvVec(
    listOf(value).map((item) => {
      if (item.type !== "scvMap") return item
      const [key] = item.map ?? []
      return xdr.ScVal.scvMap([
        key!,
        new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("signature"), val: xdr.ScVal.scvBytes(new Uint8Array(64)) })
      ])
    })
  )

const breaches: ReadonlyArray<Breach> = [
  {
    check: "one contract call and nothing else",
    name: "two operations",
    reason: `${exact}_wrong_operation`,
    tamper: () => ({ operations: ([one]) => [one!, one!] })
  },
  {
    check: "no source, signature or condition of ours",
    name: "the sponsor as source of the transaction",
    reason: `${exact}_unsafe_tx_or_op_source`,
    tamper: ({ sponsor }) => ({ source: sponsor })
  },
  {
    check: "no source, signature or condition of ours",
    name: "a channel as source of the operation",
    reason: `${exact}_unsafe_tx_or_op_source`,
    tamper: ({ channel }) => ({ operationSource: channel })
  },
  {
    check: "the contract is the asset",
    name: "a transfer of another token",
    reason: `${exact}_wrong_asset`,
    tamper: () => ({ contract: xlm })
  },
  {
    check: "transfer with three arguments",
    name: "an approval",
    reason: `${exact}_wrong_function_name`,
    tamper: () => ({ functionName: "approve" })
  },
  {
    check: "transfer with three arguments",
    name: "a fourth argument",
    reason: `${exact}_wrong_function_name`,
    tamper: () => ({ args: (args) => [...args, xdr.ScVal.scvVoid()] })
  },
  {
    check: "plain addresses",
    name: "an M-address as recipient",
    reason: `${exact}_muxed_address`,
    tamper: ({ seller }) => ({ to: muxedOf(seller) })
  },
  {
    check: "the facilitator is not the payer",
    name: "the sponsor as payer",
    reason: `${exact}_facilitator_is_payer`,
    tamper: ({ sponsor }) => ({ from: sponsor })
  },
  {
    check: "the facilitator is not the payer",
    name: "a channel as payer",
    reason: `${exact}_facilitator_is_payer`,
    tamper: ({ channel }) => ({ from: channel, authAddress: channel })
  },
  {
    check: "the facilitator receives nothing",
    name: "the sponsor as recipient",
    reason: `${exact}_facilitator_is_recipient`,
    tamper: () => ({}),
    options: ({ sponsor }) => ({ payTo: sponsor })
  },
  {
    check: "the facilitator receives nothing",
    name: "a channel as recipient",
    reason: `${exact}_facilitator_is_recipient`,
    tamper: () => ({}),
    options: ({ channel }) => ({ payTo: channel })
  },
  {
    check: "the recipient is payTo",
    name: "another recipient",
    reason: `${exact}_wrong_recipient`,
    tamper: ({ stranger }) => ({ to: stranger.publicKey() })
  },
  {
    check: "a payer",
    name: "a payer that is no address",
    reason: `${exact}_missing_payer_signature`,
    tamper: () => ({ args: ([, to, amount]) => [xdr.ScVal.scvU32(7), to!, amount!] })
  },
  {
    check: "payer and recipient differ",
    name: "a payment to oneself",
    reason: `${exact}_self_payment`,
    tamper: () => ({}),
    options: ({ buyer }) => ({ payTo: buyer.publicKey() })
  },
  {
    check: "the amount is the required one, above zero, within the asset's bound",
    name: "one unit less",
    reason: `${exact}_wrong_amount`,
    tamper: () => ({ amount: price - 1n })
  },
  {
    check: "the amount is the required one, above zero, within the asset's bound",
    name: "nothing",
    reason: `${exact}_wrong_amount`,
    tamper: () => ({}),
    options: () => ({ amount: 0n })
  },
  {
    check: "authorized by entries",
    name: "no authorization",
    reason: `${exact}_no_auth_entries`,
    tamper: () => ({ authEntries: () => [] })
  },
  {
    check: "address credentials only",
    name: "source-account credentials",
    reason: `${exact}_unsupported_credential_type`,
    tamper: () => ({ credentials: "sourceAccount" })
  },
  {
    check: "no account of ours in any authorization",
    name: "the sponsor authorizes too",
    reason: `${exact}_facilitator_in_auth`,
    tamper: second(
      ({ buyer }) => buyer,
      ({ sponsor }) => sponsor
    )
  },
  {
    check: "no account of ours in any authorization",
    name: "a channel authorizes too",
    reason: `${exact}_facilitator_in_auth`,
    tamper: second(
      ({ buyer }) => buyer,
      ({ channel }) => channel
    )
  },
  {
    check: "no account of ours in any authorization",
    name: "a signature over a transfer to the sponsor",
    reason: `${exact}_facilitator_in_auth`,
    tamper: ({ buyer, sponsor }) => ({
      signedCall: () =>
        callOf(testnetUsdc, "transfer", [
          new Address(buyer.publicKey()).toScVal(),
          new Address(sponsor).toScVal(),
          nativeToScVal(price, { type: "i128" })
        ])
    })
  },
  {
    check: "no sub-invocations",
    name: "a nested approval",
    reason: `${exact}_has_subinvocations`,
    tamper: ({ buyer, stranger }) => ({
      subInvocations: [
        invocationOf(
          callOf(testnetUsdc, "approve", [
            new Address(buyer.publicKey()).toScVal(),
            new Address(stranger.publicKey()).toScVal(),
            nativeToScVal(10n ** 12n, { type: "i128" }),
            xdr.ScVal.scvU32(5_000)
          ])
        )
      ]
    })
  },
  {
    check: "exactly the payer authorizes, once",
    name: "a stranger authorizes in the payer's place",
    reason: `${exact}_missing_payer_signature`,
    tamper: ({ stranger }) => ({ authAddress: stranger.publicKey(), signers: [stranger] })
  },
  {
    check: "exactly the payer authorizes, once",
    name: "a stranger authorizes too",
    reason: `${exact}_unexpected_pending_signatures`,
    tamper: second(({ stranger }) => stranger)
  },
  {
    check: "the payer authorizes this very call",
    name: "an authorization for another recipient",
    reason: `${exact}_missing_payer_signature`,
    tamper: ({ buyer, stranger }) => ({
      signedCall: () =>
        callOf(testnetUsdc, "transfer", [
          new Address(buyer.publicKey()).toScVal(),
          new Address(stranger.publicKey()).toScVal(),
          nativeToScVal(price, { type: "i128" })
        ])
    })
  },
  {
    check: "signed",
    name: "an authorization without a signature",
    reason: `${exact}_missing_payer_signature`,
    tamper: () => ({ signatureValue: () => xdr.ScVal.scvVoid() })
  },
  {
    check: "not expired",
    name: "an authorization that has ended",
    reason: "invalid_ledger_auth_expired",
    tamper: () => ({ expiryOffset: -100 })
  },
  {
    check: "not too far in the future",
    name: "an authorization without end",
    reason: "invalid_exact_ledger_signature_expiration_too_far",
    tamper: () => ({ expiryOffset: 100_000 })
  },
  {
    check: "signatures by listed keys verify",
    name: "one bit of the signature",
    reason: `${exact}_invalid_signature`,
    tamper: () => ({ signature: (bytes) => bytes.map((byte, index) => (index === 40 ? byte ^ 1 : byte)) })
  },
  {
    check: "signatures by listed keys verify",
    name: "a right signature beside a broken one",
    reason: `${exact}_invalid_signature`,
    tamper: () => ({ signatureValue: (value) => xdr.ScVal.scvVec([...listOf(value), ...listOf(brokenOf(value))]) })
  },
  {
    check: "signatures by listed keys verify",
    name: "a signature in a form of its own",
    reason: `${exact}_invalid_signature`,
    tamper: () => ({ signatureValue: (_, payload) => xdr.ScVal.scvBytes(payload) })
  },
  {
    check: "signatures by listed keys verify",
    name: "an empty list of signatures",
    reason: `${exact}_invalid_signature`,
    tamper: () => ({ signatureValue: () => xdr.ScVal.scvVec([]) })
  },
  {
    check: "signatures by listed keys verify",
    name: "more signatures than the ledger checks",
    reason: `${exact}_invalid_signature`,
    tamper: () => ({
      signatureValue: (value) => xdr.ScVal.scvVec(Array.from({ length: 21 }, () => listOf(value)[0]!))
    })
  }
]

class World extends Context.Service<World, Facilitator & Cast>()("test/World") {}

const world = Layer.effect(
  World,
  Effect.gen(function* () {
    const facilitator = yield* startFacilitator()
    const { signers } = (yield* facilitator.ask("/supported")).json
    const [sponsor, channel] = signers["ledger:*"]
    const buyer = yield* facilitator.account()
    const stranger = yield* facilitator.account()
    const seller = (yield* facilitator.account(0n)).publicKey()
    return { ...facilitator, buyer, stranger, seller, sponsor, channel, ledger: facilitator.ledger }
  })
)

layer(world, { timeout: 240_000, excludeTestServices: true })((it) => {
  it.effect("every exact check has a breaching payment", () =>
    Effect.sync(() =>
      expect(new Set(breaches.map(({ check }) => check))).toEqual(new Set(checks.map(({ name }) => name)))
    )
  )

  for (const breach of breaches) {
    it.effect(`refuses ${breach.name}, and would not without “${breach.check}” [S11, S74, S273]`, () =>
      Effect.gen(function* () {
        const facilitator = yield* World
        const { body } = yield* facilitator.payment({
          payer: facilitator.buyer,
          payTo: facilitator.seller,
          amount: price,
          tamper: breach.tamper(facilitator),
          ...breach.options?.(facilitator)
        })
        const verified = yield* facilitator.verify(body)
        expect(verified.json).toMatchObject({ isValid: false, invalidReason: breach.reason })
        const settled = yield* facilitator.settle(body)
        expect(settled.json).toMatchObject({ success: false, errorReason: breach.reason, transaction: "" })
        const without = yield* withoutCheck(breach.check, facilitator.verify(body))
        const same =
          without.json.invalidReason === breach.reason && without.json.invalidMessage === verified.json.invalidMessage
        expect(same, without.text).toBe(false)
      })
    )
  }
})

/** Removes one check from the list while `effect` runs. */
const withoutCheck = <A>(name: string, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const list = checks as Array<Check>
      const index = list.findIndex((check) => check.name === name)
      return { list, index, taken: list.splice(index, 1) }
    }),
    () => effect,
    ({ index, list, taken }) => Effect.sync(() => void list.splice(index, 0, ...taken))
  )
