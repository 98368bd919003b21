// Transactions as clients send them: one encoding only, bounded in size and depth, quick to refuse. And as the kernel
// builds them.
import { describe, expect, it } from "@effect/vitest"
import { Keypair, Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Result } from "effect"
import {
  cancelTransaction,
  encodeEnvelope,
  envelopeBytesMax,
  hashesOf,
  networkIdOf,
  readEnvelope,
  settlementTransaction,
  sponsorTransaction,
  withSignatures
} from "../../../kernel/stellar/Envelope.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { bumpWithSignature, feeBump } from "../../support/feeBump.ts"

const payer = Keypair.random()
const payTo = Keypair.random().publicKey()

const honest = async (tamper = {}) =>
  (await makePayment({ latestLedger: 1_000, nowSeconds: 1_700_000_000, payer, payTo, amount: 1n, tamper })).transaction

const reasonOf = (text: string) =>
  Result.match(readEnvelope(text), { onSuccess: () => "ok", onFailure: ({ reason }) => reason })
const bytesOf = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

describe("readEnvelope", () => {
  it("accepts the official client's envelopes", async () => expect(reasonOf(await honest())).toBe("ok"))

  it("accepts only canonical base64", async () => {
    const text = await honest()
    const unpadded = text.replace(/=+$/, "")
    const variants = [
      "",
      " ",
      ` ${text}`,
      `${text}\n`,
      text.replace(/^(.{40})/, "$1\n"),
      text.replaceAll("A", "-"),
      `${text}=`,
      `${text}AAAA=`,
      "%%%%",
      `${text.slice(0, -1)}\u0000`
    ]
    for (const variant of variants)
      expect([variant.slice(0, 20), reasonOf(variant)]).toEqual([variant.slice(0, 20), "not base64"])
    if (unpadded !== text) expect(reasonOf(unpadded)).toBe("not base64")
    // The last character's unused bits.
    for (const [tail, changed] of [
      ["AA==", "AB=="],
      ["AAA=", "AAB="]
    ] as const)
      if (text.endsWith(tail)) expect(reasonOf(text.slice(0, -4) + changed)).toBe("not base64")
  })

  it("accepts exactly one envelope without truncation, trailing bytes or nonzero padding", async () => {
    const bytes = bytesOf(await honest())
    for (const cut of [1, 4, 100, bytes.length - 4])
      expect(reasonOf(textOf(bytes.subarray(0, bytes.length - cut)))).toBe("not a transaction envelope")
    expect(reasonOf(textOf(new Uint8Array([...bytes, 0, 0, 0, 0])))).toBe("not a transaction envelope")
    expect(reasonOf(textOf(new Uint8Array(64)))).not.toBe("ok")
    const at = Buffer.from(bytes).indexOf("transfer")
    const padded = await honest({ functionName: "transfe" })
    const withPadding = bytesOf(padded)
    const place = Buffer.from(withPadding).indexOf("transfe") + 7
    expect(at).toBeGreaterThan(0)
    withPadding[place] = 1
    expect(reasonOf(textOf(withPadding))).toBe("not a transaction envelope")
  })

  it("refuses a large text before it is decoded", () => {
    // A text with a readable length only: reading a character fails.
    const ofLength = (length: number) =>
      new Proxy(
        {},
        {
          get: (_, key) => {
            if (key === "length") return length
            throw new Error("the text was read")
          }
        }
      ) as string
    expect(reasonOf(ofLength(10_000_000))).toBe("too large")
    expect(reasonOf(ofLength(Math.ceil(envelopeBytesMax / 3) * 4 + 4))).toBe("too large")
  })

  it("refuses a length beyond the input in any field", async () => {
    const bytes = bytesOf(await honest())
    const reported = new Set<string>()
    for (let at = 0; at + 4 <= bytes.length; at += 4) {
      const lying = bytes.slice()
      lying.set([0x7f, 0xff, 0xff, 0xff], at)
      reported.add(reasonOf(textOf(lying)))
    }
    // In place of a plain number it is another envelope; in place of a length, none.
    expect([...reported].sort()).toEqual(["not a transaction envelope", "ok"])
  })

  it("accepts values up to the network's depth and refuses deeper ones", async () => {
    expect(reasonOf(textOf(deepEnvelope(200)))).toBe("ok")
    for (const depth of [300, 1_000, 5_000, 10_000])
      expect([depth, reasonOf(textOf(deepEnvelope(depth)))]).toEqual([depth, "not a transaction envelope"])
  })

  it("recognizes fee bumps and old envelopes, which are no payments", async () => {
    const inner = xdr.TransactionEnvelope.schema.decode(bytesOf(await honest()))
    const bump = bumpWithSignature(feeBump(inner, payTo, 1_000n), {
      publicKey: payer.rawPublicKey(),
      signature: new Uint8Array(64)
    })
    const read = readEnvelope(encodeEnvelope(bump))
    expect(Result.isSuccess(read) && read.success.type).toBe(5)
  })
})

/**
 * Bytes of an envelope with one argument, a vector in a vector, `depth` times, written by hand since no encoder goes so
 * deep.
 */
const deepEnvelope = (depth: number): Uint8Array => {
  const u32 = (...values: ReadonlyArray<number>) =>
    values.flatMap((value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255])
  // ENVELOPE_TYPE_TX, source, fee, sequence, no conditions, no memo, one operation without source: invoke a contract.
  const head = [
    ...u32(2, 0),
    ...Array.from({ length: 32 }, () => 0),
    ...u32(100, 0, 1, 0, 0, 1, 0, 24, 0),
    ...u32(1),
    ...Array.from({ length: 32 }, () => 1),
    ...u32(1),
    0x66,
    0,
    0,
    0,
    ...u32(1)
  ]
  const vectors = Array.from({ length: depth }, () => u32(16, 1, 1)).flat()
  return new Uint8Array([...head, ...vectors, ...u32(3, 7), ...u32(0, 0, 0)])
}

describe("transactions built by the kernel", () => {
  const channel = Keypair.random()
  const bounds = { ledgerMax: 5_000, timeMax: 1_800_000_000n }

  it.effect("hashes equal the official library's, with and without fee bump [S82]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const networkId = networkIdOf(crypto, Networks.TESTNET)
      const sponsor = Keypair.random()
      const inner = withSignatures(cancelTransaction({ channel: channel.publicKey(), sequence: 7n, bounds }), [])
      const bump = bumpWithSignature(feeBump(inner, sponsor.publicKey(), 400n), {
        publicKey: sponsor.rawPublicKey(),
        signature: new Uint8Array(64)
      })
      const official = TransactionBuilder.fromXDR(encodeEnvelope(bump), Networks.TESTNET)
      const hashes = hashesOf(crypto, networkId, bump)!
      expect(hashes.outerHash).toBe(Buffer.from(official.hash()).toString("hex"))
      expect("innerTransaction" in official && Buffer.from(official.innerTransaction.hash()).toString("hex")).toBe(
        hashes.innerHash
      )
      expect(hashesOf(crypto, networkId, inner)).toEqual({ innerHash: hashes.innerHash, outerHash: hashes.innerHash })
      expect(hashesOf(crypto, networkIdOf(crypto, Networks.PUBLIC), inner)?.innerHash).not.toBe(hashes.innerHash)
    }).pipe(Effect.provide(cryptoLayer))
  )

  it("settles with only the client's operation from its envelope [S81]", async () => {
    const client = xdr.TransactionEnvelope.schema.decode(bytesOf(await honest()))
    if (client.type !== 2 || client.v1.tx.ext.v !== 1)
      throw new Error("a plain envelope with resource data is required")
    const [operation] = client.v1.tx.operations
    const operationXdr = xdr.Operation.schema.encode(operation!)
    const sorobanDataXdr = xdr.SorobanTransactionData.schema.encode(client.v1.tx.ext.sorobanData)
    const built = settlementTransaction({
      channel: channel.publicKey(),
      sequence: 9n,
      bounds,
      operationXdr,
      sorobanDataXdr
    })
    expect(xdr.Operation.schema.encode(built.operations[0]!)).toEqual(operationXdr)
    expect([built.operations.length, built.seqNum, built.memo.type, built.cond.type]).toEqual([1, 9n, 0, 2])
    expect(built.fee).toBe(Number(client.v1.tx.ext.sorobanData.resourceFee) + 100)
    if (built.cond.type === 2)
      expect([built.cond.v2.ledgerBounds?.maxLedger, built.cond.v2.timeBounds?.maxTime]).toEqual([
        5_000,
        1_800_000_000n
      ])
  })

  it("the sponsor's fee covers each operation", () => {
    const tx = sponsorTransaction({
      channel: channel.publicKey(),
      sequence: 1n,
      bounds,
      feeStroopsPerOperation: 150n,
      operations: [
        { _tag: "Create", account: payTo, balanceStroops: 5n },
        { _tag: "Fund", account: payTo, amountStroops: 6n },
        { _tag: "Merge", account: payTo, into: channel.publicKey() }
      ]
    })
    expect([tx.fee, tx.operations.map(({ body }) => body.type)]).toEqual([450, [0, 1, 8]])
  })
})
