// Payments with a forged authorization: the facilitator's own accounts as a party; authorizations that are missing,
// foreign, nested or doubled; signatures that a lax verifier accepts (attacks 1 to 11, 63 and 64).
import { type Keypair, Networks, StrKey, xdr } from "@stellar/stellar-sdk"
import { callOf, invocationOf, signatureMap, signAuthorization } from "./authorization.ts"
import { type AuthorizationContext, testnetUsdc } from "./buyer.ts"
import { address, anyReason, type Crafted, crafted, exact, i128, price } from "./crafted.ts"

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
  crafted(
    1,
    `the ${role} as payer, with source-account credentials`,
    [`${exact}_facilitator_is_payer`, `${exact}_unsafe_tx_or_op_source`],
    (cast) => ({ from: cast[role], source: cast[role], credentials: "sourceAccount" })
  ),
  crafted(1, `the ${role} as payer, in an unsigned authorization`, [`${exact}_facilitator_is_payer`], (cast) => ({
    from: cast[role],
    authAddress: cast[role],
    signatureValue: () => xdr.ScVal.scvVoid()
  })),
  crafted(1, `the ${role} as payer, signed by the buyer`, [`${exact}_facilitator_is_payer`], (cast) => ({
    from: cast[role],
    authAddress: cast[role]
  })),
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
  crafted(2, `the ${role} as source of the transaction`, [`${exact}_unsafe_tx_or_op_source`], (cast) => ({
    source: cast[role]
  })),
  crafted(3, `the ${role} as source of the operation`, [`${exact}_unsafe_tx_or_op_source`], (cast) => ({
    operationSource: cast[role]
  })),
  crafted(4, `the ${role} in a second authorization`, [`${exact}_facilitator_in_auth`], (cast) => ({
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
  })),
  crafted(
    4,
    `the ${role} in an argument of a sub-invocation`,
    [`${exact}_facilitator_in_auth`, `${exact}_has_subinvocations`],
    (cast) => ({
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
  )
]

/** Another authorization of the same call, signed by this account. */
const another = (payer: Keypair, { call, expirationLedger, networkPassphrase }: AuthorizationContext) =>
  signAuthorization({ payer, invocation: invocationOf(call), nonce: 9n, expirationLedger, networkPassphrase })

export const forgedAuthorizations: ReadonlyArray<Crafted> = [
  ...(["sponsor", "channel"] as const).flatMap((role) => [...forgedParties(role), ...hiddenParties(role)]),
  crafted(5, "source-account credentials of the buyer", anyReason, () => ({ credentials: "sourceAccount" })),
  crafted(6, "no authorization", anyReason, () => ({ authEntries: () => [] })),
  crafted(6, "an authorization without a signature", anyReason, () => ({ signatureValue: () => xdr.ScVal.scvVoid() })),
  crafted(6, "an empty list of signatures", anyReason, () => ({ signatureValue: () => xdr.ScVal.scvVec([]) })),
  crafted(7, "a signature by another key, honestly named", anyReason, ({ thief }) => ({ signers: [thief] })),
  crafted(7, "the buyer's signature twice", anyReason, ({ buyer }) => ({ signers: [buyer, buyer] })),
  crafted(7, "the buyer's signature beside a stranger's", anyReason, ({ buyer, thief }) => ({
    signers: [buyer, thief]
  })),
  crafted(7, "a signature for another network", [`${exact}_invalid_signature`], () => ({
    signedPassphrase: Networks.PUBLIC
  })),
  crafted(8, "64 zero bytes as signature", [`${exact}_invalid_signature`], () => ({
    signature: (s) => s.map(() => 0)
  })),
  crafted(8, "63 bytes as signature", anyReason, () => ({ signature: (s) => s.slice(0, 63) })),
  crafted(8, "a signature with S plus the group's order", [`${exact}_invalid_signature`], () => ({
    signature: malleated
  })),
  crafted(9, "an approval nested in the authorization", [`${exact}_has_subinvocations`], ({ buyer, thief }) => ({
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
  })),
  crafted(9, "a second transfer nested in the authorization", [`${exact}_has_subinvocations`], ({ buyer, thief }) => ({
    subInvocations: [
      invocationOf(callOf(testnetUsdc, "transfer", [address(buyer.publicKey()), address(thief.publicKey()), i128(1n)]))
    ]
  })),
  crafted(11, "the same authorization twice", anyReason, () => ({ authEntries: ([one]) => [one!, one!] })),
  crafted(11, "a second authorization of the buyer", anyReason, ({ buyer }) => ({
    authEntries: (entries, signed) => [...entries, another(buyer, signed)]
  })),
  crafted(10, "an authorization of a stranger beside the buyer's", anyReason, ({ thief }) => ({
    authEntries: (entries, signed) => [...entries, another(thief, signed)]
  })),
  crafted(7, "an authorization for another call", anyReason, ({ buyer, thief }) => ({
    signedCall: () =>
      callOf(testnetUsdc, "transfer", [address(buyer.publicKey()), address(thief.publicKey()), i128(price)])
  })),
  crafted(7, "an authorization of the stranger in the buyer's place", anyReason, ({ thief }) => ({
    authAddress: thief.publicKey(),
    signers: [thief]
  })),
  crafted(8, "a point of small order as R, and S of zero", anyReason, () => ({
    signature: () => Uint8Array.from({ length: 64 }, (_, index) => (index === 0 ? 1 : 0))
  })),
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
