// The tree of a log for the audit, leaf by leaf, with separate hashing code: the root at each size, and the roots of
// full tiles. Its state is small and can be stored, so that an audit resumes.
import { createHash } from "node:crypto"

const tileWidth = 256

export const sha = (...parts: ReadonlyArray<string | Uint8Array>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const join = (left: string, right: string): string =>
  sha(Buffer.of(1), Buffer.from(left, "hex"), Buffer.from(right, "hex")).toString("hex")

/** Hashes are in hex. */
export interface TreeState {
  size: number
  /** The complete subtrees, highest first. */
  readonly subtrees: Array<{ readonly height: number; readonly hash: string }>
  /** The hashes of each level's last tile, and the number of full tiles. */
  readonly levels: Array<{ pending: Array<string>; full: number }>
}

export const emptyTree = (): TreeState => ({ size: 0, subtrees: [], levels: [] })

/** Adds a leaf; `onTile` receives the root of each tile that it fills. */
export const addLeaf = (
  state: TreeState,
  entry: Uint8Array,
  onTile: (level: number, index: number, root: string) => void
): void => {
  const { levels, subtrees } = state
  const leaf = sha(Buffer.of(0), entry).toString("hex")
  let node = { height: 0, hash: leaf }
  while (subtrees.at(-1)?.height === node.height)
    node = { height: node.height + 1, hash: join(subtrees.pop()!.hash, node.hash) }
  subtrees.push(node)
  state.size += 1
  let hash = leaf
  for (let level = 0; ; level++) {
    const tile = (levels[level] ??= { pending: [], full: 0 })
    if (tile.pending.push(hash) < tileWidth) return
    let row = tile.pending
    while (row.length > 1) row = Array.from({ length: row.length / 2 }, (_, at) => join(row[2 * at]!, row[2 * at + 1]!))
    hash = row[0]!
    tile.pending = []
    onTile(level + 1, tile.full++, hash)
  }
}

export const rootOf = ({ subtrees }: TreeState): string =>
  subtrees.length === 0
    ? sha().toString("hex")
    : subtrees.map(({ hash }) => hash).reduceRight((right, left) => join(left, right))
