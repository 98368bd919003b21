// The network's charges for its maps of entries, added up by hand for two accounts: 25 and 68 bytes per item, 32 bytes
// compared, and the network's prices of copying, allocating and comparing.
import { describe, expect, it } from "vitest"
import { EntryMaps } from "../../../../../plugins/ledger-local/engine/host/EntryMaps.ts"
import { cpuCosts } from "../../../../../plugins/ledger-local/engine/state/cpuCosts.ts"
import { keyString } from "../../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import type { LedgerKey } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { payee, payer } from "../World.ts"

const keys: ReadonlyArray<LedgerKey> = [payer, payee].map(({ id }) => ({ type: 0, account: { accountId: id } }))
const mapsOf = (given: ReadonlyArray<LedgerKey>): EntryMaps =>
  new EntryMaps(
    cpuCosts,
    given.map((key) => [keyString(key), key])
  )

describe("the maps of a call's entries", () => {
  const maps = mapsOf(keys)
  const comparing = 44 + 4

  it("reading an entry costs a binary search in each map", () => {
    const access = 42 + 9 + 2 * comparing + (42 + 3)
    const entries = 42 + 25 + 2 * comparing + (42 + 8)
    expect(maps.read(0)).toBe(access + entries)
    expect(maps.read(1)).toBe(access + entries - 2 * comparing)
  })

  it("writing an entry rebuilds a map; a frame copies it", () => {
    const access = 42 + 9 + 2 * comparing + (42 + 3)
    const found = 42 + 8 + (42 + 25) + 2 * comparing
    const list = 42 + 3 + (434 + 17) + (42 + 17)
    expect(maps.write(0)).toBe(access + found + list + (42 + 17) + comparing)
    expect(maps.snapshot).toBe(list)
  })

  it("entry map costs, except for building, do not depend on footprint order", () => {
    const turned = mapsOf(keys.toReversed())
    expect([turned.read(0), turned.write(1), turned.snapshot]).toEqual([maps.read(0), maps.write(1), maps.snapshot])
    const all = (): boolean => true
    expect(turned.compare(all)).toBe(maps.compare(all))
    expect(maps.build([0], [1], all)).toBeGreaterThan(2 * maps.snapshot)
  })

  it("cost nothing to compare where kinds of keys differ", () => {
    const mixed = mapsOf([keys[0]!, { type: 7, contractCode: { hash: new Uint8Array(32) } }])
    // The account, at index 0, is probed after the code, and their kinds differ.
    expect(maps.read(0) - mixed.read(0)).toBe(2 * comparing)
  })
})
