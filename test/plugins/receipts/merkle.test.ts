// The tree over tiles against a literal implementation of RFC 6962: roots, audit paths and consistency proofs of every
// size up to some tiles, and the effects of a changed leaf, path or size.
import { expect, it } from "vitest"
import { createHash } from "node:crypto"
import {
  consistencyPath,
  inclusionPath,
  leafHash,
  type Node,
  nodesOf,
  rootOfComplete,
  rootOfRange,
  stretchOf
} from "../../../plugins/receipts/log/merkle.ts"
import { readTilePath } from "../../../plugins/receipts/LogRoutes.ts"
import { rootOf } from "./checkReceipt.ts"

const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(createHash("sha256").update(bytes).digest())
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
const entry = (index: number) => new TextEncoder().encode(`entry ${index}`)

/** Root that an audit path leads to; undefined if the path's length does not fit the tree. */
const rootByPath = (leaf: Uint8Array, path: ReadonlyArray<Uint8Array>, index: number, size: number) => {
  const join = (left: Uint8Array, right: Uint8Array) => sha256(Buffer.concat([Uint8Array.of(1), left, right]))
  const climb = (from: number, to: number, left: number): Uint8Array | undefined => {
    if (to - from === 1) return left === 0 ? leaf : undefined
    const sibling = path[left - 1]
    if (sibling === undefined) return undefined
    let width = 1
    while (width * 2 < to - from) width *= 2
    const middle = from + width
    const below = index < middle ? climb(from, middle, left - 1) : climb(middle, to, left - 1)
    if (below === undefined) return undefined
    return index < middle ? join(below, sibling) : join(sibling, below)
  }
  return index < 0 || index >= size ? undefined : climb(0, size, path.length)
}

/** The tree hash of section 2.1, over entries. */
const mth = (from: number, to: number): Buffer => {
  const hash = (...parts: ReadonlyArray<Uint8Array>) => createHash("sha256").update(Buffer.concat(parts)).digest()
  if (to === from) return hash()
  if (to - from === 1) return hash(Uint8Array.of(0), entry(from))
  let k = 1
  while (k * 2 < to - from) k *= 2
  return hash(Uint8Array.of(1), mth(from, from + k), mth(from + k, to))
}

/** Nodes from the tiles of a log of this size. */
const reader = (size: number) => {
  const levels: Array<Array<Uint8Array>> = [Array.from({ length: size }, (_, i) => leafHash(sha256, entry(i)))]
  while (levels.at(-1)!.length >= 256)
    levels.push(
      Array.from({ length: Math.floor(levels.at(-1)!.length / 256) }, (_, i) =>
        rootOfComplete(sha256, levels.at(-1)!.slice(i * 256, (i + 1) * 256))
      )
    )
  return (node: Node) => {
    const { from, level, to } = stretchOf(node)
    expect(to).toBeLessThanOrEqual(levels[level]!.length)
    return rootOfComplete(sha256, levels[level]!.slice(from, to))
  }
}

const sizes = [1, 2, 3, 4, 5, 7, 8, 31, 100, 255, 256, 257, 300, 511, 512, 513, 700]

it.each(sizes)("a log of %i leaves has the root of RFC 6962, and every leaf's path leads to it", (size) => {
  const read = reader(size)
  const root = rootOfRange(sha256, read, 0, size)
  expect(hex(root)).toBe(mth(0, size).toString("hex"))
  for (let index = 0; index < size; index += size > 100 ? 17 : 1) {
    const path = inclusionPath(sha256, read, index, size)
    const leaf = leafHash(sha256, entry(index))
    expect(rootOf(leaf, path.map(hex), index, size)).toBe(hex(root))
    expect(rootByPath(leaf, path, index, size)).toEqual(root)
    expect(rootByPath(leafHash(sha256, entry(index + 1)), path, index, size)).not.toEqual(root)
    expect(rootByPath(leaf, [...path, root], index, size)).toBeUndefined()
    expect(rootByPath(leaf, path, size, size)).toBeUndefined()
  }
})

it("a proof reads a tile for each level at most twice, however long the log is", () => {
  const nodes = nodesOf((hash, read) => inclusionPath(hash, read, 123_456_789, 987_654_321))
  const tiles = new Set(nodes.map(stretchOf).map(({ from, level }) => `${level} ${Math.floor(from / 256)}`))
  expect(tiles.size).toBeLessThanOrEqual(2 * 4)
})

it("a consistency proof joins any two sizes (section 2.1.2)", () => {
  /** Verification of RFC 9162, section 2.1.4.2. */
  const isConsistent = (first: number, second: number, a: string, b: string, given: ReadonlyArray<string>): boolean => {
    if (first === second) return given.length === 0 && a === b
    const proof = Number.isInteger(Math.log2(first)) ? [a, ...given] : [...given]
    if (proof.length === 0) return false
    const join = (x: string, y: string) => hex(sha256(Buffer.concat([Buffer.of(1), Buffer.from(x + y, "hex")])))
    let [fn, sn] = [first - 1, second - 1]
    while (fn % 2 === 1) [fn, sn] = [fn >> 1, sn >> 1]
    let [fr, sr] = [proof[0]!, proof[0]!]
    for (const c of proof.slice(1)) {
      if (sn === 0) return false
      if (fn % 2 === 1 || fn === sn) {
        fr = join(c, fr)
        sr = join(c, sr)
        while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1]
      } else sr = join(sr, c)
      ;[fn, sn] = [fn >> 1, sn >> 1]
    }
    return fr === a && sr === b && sn === 0
  }
  for (const second of sizes)
    for (const first of sizes.filter((one) => one <= second)) {
      const read = reader(second)
      const [a, b] = [rootOfRange(sha256, read, 0, first), rootOfRange(sha256, read, 0, second)]
      const path = consistencyPath(sha256, read, first, second).map(hex)
      expect(isConsistent(first, second, hex(a), hex(b), path)).toBe(true)
      if (first < second) expect(isConsistent(first, second, hex(b), hex(b), path)).toBe(false)
    }
})

it("a tile has one path", () => {
  expect(readTilePath("0/000")).toEqual({ level: 0, from: 0, to: 256 })
  expect(readTilePath("1/x001/x234/067.p/17")).toEqual({ level: 1, from: 1_234_067 * 256, to: 1_234_067 * 256 + 17 })
  expect(readTilePath("entries/001")).toEqual({ level: "entries", from: 256, to: 512 })
  for (const path of [
    "0/0",
    "0/x000/001",
    "0/000.p/0",
    "0/000.p/256",
    "64/000",
    "00/000",
    "0/000/001",
    "x/000",
    "../0"
  ])
    expect(readTilePath(path)).toBeUndefined()
})
