// Payments with a forged authorization: the facilitator's own accounts as a party; authorizations that are missing,
// foreign, nested or doubled; signatures that a lax verifier accepts (attacks 1 to 11, 63 and 64).
import { type Keypair, Networks, StrKey, xdr } from "@stellar/stellar-sdk"
import { callOf, invocationOf, signatureMap, signAuthorization } from "./authorization.ts"
import { type AuthorizationContext, testnetUsdc } from "./buyer.ts"
import { address, type Crafted, exact, i128, price } from "./crafted.ts"

/** Encodings of points of order 1, 2 and 4. */
const smallOrder = [
  [1, ...new Uint8Array(31)],
  [0xec, ...Uint8Array.from({ length: 30 }, () => 0xff), 0x7f],
  [...new Uint8Array(32)]
].map((bytes) => Uint8Array.from(bytes))

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

/** The facilitator's own account as payer or recipient. */
const forgedParties = (role: "sponsor" | "channel"): ReadonlyArray<Crafted> => [
  {
    attack: 1,
    name: `the ${role} as payer, with source-account credentials`,
    reasons: [`${exact}_facilitator_is_payer`, `${exact}_unsafe_tx_or_op_source`],
    tamper: (cast) => ({ from: cast[role], source: cast[role], credentials: "sourceAccount" })
  },
  {
    attack: 1,
    name: `the ${role} as payer, in an unsigned authorization`,
    reasons: [`${exact}_facilitator_is_payer`],
    tamper: (cast) => ({ from: cast[role], authAddress: cast[role], signatureValue: () => xdr.ScVal.scvVoid() })
  },
  {
    attack: 1,
    name: `the ${role} as payer, signed by the buyer`,
    reasons: [`${exact}_facilitator_is_payer`],
    tamper: (cast) => ({ from: cast[role], authAddress: cast[role] })
  },
  {
    attack: 1,
    name: `the ${role} as recipient`,
    reasons: [`${exact}_facilitator_is_recipient`],
    payTo: (cast) => cast[role],
    tamper: () => ({})
  }
]

/** The same account as a source, or inside an authorization. */
const hiddenParties = (role: "sponsor" | "channel"): ReadonlyArray<Crafted> => [
  {
    attack: 2,
    name: `the ${role} as source of the transaction`,
    reasons: [`${exact}_unsafe_tx_or_op_source`],
    tamper: (cast) => ({ source: cast[role] })
  },
  {
    attack: 3,
    name: `the ${role} as source of the operation`,
    reasons: [`${exact}_unsafe_tx_or_op_source`],
    tamper: (cast) => ({ operationSource: cast[role] })
  },
  {
    attack: 4,
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
    attack: 4,
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
]

/** Another authorization of the same call, signed by this account. */
const another = (payer: Keypair, { call, expirationLedger, networkPassphrase }: AuthorizationContext) =>
  signAuthorization({ payer, invocation: invocationOf(call), nonce: 9n, expirationLedger, networkPassphrase })

export const forgedAuthorizations: ReadonlyArray<Crafted> = [
  ...(["sponsor", "channel"] as const).flatMap((role) => [...forgedParties(role), ...hiddenParties(role)]),
  { attack: 5, name: "source-account credentials of the buyer", tamper: () => ({ credentials: "sourceAccount" }) },
  { attack: 6, name: "no authorization", tamper: () => ({ authEntries: () => [] }) },
  {
    attack: 6,
    name: "an authorization without a signature",
    tamper: () => ({ signatureValue: () => xdr.ScVal.scvVoid() })
  },
  { attack: 6, name: "an empty list of signatures", tamper: () => ({ signatureValue: () => xdr.ScVal.scvVec([]) }) },
  { attack: 7, name: "a signature by another key, honestly named", tamper: ({ thief }) => ({ signers: [thief] }) },
  { attack: 7, name: "the buyer's signature twice", tamper: ({ buyer }) => ({ signers: [buyer, buyer] }) },
  {
    attack: 7,
    name: "the buyer's signature beside a stranger's",
    tamper: ({ buyer, thief }) => ({ signers: [buyer, thief] })
  },
  {
    attack: 7,
    name: "a signature for another network",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signedPassphrase: Networks.PUBLIC })
  },
  {
    attack: 8,
    name: "64 zero bytes as signature",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signature: (s) => s.map(() => 0) })
  },
  { attack: 8, name: "63 bytes as signature", tamper: () => ({ signature: (s) => s.slice(0, 63) }) },
  {
    attack: 8,
    name: "a signature with S plus the group's order",
    reasons: [`${exact}_invalid_signature`],
    tamper: () => ({ signature: malleated })
  },
  {
    attack: 9,
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
    attack: 9,
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
  { attack: 11, name: "the same authorization twice", tamper: () => ({ authEntries: ([one]) => [one!, one!] }) },
  {
    attack: 11,
    name: "a second authorization of the buyer",
    tamper: ({ buyer }) => ({
      authEntries: (entries, signed) => [...entries, another(buyer, signed)]
    })
  },
  {
    attack: 10,
    name: "an authorization of a stranger beside the buyer's",
    tamper: ({ thief }) => ({
      authEntries: (entries, signed) => [...entries, another(thief, signed)]
    })
  },
  {
    attack: 7,
    name: "an authorization for another call",
    tamper: ({ buyer, thief }) => ({
      signedCall: () =>
        callOf(testnetUsdc, "transfer", [address(buyer.publicKey()), address(thief.publicKey()), i128(price)])
    })
  },
  {
    attack: 7,
    name: "an authorization of the stranger in the buyer's place",
    tamper: ({ thief }) => ({ authAddress: thief.publicKey(), signers: [thief] })
  },
  {
    attack: 8,
    name: "a point of small order as R, and S of zero",
    tamper: () => ({ signature: () => Uint8Array.from({ length: 64 }, (_, index) => (index === 0 ? 1 : 0)) })
  },
  ...smallOrder.map((key, index): Crafted => ({
    attack: 63,
    name: `payer ${index + 1} of small order, with R of small order and S of zero`,
    tamper: () => ({
      from: StrKey.encodeEd25519PublicKey(Buffer.from(key)),
      authAddress: StrKey.encodeEd25519PublicKey(Buffer.from(key)),
      signatureValue: () => xdr.ScVal.scvVec([signatureMap(key, Uint8Array.from([...key, ...new Uint8Array(32)]))])
    })
  })),
  ...(["addressV2", "delegates"] as const).map((credentials): Crafted => ({
    attack: 64,
    name: `credentials of the variant ${credentials}`,
    tamper: () => ({ credentials }),
    isHarmless: true
  }))
]
