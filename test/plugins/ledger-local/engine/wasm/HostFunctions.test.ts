// Host functions that payments do not use, each called from a module: Ethereum's hash and keys, random numbers,
// multiplexed addresses, and times to live within bounds.
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { MuxedAccount, Account } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import type { HostResult } from "../../../../../plugins/ledger-local/engine/host/HostResult.ts"
import {
  contractDataKey,
  Durability,
  keyString,
  ttlKeyString
} from "../../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { testnet } from "../../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { Random } from "../../../../../plugins/ledger-local/engine/host/Random.ts"
import { bytes as bytesVal, u32 as u32Val } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { Storage } from "../../../../../plugins/ledger-local/engine/host/Storage.ts"
import { Store } from "../../../../../plugins/ledger-local/engine/state/Store.ts"
import type { ScVal } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { accountStrKey } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, errorOf, ledgerSeq, payer, someContract, succeeded } from "../World.ts"
import { call, contract, hostImport, I64, section, signed, sized } from "./assemble.ts"

const word = (value: bigint): Array<number> => [0x42, ...signed(value)]
const u32 = (value: number): Array<number> => word(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))
const bytesAt = (from: number, length: number): Array<number> => [...u32(from), ...u32(length), 0x10, 0]
const stringAt = (from: number, length: number): Array<number> => [...u32(from), ...u32(length), 0x10, 1]

type Arity = 1 | 2 | 3 | 4 | 5 | 6

/**
 * Runs `body` with b.3 as function 0, b.i as function 1 and the given ones from 2 on, over `data` at the start of its
 * memory.
 */
const runWith = (
  functions: ReadonlyArray<readonly [string, string, Arity]>,
  body: ReadonlyArray<number>,
  data: Iterable<number> = []
): HostResult => {
  const imports = [
    hostImport("b", "3", 2),
    hostImport("b", "i", 2),
    ...functions.map(([module, name, type]) => hostImport(module, name, type))
  ]
  const content = [...data]
  const after = content.length === 0 ? [] : section(11, [0, 0x41, 0, 0x0b, ...sized(content)])
  return call(contract({ locals: [1, 2, I64], imports, body, after }))
}

const value = (result: HostResult): ScVal => succeeded(result).returnValue
const textOf = (text: ScVal): string => (text.type === 14 ? Buffer.from(text.str.bytes).toString("latin1") : "")
const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"))

describe("Ethereum's cryptography", () => {
  it("keccak256 uses the original Keccak padding", () => {
    const empty = runWith([["c", "1", 3]], [...bytesAt(0, 0), 0x10, 2])
    expect(value(empty)).toEqual(bytesVal(hex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")))
    const abc = runWith([["c", "1", 3]], [...bytesAt(0, 3), 0x10, 2], new TextEncoder().encode("abc"))
    expect(value(abc)).toEqual(bytesVal(hex("4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45")))
  })

  const seed = new Uint8Array(32).fill(5)
  const digest = new Uint8Array(32).fill(9)
  const recovered = secp256k1.sign(digest, seed, { prehash: false, format: "recovered" })
  const recover = (signature: Uint8Array, id: number): HostResult =>
    runWith([["c", "2", 4]], [...bytesAt(0, 32), ...bytesAt(32, 64), ...u32(id), 0x10, 2], [...digest, ...signature])

  it("recovers the signing key, refusing high S and invalid signatures", () => {
    const [id, signature] = [recovered[0]!, recovered.subarray(1)]
    expect(value(recover(signature, id))).toEqual(bytesVal(secp256k1.getPublicKey(seed, false)))
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).toString("hex")}`)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const highS = Uint8Array.from([...signature.subarray(0, 32), ...hex((order - s).toString(16).padStart(64, "0"))])
    for (const [bad, badId] of [
      [highS, id ^ 1],
      [signature, 4],
      [new Uint8Array(64), 0],
      [new Uint8Array(64).fill(255), 0]
    ] as const) {
      expect(errorOf(recover(bad, badId))).toMatch(/^Error\(Crypto, InvalidInput\)/)
    }
  })
})

describe("random numbers", () => {
  it("random numbers are ChaCha20's key stream", () => {
    const stream = new Random(new Uint8Array(32)).bytes(128)
    // RFC 8439, appendix A.1, vectors 1 and 2.
    expect(Buffer.from(stream).toString("hex")).toBe(
      "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586" +
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
  })

  it("random numbers cover their range, and a shuffle keeps all items", () => {
    const random = new Random(new Uint8Array(32).fill(1))
    const seen = new Set(Array.from({ length: 200 }, () => random.u64(10n, 14n)))
    expect([...seen].sort()).toEqual([10n, 11n, 12n, 13n, 14n])
    expect(random.u64(7n, 7n)).toBe(7n)
    expect(random.u64(0n, (1n << 64n) - 1n)).toBeGreaterThanOrEqual(0n)
    const items = Array.from({ length: 100 }, (_, i) => i)
    const shuffled = random.shuffled(items)
    expect(shuffled).not.toEqual(items)
    expect([...shuffled].sort((a, b) => a - b)).toEqual(items)
  })

  it("a contract's seed determines its random numbers", () => {
    const draw = [...bytesAt(0, 32), 0x10, 2, 0x1a, ...u32(40), 0x10, 3]
    const functions = [
      ["p", "_", 3],
      ["p", "0", 3]
    ] as const
    const seed = new Uint8Array(32).fill(3)
    expect(value(runWith(functions, draw, seed))).toEqual(bytesVal(Random.ofSeed(crypto, seed).bytes(40)))
  })

  it("random numbers differ per frame; an empty range is refused", () => {
    const first = value(runWith([["p", "0", 3]], [...u32(16), 0x10, 2]))
    expect(first).toEqual(bytesVal(Random.ofTransaction(crypto, new Uint8Array(32)).child().bytes(16)))
    expect(errorOf(runWith([["p", "1", 2]], [...word(5n), ...word(4n), 0x10, 2]))).toMatch(
      /^Error\(Value, InvalidInput\)/
    )
    expect(errorOf(runWith([["p", "0", 3]], [...u32(2_000_000), 0x10, 2]))).toMatch(/^Error\(Budget, ExceededLimit\)/)
  })
})

describe("addresses as text", () => {
  const base = accountStrKey(payer.id)
  const muxed = new MuxedAccount(new Account(base, "0"), "18446744073709551615").accountId()
  const there = (text: string): HostResult =>
    runWith(
      [
        ["a", "7", 3],
        ["a", "8", 3]
      ],
      [...stringAt(0, text.length), 0x10, 2, 0x10, 3],
      new TextEncoder().encode(text)
    )

  it("addresses round-trip as text for accounts, contracts and muxed accounts", () => {
    for (const text of [base, muxed, "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"])
      expect(textOf(value(there(text)))).toBe(text)
    expect(errorOf(there(`${muxed.slice(0, -1)}A`))).toMatch(/^Error\(Value, InvalidInput\)/)
    expect(errorOf(there("S"))).toMatch(/^Error\(Value, InvalidInput\)/)
  })
})

describe("times to live within bounds (CAP-78)", () => {
  const extended = (
    durability: Durability,
    ...bounds: readonly [extendTo: number, least: number, most: number]
  ): number => {
    const key = contractDataKey(someContract, u32Val(1), durability)
    const storage = new Storage(Store.empty().child(), undefined, ledgerSeq, testnet, crypto)
    storage.put(
      key,
      { type: 6, contractData: { ext: { v: 0 }, contract: someContract, key: u32Val(1), durability, val: u32Val(2) } },
      ledgerSeq + 1_000
    )
    storage.extendWithin(key, ...bounds)
    const ttl = storage.store.get(ttlKeyString(crypto, keyString(key)))
    return ttl?.data.type === 9 ? ttl.data.ttl.liveUntilLedgerSeq - ledgerSeq : 0
  }

  it("extends a time to live to the requested ledger within the minimum and maximum", () => {
    expect(extended(1, 5_000, 1, 9_999)).toBe(5_000)
    expect(extended(1, 5_000, 1, 300)).toBe(1_300)
    expect(extended(1, 1_100, 101, 300)).toBe(1_000)
    expect(extended(1, 1_101, 101, 300)).toBe(1_101)
    expect(extended(1, 900, 1, 300)).toBe(1_000)
  })

  it("a time to live ends at the maximum; temporary entries must not exceed it", () => {
    const { maxEntryLedgers } = testnet.ttl
    expect(extended(1, maxEntryLedgers + 10, 1, 0xffff_ffff)).toBe(maxEntryLedgers - 1)
    expect(() => extended(0, maxEntryLedgers + 10, 1, 0xffff_ffff)).toThrow(/past max/)
    expect(() => extended(1, 10, 11, 20)).toThrow(/do not fit/)
    expect(() => extended(1, 100, 20, 10)).toThrow(/do not fit/)
  })
})
