import { describe, expect, it } from "vitest"
import {
  contractDataKey,
  Durability,
  keyString,
  ttlEntry,
  ttlHash,
  ttlKeyString
} from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { u32, VOID } from "../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { Store } from "../../../../plugins/ledger-local/engine/state/Store.ts"
import type { LedgerEntry } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { Expiry } from "../../../../plugins/ledger-local/node/Expiry.ts"
import { crypto, someContract } from "../engine/World.ts"

const idOf = (n: number, durability: Durability): string => keyString(contractDataKey(someContract, u32(n), durability))

const write = (store: Store, n: number, liveUntil: number, durability: Durability = Durability.temporary): void => {
  const data: LedgerEntry["data"] = {
    type: 6,
    contractData: { ext: { v: 0 }, contract: someContract, key: u32(n), durability, val: VOID }
  }
  store.put({ lastModifiedLedgerSeq: 1, data, ext: { v: 0 } })
  extend(store, n, liveUntil, durability)
}

const extend = (store: Store, n: number, liveUntil: number, durability: Durability = Durability.temporary): void =>
  store.put(ttlEntry(ttlHash(crypto, idOf(n, durability)), liveUntil, 1))

/** Ledgers closed one after the other by what each of them does. */
const ledgers = (root: Store, from: number) => {
  const expiry = new Expiry(crypto, root, from)
  let sequence = from
  const close = (edit: (store: Store) => void = () => undefined): number => {
    const store = root.child()
    edit(store)
    const evicted = expiry.evict(store, ++sequence).length / 2
    const changes = [...store.changes()]
    store.commit()
    expiry.follow(changes, sequence)
    return evicted
  }
  return { expiry, close }
}

describe("temporary entries", () => {
  it("temporary entries are evicted by the first ledger after expiry", () => {
    const root = Store.empty()
    const { close, expiry } = ledgers(root, 10)
    expect(close((store) => write(store, 1, 12))).toBe(0)
    expect([close(), close(), close()]).toEqual([0, 1, 0])
    expect([root.size, expiry.size]).toEqual([0, 0])
  })

  it("extended temporary entries stay, even if extended in their last ledger", () => {
    const root = Store.empty()
    const { close } = ledgers(root, 10)
    close((store) => write(store, 1, 12))
    expect(close((store) => extend(store, 1, 14))).toBe(0)
    expect([close(), close(), close()]).toEqual([0, 0, 1])
  })

  it("temporary entries rewritten by the evicting ledger stay", () => {
    const root = Store.empty()
    const { close } = ledgers(root, 10)
    close((store) => write(store, 1, 11))
    expect(close((store) => write(store, 1, 13))).toBe(0)
    expect([close(), close()]).toEqual([0, 1])
  })

  it("does not evict temporary entries that a contract deleted", () => {
    const root = Store.empty()
    const { close, expiry } = ledgers(root, 10)
    close((store) => write(store, 1, 12))
    close((store) => {
      const id = idOf(1, Durability.temporary)
      store.delete(id)
      store.delete(ttlKeyString(crypto, id))
    })
    expect(expiry.size).toBe(0)
    expect([close(), close()]).toEqual([0, 0])
  })

  it("the first ledger evicts temporary entries that expired before the start", () => {
    const root = Store.empty()
    for (const n of [1, 2, 3]) write(root, n, n)
    write(root, 4, 20)
    const { close, expiry } = ledgers(root, 10)
    expect(close()).toBe(3)
    expect([root.size, expiry.size]).toEqual([2, 1])
  })
})

describe("persistent entries", () => {
  it("persistent entries are never evicted", () => {
    const root = Store.empty()
    const { close } = ledgers(root, 10)
    close((store) => write(store, 1, 11, Durability.persistent))
    expect([close(), close(), root.size]).toEqual([0, 0, 2])
  })
})
