import { describe, expect, it } from "vitest"
import {
  accountKey,
  contractCodeKey,
  contractDataKey,
  contractInstanceKey,
  keyOfString,
  keyString,
  trustLineKey,
  ttlHash,
  ttlKeyString
} from "../../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  compareScVal,
  i128,
  i64,
  str,
  structMap,
  sym,
  u32,
  u64,
  vec,
  VOID
} from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { Store } from "../../../../../plugins/ledger-local/engine/state/Store.ts"
import {
  codec,
  fromLatin1,
  latin1,
  type LedgerKey,
  xdrText
} from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, paidWorld, payer, someContract, usd } from "../World.ts"

const keys: ReadonlyArray<LedgerKey> = [
  accountKey(payer.id),
  trustLineKey(payer.id, usd),
  trustLineKey(payer.id, { type: 2, alphaNum12: { assetCode: fromLatin1("LONGERCODE\0\0"), issuer: payer.id } }),
  trustLineKey(payer.id, { type: 3, liquidityPoolId: new Uint8Array(32).fill(9) }),
  contractInstanceKey(someContract),
  contractDataKey(payer.address, { type: 21, nonceKey: { nonce: -1n } }, 0),
  contractDataKey(someContract, structMap({ a: u32(1) }), 1),
  contractCodeKey(new Uint8Array(32).fill(200)),
  { type: 9, ttl: { keyHash: ttlHash(crypto, keyString(contractInstanceKey(someContract))) } },
  { type: 3, data: { accountId: payer.id, dataName: xdrText("name") } }
]

describe("key strings", () => {
  it("key strings are the key's XDR, one character per byte", () => {
    for (const key of keys) {
      expect(keyString(key)).toBe(latin1(codec.LedgerKey.encode(key)))
      expect(codec.LedgerKey.encode(keyOfString(keyString(key)))).toEqual(codec.LedgerKey.encode(key))
    }
  })

  it("differ where keys differ", () => {
    expect(new Set(keys.map(keyString)).size).toBe(keys.length)
  })

  it("lead to the TTL entry by the hash of the key", () => {
    const key = contractInstanceKey(someContract)
    expect(ttlKeyString(crypto, keyString(key))).toBe(
      keyString({ type: 9, ttl: { keyHash: crypto.sha256(codec.LedgerKey.encode(key)) } })
    )
  })
})

describe("a store", () => {
  const key = keyString(accountKey(payer.id))
  const entry = paidWorld().store.get(key)!

  it("hides a child's changes from the parent until they are committed", () => {
    const parent = Store.empty()
    const child = parent.child()
    child.set(key, entry)
    expect(parent.has(key)).toBe(false)
    expect([...child.changes()]).toEqual([{ key, before: undefined, after: entry }])
    child.commit()
    expect(parent.get(key)).toBe(entry)
    expect(child.size).toBe(0)
  })

  it("a dropped child's deletions have no effect", () => {
    const parent = Store.empty()
    parent.set(key, entry)
    const child = parent.child()
    child.delete(key)
    expect(child.has(key)).toBe(false)
    expect(child.child().has(key)).toBe(false)
    expect(parent.has(key)).toBe(true)
    child.commit()
    expect([...parent.entries()]).toEqual([])
  })

  it("exports what it holds and imports the same", () => {
    const { store } = paidWorld()
    const copy = Store.import(store.export())
    expect([...copy.export()]).toEqual([...store.export()])
    expect([...copy.entries()].length).toBe(10)
  })

  it("refuses to commit a root store", () => {
    expect(() => Store.empty().commit()).toThrow(/root/)
  })
})

describe("the order of values", () => {
  it("values are ordered by type, then content: numbers numerically, text by bytes", () => {
    const ordered = [
      VOID,
      u32(1),
      u32(2),
      u64(0n),
      u64(1n << 63n),
      i64(-1n),
      i64(0n),
      i128(-(1n << 100n)),
      i128(-1n),
      i128(0n),
      i128(1n << 100n),
      str(""),
      str("b"),
      sym("B"),
      sym("a"),
      sym("aa"),
      vec([]),
      vec([u32(1)]),
      vec([u32(1), u32(0)]),
      vec([u32(2)]),
      structMap({ a: u32(1) }),
      structMap({ a: u32(2) }),
      structMap({ b: u32(0) })
    ]
    for (const [i, a] of ordered.entries())
      for (const [j, b] of ordered.entries()) expect(Math.sign(compareScVal(a, b))).toBe(Math.sign(i - j))
  })
})
