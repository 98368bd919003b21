// A submitted transaction has the bytes and hashes of its XDR values, and the official library reads it.
import { describe, expect, it } from "@effect/vitest"
import { Keypair, Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { signedFeeBump, writeFeeBump, writeTransaction } from "../../../kernel/stellar/bumpedTransaction.ts"
import {
  cancelTransaction,
  encodeEnvelope,
  hashesOf,
  networkIdOf,
  preimageIn,
  settlementTransaction,
  withSignatures
} from "../../../kernel/stellar/Envelope.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { bumpWithSignature, feeBump } from "../../support/feeBump.ts"

const [payer, channel, sponsor] = [Keypair.random(), Keypair.random(), Keypair.random()]
const bounds = { ledgerMax: 5_000, timeMax: 1_800_000_000n }
const signature = (pair: Keypair, byte: number) => ({
  publicKey: pair.rawPublicKey(),
  signature: new Uint8Array(64).fill(byte)
})

const preimage = new Uint8Array(32).fill(9)
const hashSigner = new Uint8Array(createHash("sha256").update(preimage).digest())

const settlement = Effect.gen(function* () {
  const { transaction } = yield* Effect.promise(() =>
    makePayment({ latestLedger: 1_000, nowSeconds: 1_700_000_000, payer, payTo: channel.publicKey(), amount: 1n })
  )
  const client = xdr.TransactionEnvelope.schema.decode(Uint8Array.from(Buffer.from(transaction, "base64")))
  if (client.type !== 2 || client.v1.tx.ext.v !== 1) throw new Error("a plain envelope with resource data is required")
  return settlementTransaction({
    channel: channel.publicKey(),
    sequence: 9n,
    bounds,
    hashSigner,
    operationXdr: xdr.Operation.schema.encode(client.v1.tx.operations[0]!),
    sorobanDataXdr: xdr.SorobanTransactionData.schema.encode(client.v1.tx.ext.sorobanData)
  })
})

describe("a transaction with its fee bump", () => {
  it.effect("a fee-bumped transaction is encoded in one pass as separately, for any fee [S82]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const networkId = networkIdOf(crypto, Networks.TESTNET)
      const cancel = cancelTransaction({ channel: channel.publicKey(), sequence: 2n ** 62n, bounds })
      const transactions = [[cancel], [yield* settlement, { preimage, hash: hashSigner }]] as const
      for (const [transaction, given] of transactions)
        for (const feeStroops of [0n, 200n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 63n - 1n]) {
          const inner = writeTransaction(crypto, networkId, transaction)
          const signed = { transaction: inner, signature: signature(channel, 7), ...(given && { preimage: given }) }
          const opened = given === undefined ? [] : [{ publicKey: given.hash, signature: given.preimage }]
          const bump = writeFeeBump(crypto, networkId, signed, sponsor.publicKey(), feeStroops)
          const sent = signedFeeBump(bump, signature(sponsor, 8))
          const values = bumpWithSignature(
            feeBump(withSignatures(transaction, [signature(channel, 7), ...opened]), sponsor.publicKey(), feeStroops),
            signature(sponsor, 8)
          )
          expect(sent).toBe(encodeEnvelope(values))
          const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
          expect({ innerHash: hex(inner.hash), outerHash: hex(bump.hash) }).toEqual(hashesOf(crypto, networkId, values))
          const official = TransactionBuilder.fromXDR(sent, Networks.TESTNET)
          expect(hex(official.hash())).toBe(hex(bump.hash))
          expect(preimageIn(values)).toEqual(given?.preimage)
        }
    }).pipe(Effect.provide(cryptoLayer))
  )

  it.effect("refuses a signature of another length", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const inner = writeTransaction(crypto, new Uint8Array(32), yield* settlement)
      const short = { publicKey: channel.rawPublicKey(), signature: new Uint8Array(63) }
      const bumped = () =>
        writeFeeBump(crypto, new Uint8Array(32), { transaction: inner, signature: short }, sponsor.publicKey(), 1n)
      expect(bumped).toThrow("64 bytes")
      const signed = { transaction: inner, signature: signature(channel, 7) }
      const given = { preimage: preimage.subarray(1), hash: hashSigner }
      expect(() =>
        writeFeeBump(crypto, new Uint8Array(32), { ...signed, preimage: given }, sponsor.publicKey(), 1n)
      ).toThrow("32 bytes")
    }).pipe(Effect.provide(cryptoLayer))
  )
})
