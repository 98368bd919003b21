// The rules of a batch payload that need no ledger: each changed member is refused by its own reason.
import { expect, it } from "vitest"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Option } from "effect"
import type { Payment } from "../../../kernel/payment/Payment.ts"
import * as codec from "../../../plugins/x402-batch/batchCodec.ts"
import type { LedgerPayload } from "../../../plugins/x402-batch/BatchWire.ts"
import { acceptedRefusal, checkExpiry } from "../../../plugins/x402-batch/checks.ts"
import { payloadError } from "../../../plugins/x402-batch/payloadChecks.ts"
import { engineCrypto } from "../../support/engineCrypto.ts"

const [payer, seller, authorizer, ours] = [1, 2, 3, 4].map((n) => Keypair.fromRawEd25519Seed(Buffer.alloc(32, n))) as [
  Keypair,
  Keypair,
  Keypair,
  Keypair
]
const [contract, token] = [7, 8].map((n) => StrKey.encodeContract(new Uint8Array(32).fill(n) as never)) as [
  string,
  string
]
const at = { networkId: new Uint8Array(32).fill(9), address: contract }

const config: codec.ChannelConfig = {
  payer: payer.publicKey(),
  payerAuthorizer: payer.publicKey(),
  receiver: seller.publicKey(),
  receiverAuthorizer: authorizer.publicKey(),
  token,
  withdrawDelay: 900,
  salt: "00".repeat(32)
}
const channelId = codec.channelIdOf(at, config)
const extra = { receiverAuthorizer: config.receiverAuthorizer, withdrawDelay: 900, batchContract: contract }
const payment = { requirements: { asset: token, payTo: seller.publicKey(), extra } } as unknown as Payment
const signed = (digest: Uint8Array, by = authorizer) => codec.hexOfBytes(by.sign(Buffer.from(digest)))

/** The reason of the refusal; undefined if there is none. Vouchers count as signed unless they say "bad". */
const reasonOf = (payload: object) =>
  payloadError(payload as LedgerPayload, {
    payment,
    crypto: engineCrypto as never,
    isOurs: (address) => address === ours.publicKey(),
    context: {
      at,
      vouchers: {
        isOf: (one: codec.ChannelConfig, id: string) => codec.channelIdOf(at, one) === id,
        isSigned: (_: unknown, { signature }: { signature: string }) => signature !== "bad"
      } as never
    }
  })?.[0]

const changed = (changes: Partial<codec.ChannelConfig>) => {
  const other = { ...config, ...changes }
  return { config: other, channelId: codec.channelIdOf(at, other) }
}
const voucher = { channelId, maxClaimableAmount: 10n, signature: "good" }
const deposit = { _tag: "Deposit", config, voucher, amount: 5n }
const depositOf = (changes: Partial<codec.ChannelConfig>) => {
  const { channelId, config } = changed(changes)
  return { ...deposit, config, voucher: { ...voucher, channelId } }
}

it("a deposit is into the seller's channel, by its terms", () => {
  const reasons = [
    deposit,
    { ...deposit, amount: 0n },
    depositOf({ receiver: payer.publicKey() }),
    depositOf({ receiverAuthorizer: seller.publicKey() }),
    depositOf({ token: contract }),
    depositOf({ withdrawDelay: 901 }),
    depositOf({ payer: ours.publicKey() }),
    depositOf({ payerAuthorizer: ours.publicKey() }),
    { ...deposit, voucher: { ...voucher, channelId: "00".repeat(32) } },
    { ...deposit, voucher: { ...voucher, signature: "bad" } }
  ].map(reasonOf)
  expect(reasons).toEqual([
    undefined,
    "deposit_amount",
    "receiver_mismatch",
    "receiver_authorizer_mismatch",
    "token_mismatch",
    "withdraw_delay_mismatch",
    "facilitator_is_party",
    "facilitator_is_party",
    "channel_id_mismatch",
    "voucher_signature"
  ])
})

const entry = { config, maxClaimableAmount: 10n, signature: "good", totalClaimed: 10n }
const expiresAt = 1_000
const claimOf = (claims: ReadonlyArray<codec.ClaimEntry>, changes: object = {}) => ({
  _tag: "Claim",
  claims,
  expiresAt,
  signature: signed(codec.claimDigest(at, codec.claimedTotals(at, claims), expiresAt)),
  ...changes
})

it("a claim is the seller's, under one authorizer's signature over all entries", () => {
  const second = { ...entry, ...changed({ salt: "11".repeat(32) }), totalClaimed: 3n }
  expect(reasonOf(claimOf([entry, second]))).toBeUndefined()
  const reasons = [
    claimOf([{ ...entry, totalClaimed: 11n }]),
    claimOf([{ ...entry, config: { ...config, receiver: payer.publicKey() } }]),
    claimOf([{ ...entry, config: { ...config, token: contract } }]),
    claimOf([{ ...entry, config: { ...config, withdrawDelay: 899 } }]),
    claimOf([{ ...entry, config: { ...config, withdrawDelay: 2_592_001 } }]),
    claimOf([{ ...entry, config: { ...config, payer: ours.publicKey() } }]),
    claimOf([{ ...entry, signature: "bad" }]),
    claimOf([entry, { ...second, signature: "bad" }]),
    claimOf([entry, { ...entry, config: { ...config, receiverAuthorizer: seller.publicKey() } }]),
    claimOf([entry], { signature: undefined }),
    claimOf([entry], { expiresAt: undefined }),
    claimOf([entry], { expiresAt: 1_001 }),
    claimOf([entry], { signature: signed(codec.claimDigest(at, codec.claimedTotals(at, [entry]), expiresAt), seller) })
  ].map(reasonOf)
  expect(reasons).toEqual([
    "charge_exceeds_signed_cumulative",
    "receiver_mismatch",
    "token_mismatch",
    "withdraw_delay_out_of_range",
    "withdraw_delay_out_of_range",
    "facilitator_is_party",
    "voucher_signature",
    "voucher_signature",
    "authorizer_address_mismatch",
    "authorizer_not_configured",
    "authorizer_not_configured",
    "authorizer_address_mismatch",
    "authorizer_address_mismatch"
  ])
  for (const withdrawDelay of [900, 2_592_000])
    expect(reasonOf(claimOf([{ ...entry, config: { ...config, withdrawDelay } }]))).toBeUndefined()
})

it("a refund is of one channel, under both signatures of its authorizer", () => {
  const nonce = 3n
  const refund = (changes: object = {}) => ({
    _tag: "Refund",
    config,
    voucher,
    amount: 4n,
    nonce,
    claims: [entry],
    expiresAt,
    signature: signed(codec.refundDigest(at, channelId, 4n, nonce, expiresAt)),
    claimSignature: claimOf([entry]).signature,
    ...changes
  })
  const other = { ...entry, ...changed({ salt: "11".repeat(32) }) }
  const reasons = [
    refund(),
    refund({ claims: [] }),
    refund({ amount: 0n }),
    refund({ amount: 5n }),
    refund({ nonce: 4n }),
    refund({ claims: [entry, other] }),
    refund({ voucher: { ...voucher, signature: "bad" } }),
    refund({ config: { ...config, withdrawDelay: 901 } }),
    refund({ claimSignature: "00".repeat(64) }),
    refund({ claims: [], signature: undefined }),
    refund({ claims: [], expiresAt: undefined }),
    refund({ signature: signed(codec.refundDigest(at, channelId, 4n, nonce, expiresAt), seller) })
  ].map(reasonOf)
  expect(reasons).toEqual([
    undefined,
    undefined,
    "refund_amount_invalid",
    "authorizer_address_mismatch",
    "authorizer_address_mismatch",
    "refund_payload",
    "voucher_signature",
    "withdraw_delay_mismatch",
    "authorizer_address_mismatch",
    "authorizer_not_configured",
    "authorizer_not_configured",
    "authorizer_address_mismatch"
  ])
})

it("a settle is to the seller, a withdrawal of its token", () => {
  const settle = { _tag: "Settle", receiver: seller.publicKey(), token }
  expect(reasonOf(settle)).toBeUndefined()
  expect(reasonOf({ ...settle, receiver: payer.publicKey() })).toBe("receiver_mismatch")
  expect(reasonOf({ ...settle, token: contract })).toBe("token_mismatch")
  expect(reasonOf({ _tag: "Withdraw", config })).toBeUndefined()
  expect(reasonOf({ _tag: "Withdraw", config: { ...config, token: contract } })).toBe("token_mismatch")
})

it("the accepted terms are the required ones, or more where a settle may take less", () => {
  const refused = (accepted: bigint | undefined, asked: bigint | undefined, isLessAllowed = false, more: object = {}) =>
    acceptedRefusal(
      {
        accepted: { amount: Option.fromUndefinedOr(accepted), extra: { ...extra, ...more } },
        requirements: { amount: Option.fromUndefinedOr(asked), extra }
      } as unknown as Payment,
      contract,
      isLessAllowed
    ) !== undefined
  expect([refused(5n, 5n), refused(5n, 4n), refused(4n, 5n)]).toEqual([false, true, true])
  expect([refused(5n, 5n, true), refused(5n, 4n, true), refused(4n, 5n, true)]).toEqual([false, false, true])
  expect([refused(undefined, 5n), refused(5n, undefined)]).toEqual([true, true])
  for (const [name, value] of [
    ["receiverAuthorizer", seller.publicKey()],
    ["withdrawDelay", 901],
    ["batchContract", token]
  ] as const)
    expect(refused(5n, 5n, false, { [name]: value })).toBe(true)
  const named = { accepted: { amount: Option.some(5n), extra }, requirements: { amount: Option.some(5n), extra } }
  expect(acceptedRefusal(named as unknown as Payment, token, false)?.reason).toMatch(/channel_id_mismatch/)
  const unnamed = { amount: Option.some(5n), extra: {} }
  expect(
    acceptedRefusal({ accepted: unnamed, requirements: unnamed } as unknown as Payment, token, false)
  ).toBeUndefined()
})

it("an authorization leaves two ledgers to be sent", () => {
  expect([checkExpiry(101, 100)?.[0], checkExpiry(102, 100)]).toEqual(["payload_authorization_valid_before", undefined])
})
