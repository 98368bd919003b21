// Crafted payments against any facilitator on a ledger with a friendbot: the facilitator's own accounts as payer,
// recipient, source or party of an authorization; authorizations that are missing, foreign, nested or expired; other
// calls than the one transfer (attacks 1–21 of the red team's list). `/verify` and `/settle` refuse each, no money
// moves, and the facilitator's accounts lose nothing of the asset. If the specification has a reason for the refusal,
// it must be used.
import assert from "node:assert/strict"
import { Address, Asset, Keypair, nativeToScVal, Networks, xdr } from "@stellar/stellar-sdk"
import { assertRefusedSettle, assertRefusedVerify, post } from "../conformance/ask.ts"
import { inDialect } from "../conformance/refusals.ts"
import type { Part } from "../conformance/report.ts"
import { callOf, invocationOf, signAuthorization } from "../support/authorization.ts"
import { usdcBalance } from "../support/balances.ts"
import { makePayment, type PaymentTamper, testnetUsdc } from "../support/buyer.ts"
import { askFriendbot, rpcCall } from "../support/rpcCall.ts"
import { bearerOf, networksOf, signersOf, type Target } from "./target.ts"

interface Cast {
  readonly buyer: Keypair
  readonly thief: Keypair
  readonly payTo: string
  readonly sponsor: string
  readonly channel: string
}

interface Attack {
  readonly name: string
  /** Accepted reasons, in neutral spelling; without it any reason is accepted. */
  readonly reasons?: ReadonlyArray<string>
  readonly tamper: (cast: Cast) => PaymentTamper
  /** The seller's terms have another recipient or asset. */
  readonly payTo?: (cast: Cast) => string
}

const exact = "invalid_exact_ledger_payload"
const price = 10_000n
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })
const address = (value: string) => new Address(value).toScVal()

const wrongFunction = (...reasons: ReadonlyArray<string>) => [`${exact}_wrong_function_name`, ...reasons]

const attacks: ReadonlyArray<Attack> = [
  // 1–5: the facilitator's own accounts.
  ...(["sponsor", "channel"] as const).flatMap((role): ReadonlyArray<Attack> => [
    {
      name: `the ${role} as payer, with source-account credentials`,
      reasons: [`${exact}_facilitator_is_payer`, `${exact}_unsafe_tx_or_op_source`],
      tamper: (cast) => ({ from: cast[role], source: cast[role], credentials: "sourceAccount" })
    },
    {
      name: `the ${role} as payer, in an unsigned authorization`,
      reasons: [`${exact}_facilitator_is_payer`],
      tamper: (cast) => ({ from: cast[role], authAddress: cast[role], signatureValue: () => xdr.ScVal.scvVoid() })
    },
    {
      name: `the ${role} as payer, signed by the buyer`,
      reasons: [`${exact}_facilitator_is_payer`],
      tamper: (cast) => ({ from: cast[role], authAddress: cast[role] })
    },
    {
      name: `the ${role} as recipient`,
      reasons: [`${exact}_facilitator_is_recipient`],
      payTo: (cast) => cast[role],
      tamper: () => ({})
    },
    {
      name: `the ${role} as source of the transaction`,
      reasons: [`${exact}_unsafe_tx_or_op_source`],
      tamper: (cast) => ({ source: cast[role] })
    },
    {
      name: `the ${role} as source of the operation`,
      reasons: [`${exact}_unsafe_tx_or_op_source`],
      tamper: (cast) => ({ operationSource: cast[role] })
    },
    {
      name: `the ${role} in a second authorization`,
      reasons: [`${exact}_facilitator_in_auth`],
      tamper: (cast) => ({
        authEntries: (entries, { call, expirationLedger, networkPassphrase }) => [
          ...entries,
          signAuthorization({
            payer: cast.buyer,
            address: cast[role],
            invocation: invocationOf(call),
            nonce: 7n,
            expirationLedger,
            networkPassphrase
          })
        ]
      })
    },
    {
      name: `the ${role} in an argument of a sub-invocation`,
      reasons: [`${exact}_facilitator_in_auth`, `${exact}_has_subinvocations`],
      tamper: (cast) => ({
        subInvocations: [
          invocationOf(
            callOf(testnetUsdc, "approve", [
              address(cast[role]),
              address(cast.thief.publicKey()),
              i128(10n ** 12n),
              xdr.ScVal.scvU32(5_000)
            ])
          )
        ]
      })
    }
  ]),
  // 5–11: authorizations.
  { name: "source-account credentials of the buyer", tamper: () => ({ credentials: "sourceAccount" }) },
  { name: "no authorization", tamper: () => ({ authEntries: () => [] }) },
  { name: "an authorization without a signature", tamper: () => ({ signatureValue: () => xdr.ScVal.scvVoid() }) },
  { name: "an empty list of signatures", tamper: () => ({ signatureValue: () => xdr.ScVal.scvVec([]) }) },
  { name: "a signature by another key, honestly named", tamper: ({ thief }) => ({ signers: [thief] }) },
  { name: "the buyer's signature twice", tamper: ({ buyer }) => ({ signers: [buyer, buyer] }) },
  { name: "the buyer's signature beside a stranger's", tamper: ({ buyer, thief }) => ({ signers: [buyer, thief] }) },
  {
    name: "a signature for another network",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signedPassphrase: Networks.PUBLIC })
  },
  {
    name: "64 zero bytes as signature",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signature: (s) => s.map(() => 0) })
  },
  { name: "63 bytes as signature", tamper: () => ({ signature: (s) => s.slice(0, 63) }) },
  {
    name: "a signature with S plus the group's order",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signature: malleated })
  },
  {
    name: "an approval nested in the authorization",
    reasons: [`${exact}_has_subinvocations`],
    tamper: ({ buyer, thief }) => ({
      subInvocations: [
        invocationOf(
          callOf(testnetUsdc, "approve", [
            address(buyer.publicKey()),
            address(thief.publicKey()),
            i128(10n ** 12n),
            xdr.ScVal.scvU32(5_000)
          ])
        )
      ]
    })
  },
  {
    name: "a second transfer nested in the authorization",
    reasons: [`${exact}_has_subinvocations`],
    tamper: ({ buyer, thief }) => ({
      subInvocations: [
        invocationOf(
          callOf(testnetUsdc, "transfer", [address(buyer.publicKey()), address(thief.publicKey()), i128(1n)])
        )
      ]
    })
  },
  { name: "the same authorization twice", tamper: () => ({ authEntries: ([one]) => [one!, one!] }) },
  {
    name: "a second authorization of the buyer",
    tamper: ({ buyer }) => ({
      authEntries: (entries, { call, expirationLedger, networkPassphrase }) => [
        ...entries,
        signAuthorization({
          payer: buyer,
          invocation: invocationOf(call),
          nonce: 9n,
          expirationLedger,
          networkPassphrase
        })
      ]
    })
  },
  {
    name: "an authorization of a stranger beside the buyer's",
    tamper: ({ thief }) => ({
      authEntries: (entries, { call, expirationLedger, networkPassphrase }) => [
        ...entries,
        signAuthorization({
          payer: thief,
          invocation: invocationOf(call),
          nonce: 9n,
          expirationLedger,
          networkPassphrase
        })
      ]
    })
  },
  {
    name: "an authorization for another call",
    tamper: ({ buyer, thief }) => ({
      signedCall: () =>
        callOf(testnetUsdc, "transfer", [address(buyer.publicKey()), address(thief.publicKey()), i128(price)])
    })
  },
  {
    name: "an authorization of the stranger in the buyer's place",
    tamper: ({ thief }) => ({ authAddress: thief.publicKey(), signers: [thief] })
  },
  // 12–16: the call.
  {
    name: "two operations",
    reasons: [`${exact}_wrong_operation`],
    tamper: () => ({ operations: ([one]) => [one!, one!] })
  },
  { name: "no operation", reasons: [`${exact}_wrong_operation`], tamper: () => ({ operations: () => [] }) },
  {
    name: "a classic payment in place of the call",
    reasons: [`${exact}_wrong_operation`],
    tamper: ({ payTo }) => ({ operations: () => [classicPayment(payTo)] })
  },
  {
    name: "an upload of code",
    reasons: [`${exact}_wrong_operation`, `${exact}_wrong_function_name`],
    tamper: () => ({ hostFunction: () => xdr.HostFunction.hostFunctionTypeUploadContractWasm(new Uint8Array(64)) })
  },
  {
    name: "transfer_from",
    reasons: wrongFunction(),
    tamper: ({ buyer }) => ({ functionName: "transfer_from", args: (args) => [address(buyer.publicKey()), ...args] })
  },
  { name: "approve", reasons: wrongFunction(), tamper: () => ({ functionName: "approve" }) },
  {
    name: "burn",
    reasons: wrongFunction(),
    tamper: () => ({ functionName: "burn", args: ([from, , amount]) => [from!, amount!] })
  },
  { name: "a name similar to transfer", reasons: wrongFunction(), tamper: () => ({ functionName: "Transfer" }) },
  {
    name: "a fourth argument",
    reasons: wrongFunction(),
    tamper: () => ({ args: (args) => [...args, xdr.ScVal.scvVoid()] })
  },
  { name: "two arguments", reasons: wrongFunction(), tamper: () => ({ args: (args) => args.slice(0, 2) }) },
  {
    name: "an amount as u128",
    tamper: () => ({ args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "u128" })] })
  },
  {
    name: "an amount as i64",
    tamper: () => ({ args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "i64" })] })
  },
  {
    name: "an amount as text",
    tamper: () => ({ args: ([from, to]) => [from!, to!, xdr.ScVal.scvString(String(price))] })
  },
  { name: "one unit less", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: price - 1n }) },
  { name: "one unit more", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: price + 1n }) },
  { name: "zero units", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: 0n }) },
  { name: "a negative amount", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: -price }) },
  {
    name: "the largest amount there is",
    reasons: [`${exact}_wrong_amount`],
    tamper: () => ({ amount: (1n << 127n) - 1n })
  },
  {
    name: "a transfer to a stranger",
    reasons: [`${exact}_wrong_recipient`],
    tamper: ({ thief }) => ({ to: thief.publicKey() })
  },
  {
    name: "a transfer to the buyer itself",
    reasons: [`${exact}_wrong_recipient`, `${exact}_self_payment`],
    tamper: ({ buyer }) => ({ to: buyer.publicKey() })
  },
  {
    name: "the buyer as recipient of its own payment",
    reasons: [`${exact}_self_payment`],
    payTo: ({ buyer }) => buyer.publicKey(),
    tamper: () => ({})
  },
  {
    name: "a transfer of native XLM",
    reasons: [`${exact}_wrong_asset`],
    tamper: () => ({ contract: Asset.native().contractId(Networks.TESTNET) })
  },
  // 18–21: time and the rest of the envelope.
  {
    name: "an authorization that has ended",
    reasons: ["invalid_ledger_auth_expired"],
    tamper: () => ({ expiryOffset: -100 })
  },
  {
    name: "an authorization without end",
    reasons: ["invalid_exact_ledger_signature_expiration_too_far"],
    tamper: () => ({ expirationLedger: 4_000_000_000 })
  },
  {
    name: "an authorization 100 ledgers too long",
    reasons: ["invalid_exact_ledger_signature_expiration_too_far"],
    tamper: () => ({ expiryOffset: 100 })
  }
]

/** S plus the order of the group: a lax verifier accepts this equation, the network refuses it. */
const malleated = (signature: Uint8Array): Uint8Array => {
  const order = (1n << 252n) + 27742317777372353535851937790883648493n
  let s = 0n
  for (let i = 63; i >= 32; i--) s = (s << 8n) | BigInt(signature[i]!)
  s += order
  const copy = signature.slice()
  for (let i = 32; i < 64; i++, s >>= 8n) copy[i] = Number(s & 255n)
  return copy
}

const classicPayment = (payTo: string): xdr.Operation =>
  new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.payment(
      new xdr.PaymentOp({
        destination: xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(payTo).rawPublicKey()),
        asset: Asset.native().toXdrObject(),
        amount: price
      })
    )
  })

/** Runs every attack against `target`, with accounts from the friendbot of `ledger`. */
export const attackCases = async (target: Target, ledger: string, part: Part): Promise<void> => {
  const rpc = rpcCall(ledger)
  const [network] = await networksOf(target)
  const [sponsor, channel] = await signersOf(target)
  if (sponsor === undefined) throw new Error("the facilitator names no account that it signs with")
  const [buyer, thief, seller] = [Keypair.random(), Keypair.random(), Keypair.random()]
  for (const account of [buyer, thief, seller]) await askFriendbot(ledger, account.publicKey(), 1)
  const cast: Cast = { buyer, thief, payTo: seller.publicKey(), sponsor, channel: channel ?? sponsor }
  const balances = async () =>
    (await Promise.all([buyer, thief, seller].map((account) => usdcBalance(rpc, account.publicKey())))).map(String)
  const before = await balances()

  for (const { name, payTo, reasons, tamper } of attacks) {
    await part.check(`refused${reasons === undefined ? "" : ` as ${reasons[0]}`}: ${name}`, async () => {
      const { body } = await makePayment({
        rpc,
        payer: buyer,
        payTo: payTo?.(cast) ?? cast.payTo,
        amount: price,
        network: network!,
        tamper: tamper(cast)
      })
      const expected = reasons?.map((reason) => inDialect(reason, network!))
      const verify = await post(`${target.url}/verify`, body, 30_000, bearerOf(target))
      const settle = await post(`${target.url}/settle`, body, 30_000, bearerOf(target))
      assertRefusedVerify(verify, expected)
      assertRefusedSettle(settle, expected)
      assert.equal(settle.json.transaction, "")
    })
  }
  await part.check("no attack moved money", async () => assert.deepEqual(await balances(), before))
  await part.check("an honest payment by the same buyer settles", async () => {
    const { body } = await makePayment({ rpc, payer: buyer, payTo: cast.payTo, amount: price, network: network! })
    const settle = await post(`${target.url}/settle`, body, 30_000, bearerOf(target))
    assert.equal(settle.json?.success, true, settle.text)
  })
}
