// The Merkle tree of RFC 6962 over a tiled log (C2SP tlog-tiles). A node is a complete subtree, named by its height and
// its index at that height. The root of any range, and every proof, combines such nodes. A computation first runs to
// list the nodes that it needs, so that few statements read them, and then runs over these nodes.
import { joinedBytes } from "../../../kernel/stellar/joinBytes.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

type Sha256 = Crypto["Service"]["sha256"]

/** Levels of hashes in a tile, and the width of a full tile. */
const tileHeight = 8
export const tileWidth = 256

/** A complete subtree: leaves from `index · 2^height` on, `2^height` of them. */
export interface Node {
  readonly height: number
  readonly index: number
}

const leafPrefix = Uint8Array.of(0)
const nodePrefix = Uint8Array.of(1)

export const leafHash = (sha256: Sha256, entry: Uint8Array): Uint8Array => sha256(joinedBytes(leafPrefix, entry))

const nodeHash = (sha256: Sha256, left: Uint8Array, right: Uint8Array): Uint8Array =>
  sha256(joinedBytes(nodePrefix, left, right))

/** Root of a complete subtree from the hashes below it; their number is a power of two. */
export const rootOfComplete = (sha256: Sha256, hashes: ReadonlyArray<Uint8Array>): Uint8Array => {
  let level = hashes
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, i) => nodeHash(sha256, level[2 * i]!, level[2 * i + 1]!))
  return level[0]!
}

/** Largest power of two below `size`, which is at least 2. */
const splitOf = (size: number): number => {
  let k = 1
  while (k * 2 < size) k *= 2
  return k
}

const isPowerOfTwo = (size: number): boolean => Number.isInteger(Math.log2(size))

/** Returns the hash of a complete subtree. */
export type ReadNode = (node: Node) => Uint8Array

/** Root of the leaves from `from` up to `to`, as RFC 6962 splits them. */
export const rootOfRange = (sha256: Sha256, read: ReadNode, from: number, to: number): Uint8Array => {
  const size = to - from
  if (size === 0) return sha256(new Uint8Array())
  if (isPowerOfTwo(size)) return read({ height: Math.log2(size), index: from / size })
  const middle = from + splitOf(size)
  return nodeHash(sha256, rootOfRange(sha256, read, from, middle), rootOfRange(sha256, read, middle, to))
}

/** The audit path of a leaf, from the leaf upwards (section 2.1.1). */
export const inclusionPath = (
  sha256: Sha256,
  read: ReadNode,
  index: number,
  size: number
): ReadonlyArray<Uint8Array> => {
  const path = (from: number, to: number): Array<Uint8Array> => {
    if (to - from === 1) return []
    const middle = from + splitOf(to - from)
    return index < middle
      ? [...path(from, middle), rootOfRange(sha256, read, middle, to)]
      : [...path(middle, to), rootOfRange(sha256, read, from, middle)]
  }
  return path(0, size)
}

/**
 * Proof that the tree of `size` leaves continues the tree of `former` leaves (section 2.1.2); `former` is at least 1.
 */
export const consistencyPath = (
  sha256: Sha256,
  read: ReadNode,
  former: number,
  size: number
): ReadonlyArray<Uint8Array> => {
  const path = (m: number, from: number, to: number, isWhole: boolean): Array<Uint8Array> => {
    if (m === to - from) return isWhole ? [] : [rootOfRange(sha256, read, from, to)]
    const k = splitOf(to - from)
    return m <= k
      ? [...path(m, from, from + k, isWhole), rootOfRange(sha256, read, from + k, to)]
      : [...path(m - k, from + k, to, false), rootOfRange(sha256, read, from, from + k)]
  }
  return former === size ? [] : path(former, 0, size, true)
}

/** Lists the nodes that a computation reads; the hashes are dummies. */
export const nodesOf = (compute: (sha256: Sha256, read: ReadNode) => unknown): ReadonlyArray<Node> => {
  const nodes: Array<Node> = []
  const nothing = new Uint8Array(32)
  compute(
    () => nothing,
    (node) => {
      nodes.push(node)
      return nothing
    }
  )
  return nodes
}

/** The range of hashes, in one level of tiles, that a node consists of. */
export const stretchOf = ({ height, index }: Node) => {
  const level = Math.floor(height / tileHeight)
  const width = 2 ** (height % tileHeight)
  return { level, from: index * width, to: (index + 1) * width }
}
