// The tree of the payment map: a binary prefix tree over 256-bit keys. A subtree with one leaf is that leaf, so a
// payment has one place, and a root has one leaf for it. `README.md` specifies the bytes.
import { joinedBytes } from "../../../kernel/stellar/joinBytes.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

type Sha256 = Crypto["Service"]["sha256"]

export interface MapLeaf {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/** A subtree: empty, one leaf, or a node. */
export interface Subtree {
  readonly kind: 0 | 1 | 2
  readonly hash: Uint8Array
}

/** A subtree with the path of one of its keys, from the leaf upwards. */
interface Proven {
  readonly subtree: Subtree
  readonly path: ReadonlyArray<Uint8Array>
}

/** Bits of a key that a page spans, and the subtrees of a page. */
export const pageBits = 4
export const pageWidth = 16

const text = new TextEncoder()
const leafPrefix = Uint8Array.of(2)
const nodePrefix = Uint8Array.of(3)
const hashBytes = 32
export const empty: Subtree = { kind: 0, hash: new Uint8Array(hashBytes) }

/** The place of a payment, which only a holder of `secret` can find. */
export const mapKey = (sha256: Sha256, secret: Uint8Array, network: string, transaction: string): Uint8Array =>
  sha256(joinedBytes(secret, text.encode(`${network}\n${transaction}`)))

/** The value in that place: a commitment to the log's leaf, which only a holder of its salt can open. */
export const mapValue = (sha256: Sha256, salt: Uint8Array, index: number, leaf: Uint8Array): Uint8Array =>
  sha256(joinedBytes(salt, text.encode(`${index}\n`), leaf))

const bitOf = (key: Uint8Array, depth: number): number => (key[depth >> 3]! >> (7 - (depth & 7))) & 1

/** The hex digit of a key at a depth: the index of the key's subtree in the page. */
export const digitOf = (key: Uint8Array, depth: number): number => (key[depth >> 3]! >> (4 - (depth & 4))) & 15

const leafOf = (sha256: Sha256, { key, value }: MapLeaf): Subtree => ({
  kind: 1,
  hash: sha256(joinedBytes(leafPrefix, key, value))
})

/** Joins two subtrees; a leaf joined with an empty subtree stays that leaf. */
const join = (sha256: Sha256, left: Subtree, right: Subtree): Subtree => {
  if (left.kind === 0 && right.kind < 2) return right
  if (right.kind === 0 && left.kind < 2) return left
  return { kind: 2, hash: sha256(joinedBytes(nodePrefix, left.hash, right.hash)) }
}

/** The subtree at a depth, of leaves with different keys. */
export const subtreeOf = (sha256: Sha256, leaves: ReadonlyArray<MapLeaf>, depth: number): Subtree => {
  if (leaves.length === 0) return empty
  if (leaves.length === 1) return leafOf(sha256, leaves[0]!)
  const [left, right] = [0, 1].map((bit) => leaves.filter(({ key }) => bitOf(key, depth) === bit))
  return join(sha256, subtreeOf(sha256, left!, depth + 1), subtreeOf(sha256, right!, depth + 1))
}

export const fold = (sha256: Sha256, subtrees: ReadonlyArray<Subtree>): Subtree => {
  let level = subtrees
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, at) => join(sha256, level[2 * at]!, level[2 * at + 1]!))
  return level[0]!
}

const climb = (sha256: Sha256, { path, subtree }: Proven, sibling: Subtree, bit: number): Proven => {
  const joined = bit === 0 ? join(sha256, subtree, sibling) : join(sha256, sibling, subtree)
  return { subtree: joined, path: joined === subtree ? path : [...path, sibling.hash] }
}

/** Like `subtreeOf`, with the path of a key that one of the leaves has. */
export const provenIn = (sha256: Sha256, leaves: ReadonlyArray<MapLeaf>, key: Uint8Array, depth: number): Proven => {
  if (leaves.length === 1) return { subtree: leafOf(sha256, leaves[0]!), path: [] }
  const bit = bitOf(key, depth)
  const isBeside = (leaf: MapLeaf) => bitOf(leaf.key, depth) !== bit
  const own = provenIn(
    sha256,
    leaves.filter((leaf) => !isBeside(leaf)),
    key,
    depth + 1
  )
  return climb(sha256, own, subtreeOf(sha256, leaves.filter(isBeside), depth + 1), bit)
}

/** Like `fold`, with the path from one of the page's subtrees; `depth` is the page's. */
export const foldProven = (
  sha256: Sha256,
  subtrees: ReadonlyArray<Subtree>,
  own: Proven,
  key: Uint8Array,
  depth: number
): Proven => {
  let [proven, at, level] = [own, digitOf(key, depth), subtrees]
  for (let bits = pageBits; bits > 0; bits--) {
    proven = climb(sha256, proven, level[at ^ 1]!, at & 1)
    level = Array.from({ length: level.length / 2 }, (_, i) => join(sha256, level[2 * i]!, level[2 * i + 1]!))
    at >>= 1
  }
  return proven
}

/** A page's bytes: each subtree's kind and hash. */
export const encodePage = (subtrees: ReadonlyArray<Subtree>): Uint8Array =>
  joinedBytes(...subtrees.flatMap(({ hash, kind }) => [Uint8Array.of(kind), hash]))

export const decodePage = (bytes: Uint8Array): Array<Subtree> =>
  Array.from({ length: pageWidth }, (_, at) => {
    const from = at * (hashBytes + 1)
    return { kind: bytes[from]! as Subtree["kind"], hash: bytes.slice(from + 1, from + 1 + hashBytes) }
  })
