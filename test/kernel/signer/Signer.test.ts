// The signer refuses everything that the kernel would not have built, for any caller: each deviation from a valid
// settlement, cancellation and sponsor's transaction separately. And the vault: the sources of secrets, without any
// leak.
import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair, Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, FileSystem, Layer, Option, Path, Redacted } from "effect"
import { createHash } from "node:crypto"
import { Network } from "../../../kernel/config/Network.ts"
import {
  cancelTransaction,
  decodeEnvelope,
  settlementTransaction,
  sponsorTransaction,
  type SponsorOperation,
  type Transaction
} from "../../../kernel/stellar/Envelope.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { Vault } from "../../../kernel/signer/Vault.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { channel, channels, hostAt, networkWith, otherChannel, sponsor, vaultWith } from "./vaults.ts"

const stranger = Keypair.random().publicKey()
const signers = Signer.layer.pipe(Layer.provide([vaultWith(), networkWith(), cryptoLayer]))

const bounds = { ledgerMax: 5_000, timeMax: 1_800_000_000n }

/** An honest client's operation and data, wrapped around the tampered values. */
const honestParts = Effect.promise(async () => {
  const { transaction } = await makePayment({
    latestLedger: 1_000,
    nowSeconds: 1_700_000_000,
    payer: Keypair.random(),
    payTo: stranger,
    amount: 1n
  })
  const envelope = xdr.TransactionEnvelope.schema.decode(Uint8Array.from(atob(transaction), (c) => c.charCodeAt(0)))
  if (envelope.type !== 2 || envelope.v1.tx.ext.v !== 1)
    throw new Error("a plain envelope with resource data is required")
  return {
    operationXdr: xdr.Operation.schema.encode(envelope.v1.tx.operations[0]!),
    sorobanDataXdr: xdr.SorobanTransactionData.schema.encode(envelope.v1.tx.ext.sorobanData)
  }
})
const honest = Effect.map(honestParts, (parts) => settlementTransaction({ channel, sequence: 7n, bounds, ...parts }))

const accountOf = (address: string) => ({ type: 0, ed25519: StrKey.decodeEd25519PublicKey(address) })
type Loose = any
const v2 = (tx: Transaction): Loose => (tx.cond as Loose).v2
const changed = (tx: Transaction, change: Record<string, unknown>): Transaction => ({ ...tx, ...change }) as Transaction
const withCondition = (tx: Transaction, change: Record<string, unknown>) =>
  changed(tx, { cond: { type: 2, v2: { ...v2(tx), ...change } } })
const preimage = new Uint8Array(32).fill(9)
const hash = new Uint8Array(createHash("sha256").update(preimage).digest())
const hashSigner = { type: 2, hashX: hash }
const hashSigned = (tx: Transaction) => withCondition(tx, { extraSigners: [hashSigner] })
const withOperation = (tx: Transaction, change: Record<string, unknown>) =>
  changed(tx, { operations: [{ ...tx.operations[0]!, ...change }] })
const withFee = (tx: Transaction, resourceFee: bigint) =>
  changed(tx, { ext: { v: 1, sorobanData: { ...(tx.ext as Loose).sorobanData, resourceFee } } })

const request = (transaction: Transaction, more: Record<string, unknown> = {}) => ({
  transaction,
  channel,
  scheme: "exact",
  inclusionStroops: 200n,
  ...more
})

const withAuth = (tx: Transaction, change: (auth: ReadonlyArray<Loose>) => ReadonlyArray<Loose>): Transaction => {
  const { auth, hostFunction } = (tx.operations[0] as Loose).body.invokeHostFunctionOp
  return withOperation(tx, { body: { type: 24, invokeHostFunctionOp: { hostFunction, auth: change(auth) } } })
}

/** The host function's arguments hold an address of ours, however deep. */
const naming = (tx: Transaction, address: string): Transaction => {
  const { auth, hostFunction } = (tx.operations[0] as Loose).body.invokeHostFunctionOp
  const call = hostFunction.invokeContract
  const args = [...call.args, { type: 16, vec: [{ type: 13, bytes: StrKey.decodeEd25519PublicKey(address) }] }]
  return withOperation(tx, {
    body: { type: 24, invokeHostFunctionOp: { auth, hostFunction: { type: 0, invokeContract: { ...call, args } } } }
  })
}

describe("a settlement", () => {
  it.effect("a settlement is signed by its channel and fee-bumped by the sponsor [S10, S82]", () =>
    Effect.gen(function* () {
      const signer = yield* Signer
      const signed = yield* signer.signSettlement(request(yield* honest))
      const bump = TransactionBuilder.fromXDR(signed.envelope, Networks.TESTNET)
      if (!("innerTransaction" in bump)) throw new Error("a fee bump is required")
      expect([bump.feeSource, bump.innerTransaction.source]).toEqual([sponsor.publicKey(), channel])
      expect(bump.fee).toBe("40200")
      expect(Buffer.from(bump.hash()).toString("hex")).toBe(signed.outerHash)
      expect(Buffer.from(bump.innerTransaction.hash()).toString("hex")).toBe(signed.innerHash)
      expect(sponsor.verify(bump.hash(), bump.signatures[0]!.signature)).toBe(true)
      expect(channels[0]!.verify(bump.innerTransaction.hash(), bump.innerTransaction.signatures[0]!.signature)).toBe(
        true
      )
      expect([bump.signatures.length, bump.innerTransaction.signatures.length]).toEqual([1, 1])
    }).pipe(Effect.provide(signers))
  )

  it.effect("a settlement with a hash signer is signed with its preimage too", () =>
    Effect.gen(function* () {
      const { envelope } = yield* (yield* Signer).signSettlement(request(hashSigned(yield* honest), { preimage }))
      const bump = TransactionBuilder.fromXDR(envelope, Networks.TESTNET)
      if (!("innerTransaction" in bump)) throw new Error("a fee bump is required")
      const [own] = bump.innerTransaction.signatures
      expect(channels[0]!.verify(bump.innerTransaction.hash(), own!.signature)).toBe(true)
      const signatures = ((yield* decodeEnvelope(envelope)) as Loose).feeBump.tx.innerTx.v1.signatures
      expect(signatures.slice(1)).toEqual([{ hint: hash.slice(28), signature: preimage }])
    }).pipe(Effect.provide(signers))
  )

  const departures: ReadonlyArray<
    readonly [name: string, change: (tx: Transaction) => Transaction, more?: Record<string, unknown>]
  > = [
    ["on an account that is not a channel", (tx) => tx, { channel: stranger }],
    [
      "on the sponsor",
      (tx) => changed(tx, { sourceAccount: accountOf(sponsor.publicKey()) }),
      { channel: sponsor.publicKey() }
    ],
    ["whose source is another channel", (tx) => changed(tx, { sourceAccount: accountOf(otherChannel) })],
    ["with a memo", (tx) => changed(tx, { memo: { type: 2, id: 7n } })],
    ["without conditions", (tx) => changed(tx, { cond: { type: 0 } })],
    ["without a ledger bound", (tx) => withCondition(tx, { ledgerBounds: null })],
    ["with a ledger bound of none", (tx) => withCondition(tx, { ledgerBounds: { minLedger: 0, maxLedger: 0 } })],
    [
      "that wants another signer",
      (tx) => withCondition(tx, { extraSigners: [{ type: 0, ed25519: new Uint8Array(32) }] })
    ],
    ["with a hash signer whose preimage is missing", (tx) => hashSigned(tx)],
    ["with a preimage of another hash", (tx) => hashSigned(tx), { preimage: new Uint8Array(32) }],
    ["with a preimage that it does not ask for", (tx) => tx, { preimage }],
    [
      "with a second signer beside its hash signer",
      (tx) => withCondition(tx, { extraSigners: [hashSigner, { type: 0, ed25519: new Uint8Array(32) }] }),
      { preimage }
    ],
    ["with another sequence", (tx) => withCondition(tx, { minSeqNum: 5n })],
    ["with a sequence's age", (tx) => withCondition(tx, { minSeqAge: 5n })],
    ["with a gap of ledgers", (tx) => withCondition(tx, { minSeqLedgerGap: 5 })],
    ["of two operations", (tx) => changed(tx, { operations: [tx.operations[0], tx.operations[0]] })],
    ["of none", (tx) => changed(tx, { operations: [] })],
    ["whose operation has a source", (tx) => withOperation(tx, { sourceAccount: accountOf(stranger) })],
    [
      "that is a payment",
      (tx) =>
        withOperation(tx, {
          body: { type: 1, paymentOp: { destination: accountOf(stranger), asset: { type: 0 }, amount: 1n } }
        })
    ],
    [
      "that uploads code",
      (tx) =>
        withOperation(tx, {
          body: { type: 24, invokeHostFunctionOp: { hostFunction: { type: 2, wasm: new Uint8Array(8) }, auth: [] } }
        })
    ],
    ["without resource data", (tx) => changed(tx, { ext: { v: 0 } })],
    ["that names the sponsor in an argument", (tx) => naming(tx, sponsor.publicKey())],
    ["that names a channel in an argument", (tx) => naming(tx, otherChannel)],
    ["with a resource fee above its ceiling", (tx) => withFee(tx, 200_001n)],
    ["with a resource fee below zero", (tx) => withFee(tx, -1n)],
    ["with a bid above its ceiling", (tx) => tx, { inclusionStroops: 10_001n }],
    [
      "with a fee above the ceiling of both, each being below its own",
      (tx) => withFee(tx, 45_001n),
      { scheme: "tight", inclusionStroops: 10_000n }
    ],
    ["whose own fee exceeds the fee bump's", (tx) => changed(tx, { fee: 210_001 })],
    [
      "with credentials of its own source",
      (tx) => withAuth(tx, (auth) => auth.map((entry) => ({ ...entry, credentials: { type: 0 } })))
    ],
    [
      "with a further entry that acts as its source",
      (tx) => withAuth(tx, (auth) => [...auth, { ...auth[0], credentials: { type: 0 } }])
    ],
    [
      "with an entry of the sponsor's",
      (tx) =>
        withAuth(tx, (auth) =>
          auth.map((entry) => ({
            ...entry,
            credentials: {
              type: 1,
              address: { ...entry.credentials.address, address: { type: 0, accountId: accountOf(sponsor.publicKey()) } }
            }
          }))
        )
    ]
  ]
  for (const [name, change, more] of departures) {
    it.effect(`is not signed ${name} [S11]`, () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip((yield* Signer).signSettlement(request(change(yield* honest), more)))
        expect(refused._tag).toBe("SignerRefused")
        for (const word of [sponsor.publicKey(), channel, stranger]) expect(refused.message).not.toContain(word)
      }).pipe(Effect.provide(signers))
    )
  }
})

describe("a cancellation", () => {
  const cancel = cancelTransaction({ channel, sequence: 7n, bounds })
  const departures: ReadonlyArray<readonly [string, Transaction, string?, bigint?]> = [
    ["on an account that is not a channel", changed(cancel, { sourceAccount: accountOf(stranger) }), stranger],
    ["of another channel", changed(cancel, { sourceAccount: accountOf(otherChannel) })],
    ["that bumps the sequence", withOperation(cancel, { body: { type: 11, bumpSequenceOp: { bumpTo: 9n } } })],
    [
      "that pays",
      withOperation(cancel, {
        body: { type: 1, paymentOp: { destination: accountOf(stranger), asset: { type: 0 }, amount: 1n } }
      })
    ],
    ["of two operations", changed(cancel, { operations: [cancel.operations[0], cancel.operations[0]] })],
    ["for another account", withOperation(cancel, { sourceAccount: accountOf(otherChannel) })],
    ["with a memo", changed(cancel, { memo: { type: 2, id: 7n } })],
    ["that wants a hash signer", hashSigned(cancel)],
    ["without an end", withCondition(cancel, { ledgerBounds: null })],
    ["with a bid above its ceiling", cancel, channel, 10_001n]
  ]

  it.effect("a cancellation is signed like a settlement", () =>
    Effect.gen(function* () {
      const signed = yield* (yield* Signer).signCancel({
        transaction: cancel,
        channel,
        scheme: "exact",
        inclusionStroops: 10_000n
      })
      const bump = TransactionBuilder.fromXDR(signed.envelope, Networks.TESTNET)
      expect(["innerTransaction" in bump, bump.fee]).toEqual([true, "10000"])
    }).pipe(Effect.provide(signers))
  )

  for (const [name, transaction, on, inclusionStroops] of departures) {
    it.effect(`is not signed ${name}`, () =>
      Effect.gen(function* () {
        expect(
          (yield* Effect.flip(
            (yield* Signer).signCancel({
              transaction,
              channel: on ?? channel,
              scheme: "exact",
              inclusionStroops: inclusionStroops ?? 200n
            })
          ))._tag
        ).toBe("SignerRefused")
      }).pipe(Effect.provide(signers))
    )
  }
})

describe("a transaction of the sponsor's own", () => {
  const sponsors = (operations: ReadonlyArray<SponsorOperation>, source = sponsor.publicKey()) =>
    sponsorTransaction({ channel: source, sequence: 1n, bounds, feeStroopsPerOperation: 100n, operations })

  it.effect("creates, funds and merges channels with all required signatures", () =>
    Effect.gen(function* () {
      const { envelope } = yield* (yield* Signer).signSponsor(
        sponsors([
          { _tag: "Create", account: channel, balanceStroops: 1n },
          { _tag: "Fund", account: otherChannel, amountStroops: 1n },
          { _tag: "Merge", account: otherChannel, into: sponsor.publicKey() }
        ])
      )
      expect(TransactionBuilder.fromXDR(envelope, Networks.TESTNET).signatures).toHaveLength(2)
    }).pipe(Effect.provide(signers))
  )

  const anchor = { _tag: "Anchor", hash: new Uint8Array(32).fill(7) } as const

  it.effect("anchors a hash in its memo and changes nothing", () =>
    Effect.gen(function* () {
      const { envelope } = yield* (yield* Signer).signSponsor(sponsors([anchor]))
      const { memo, operations } = TransactionBuilder.fromXDR(envelope, Networks.TESTNET) as any
      expect([memo.type, Buffer.from(memo.value).toString("hex")]).toEqual(["hash", "07".repeat(32)])
      expect(operations).toMatchObject([{ type: "bumpSequence", bumpTo: "0" }])
    }).pipe(Effect.provide(signers))
  )

  const departures: ReadonlyArray<readonly [string, Transaction]> = [
    ["of another account", sponsors([], channel)],
    [
      "that has a memo beside another operation",
      sponsors([{ _tag: "Fund", account: channel, amountStroops: 1n }, anchor])
    ],
    ["that does nothing and has no memo", changed(sponsors([anchor]), { memo: { type: 0 } })],
    [
      "that offers more than its ceiling for an operation",
      changed(sponsors([{ _tag: "Fund", account: channel, amountStroops: 1n }]), { fee: 100_001 })
    ],
    ["that creates a stranger's account", sponsors([{ _tag: "Create", account: stranger, balanceStroops: 1n }])],
    ["that pays a stranger", sponsors([{ _tag: "Fund", account: stranger, amountStroops: 1n }])],
    ["that merges a channel into a stranger", sponsors([{ _tag: "Merge", account: channel, into: stranger }])],
    [
      "that moves the balance of the sponsor in use",
      sponsors([{ _tag: "Drain", account: sponsor.publicKey(), to: stranger, amountStroops: 1n }])
    ],
    [
      "that merges the sponsor into a channel",
      sponsors([{ _tag: "Merge", account: sponsor.publicKey(), into: channel }])
    ],
    [
      "that pays the asset [S10]",
      withOperation(sponsors([{ _tag: "Fund", account: channel, amountStroops: 1n }]), {
        body: {
          type: 1,
          paymentOp: {
            destination: accountOf(channel),
            asset: { type: 1, alphaNum4: { assetCode: new TextEncoder().encode("USDC"), issuer: accountOf(stranger) } },
            amount: 1n
          }
        }
      })
    ],
    [
      "for another source",
      withOperation(sponsors([{ _tag: "Fund", account: channel, amountStroops: 1n }]), {
        sourceAccount: accountOf(channel)
      })
    ],
    [
      "that does something else",
      withOperation(sponsors([{ _tag: "Fund", account: channel, amountStroops: 1n }]), {
        body: { type: 11, bumpSequenceOp: { bumpTo: 9n } }
      })
    ]
  ]
  for (const [name, transaction] of departures) {
    it.effect(`is not signed ${name}`, () =>
      Effect.gen(function* () {
        expect((yield* Effect.flip((yield* Signer).signSponsor(transaction)))._tag).toBe("SignerRefused")
      }).pipe(Effect.provide(signers))
    )
  }
})

describe("the vault", () => {
  it.effect("the vault lists sponsor and channels and exposes no secret [S253]", () =>
    Effect.gen(function* () {
      const vault = (yield* Vault).accounts()
      expect([vault.sponsor, vault.channels]).toEqual([sponsor.publicKey(), [channel, otherChannel]])
      expect(yield* vault.sign(stranger, new Uint8Array(32))).toBeUndefined()
      const shown = JSON.stringify(vault) + String(vault) + JSON.stringify(yield* Signer)
      for (const pair of [sponsor, ...channels]) expect(shown).not.toContain(pair.secret())
    }).pipe(Effect.provide(Layer.merge(vaultWith(), signers)))
  )

  it.effect("parses each seed once, on first use", () => {
    let parsed = 0
    const counted = Layer.effect(
      Crypto,
      Effect.map(Crypto, (crypto) =>
        Crypto.of({
          ...crypto,
          ed25519Signer: (seed) => {
            parsed += 1
            return crypto.ed25519Signer(seed)
          }
        })
      )
    ).pipe(Layer.provide(cryptoLayer))
    const vault = Vault.layer.pipe(Layer.provide([networkWith(), counted, hostAt("/nowhere"), NodeServices.layer]))
    return Effect.gen(function* () {
      const { sign } = (yield* Vault).accounts()
      expect(parsed).toBe(0)
      for (const fill of [1, 2, 3]) {
        const message = new Uint8Array(32).fill(fill)
        const { signature } = (yield* sign(channel, message))!
        expect(channels[0]!.verify(Buffer.from(message), Buffer.from(signature))).toBe(true)
      }
      expect(parsed).toBe(1)
    }).pipe(Effect.provide(vault))
  })

  it.effect("derives the same channels from the same sponsor on every replica", () =>
    Effect.gen(function* () {
      const derived = (sponsorSecret: string) =>
        Effect.map(Vault, ({ accounts }) => accounts().channels).pipe(
          Effect.provide(
            vaultWith({ channelSecrets: Option.none(), sponsorSecret: Option.some(Redacted.make(sponsorSecret)) })
          )
        )
      const [first, again, other] = [
        yield* derived(sponsor.secret()),
        yield* derived(sponsor.secret()),
        yield* derived(Keypair.random().secret())
      ]
      expect(first).toHaveLength(3)
      expect(again).toEqual(first)
      expect(first.some((address) => other.includes(address))).toBe(false)
    })
  )

  it.effect("refuses unusable secrets at start, naming only the variable [S278]", () =>
    Effect.gen(function* () {
      const refusedBy = (values: Partial<Network["Service"]>) =>
        Effect.map(Effect.flip(Effect.scoped(Layer.build(vaultWith(values)))), ({ message }) => message)
      expect(yield* refusedBy({ sponsorSecret: Option.none() })).toContain("sponsor_secret_env")
      const seed = sponsor.secret()
      const wrong = `${seed.slice(0, -1)}${seed.endsWith("A") ? "B" : "A"}`
      for (const message of [
        yield* refusedBy({ sponsorSecret: Option.some(Redacted.make(wrong)) }),
        yield* refusedBy({ channelSecrets: Option.some(Redacted.make(`${channels[0]!.secret()},${stranger}`)) })
      ]) {
        expect(message).toMatch(/is not a secret seed/)
        expect(message).not.toContain(wrong.slice(0, 10))
      }
      expect(
        yield* refusedBy({
          channelSecrets: Option.some(Redacted.make([channels[0]!.secret(), channels[0]!.secret()].join()))
        })
      ).toContain("different accounts")
      expect(yield* refusedBy({ channelSecrets: Option.some(Redacted.make(sponsor.secret())) })).toContain(
        "different accounts"
      )
    })
  )

  it.effect("creates a development seed once, readable by this user only", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-vault-" })
      const values = { sponsorSecret: Option.none(), channelSecrets: Option.none(), developmentAutoFund: true } as const
      const sponsorOf = Effect.map(Vault, (vault) => vault.accounts().sponsor).pipe(
        Effect.provide(vaultWith(values, folder))
      )
      const first = yield* sponsorOf
      expect(yield* sponsorOf).toBe(first)
      expect((yield* files.stat(path.join(folder, "sponsor.seed"))).mode & 0o777).toBe(0o600)
      yield* files.writeFileString(path.join(folder, "sponsor.seed"), "no seed")
      expect((yield* Effect.flip(Effect.scoped(Layer.build(vaultWith(values, folder))))).message).toContain(
        "is not a secret seed"
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
