// Random numbers of contracts against the definition, with the platform's own HMAC and ChaCha20 in place of ours.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createCipheriv, createHash, createHmac } from "node:crypto"
import { Networks, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { contract, hostImport, signed } from "../engine/wasm/assemble.ts"
import { outcome, submit } from "../contracts.ts"
import { fund, ledgerLayer } from "../support.ts"

const sha256 = (...parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The seed after its HMAC, with the public network's id as the key. */
const extracted = (seed: Uint8Array): Buffer => createHmac("sha256", sha256(Networks.PUBLIC)).update(seed).digest()

/** Bytes of ChaCha20's key stream. */
const stream = (key: Uint8Array, from: number, length: number): Buffer =>
  createCipheriv("chacha20", key, Buffer.alloc(16))
    .update(Buffer.alloc(from + length))
    .subarray(from)

const u32 = (value: number): Array<number> => [0x42, ...signed(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))]
const [RANDOM_BYTES, RESEED, BYTES_OF_MEMORY] = [
  hostImport("p", "0", 3),
  hostImport("p", "_", 3),
  hostImport("b", "3", 2)
]

/** Returns 40 random bytes. */
const drawing = contract({ body: [...u32(40), 0x10, 0], imports: [RANDOM_BYTES] })
/** The same after a new seed of 32 zero bytes of memory. */
const reseeding = contract({
  body: [...u32(0), ...u32(32), 0x10, 2, 0x10, 1, 0x1a, ...u32(40), 0x10, 0],
  imports: [RANDOM_BYTES, RESEED, BYTES_OF_MEMORY]
})

/** The return value of the last transaction in the latest ledger. */
const returned = Effect.map(LocalLedger, ({ ledger }) => {
  const meta = xdr.TransactionMeta.fromXdr(Buffer.from(ledger.latest.transactions.at(-1)!.meta)) as any
  return Buffer.from(meta.value.sorobanMeta.returnValue.value.toBytes?.() ?? meta.value.sorobanMeta.returnValue.value)
})

describe("a contract's random numbers", () => {
  it.effect("random numbers derive from the transaction set and index by HMAC", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [alice, bob] = [yield* fund("alice"), yield* fund("bob")]
      for (const step of ["upload", "create"] as const) {
        yield* submit(alice, drawing, step)
        yield* submit(bob, drawing, step)
        yield* ledger.close
      }
      yield* submit(alice, drawing, "call")
      const sent = yield* submit(bob, drawing, "call")
      yield* ledger.close
      expect((yield* outcome(sent.hash)).status).toBe("SUCCESS")
      const { headerXdr } = yield* ledger.call("getLatestLedger")
      const { txSetHash } = xdr.LedgerHeader.fromXdr(headerXdr, "base64").scpValue as any
      const place = Buffer.alloc(8)
      place.writeBigUInt64BE(1n)
      const transaction = extracted(sha256(Buffer.from(txSetHash.toBytes?.() ?? txSetHash), place))
      const frame = stream(transaction, 64, 32)
      expect((yield* returned).toString("hex")).toBe(stream(frame, 0, 40).toString("hex"))
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a contract's own seed passes through the HMAC", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const alice = yield* fund("alice")
      for (const step of ["upload", "create", "call"] as const) {
        yield* submit(alice, reseeding, step)
        yield* ledger.close
      }
      const expected = stream(extracted(Buffer.alloc(32)), 0, 40)
      expect((yield* returned).toString("hex")).toBe(expected.toString("hex"))
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

describe("a ledger's header", () => {
  it.effect("a header has the hashes of its transaction set and results", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const alice = yield* fund("alice")
      const check = Effect.gen(function* () {
        const { headerXdr, metadataXdr } = yield* ledger.call("getLatestLedger")
        const header = xdr.LedgerHeader.schema.decode(Buffer.from(headerXdr, "base64"))
        const meta = xdr.LedgerCloseMeta.schema.decode(Buffer.from(metadataXdr, "base64")) as any
        const { txSet, txProcessing } = meta.v2
        const results = { results: txProcessing.map(({ result }: any) => result) }
        const setHash = sha256(xdr.GeneralizedTransactionSet.schema.encode(txSet))
        const resultsHash = sha256(xdr.TransactionResultSet.schema.encode(results))
        expect(Buffer.from(header.scpValue.txSetHash).toString("hex")).toBe(setHash.toString("hex"))
        expect(Buffer.from(header.txSetResultHash).toString("hex")).toBe(resultsHash.toString("hex"))
        return txProcessing.length as number
      })
      expect(yield* check).toBe(1)
      yield* ledger.close
      expect(yield* check).toBe(0)
      yield* submit(alice, drawing, "upload")
      yield* fund("bob")
      yield* ledger.close
      expect(yield* check).toBe(1)
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
