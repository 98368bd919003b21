// The tree of an epoch in the database: its leaves, and the roots of full tiles. Reads are by tile; a full tile never
// changes and is cached. Writers hold the log's lock (`Epochs.ts`).
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Hex } from "effect/encoding"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { leafHash, type Node, nodesOf, type ReadNode, rootOfComplete, stretchOf, tileWidth } from "./merkle.ts"

/** Capacity of the cache of full tiles, 8 KiB each. */
const tilesMax = 128

export interface NewLeaf {
  readonly entry: Uint8Array
  /** Present for an outcome: the data that its principal, payer and payTo may read. */
  readonly outcome?: {
    readonly salt: Uint8Array
    readonly record: string
    /** 64 hex. */
    readonly transaction: string
    readonly principal: string | null
    readonly payer: string | null
    readonly payTo: string | null
  }
}

type Sha256 = Crypto["Service"]["sha256"]
type Sql<A> = Effect.Effect<A, SqlError.SqlError>

const rowOf = ({ entry, outcome }: NewLeaf, index: number) => ({
  index,
  entry: Hex.encode(entry),
  salt: outcome === undefined ? null : Hex.encode(outcome.salt),
  record: outcome?.record ?? null,
  transaction: outcome?.transaction ?? null,
  principal: outcome?.principal ?? null,
  payer: outcome?.payer ?? null,
  pay_to: outcome?.payTo ?? null
})

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { sha256 } = yield* Crypto
  const tiles = new LruCache<string, ReadonlyArray<Uint8Array>>({ name: "receipts-tiles", capacity: tilesMax })

  const entries = (epoch: number, from: number, to: number) =>
    Effect.map(
      sql<{ entry: Uint8Array }>`select entry from receipts_leaves
        where epoch = ${epoch} and index >= ${from} and index < ${to} order by index`,
      (rows) => rows.map(({ entry }) => entry)
    )

  const readHashes = (epoch: number, level: number, from: number, to: number) =>
    level === 0
      ? Effect.map(entries(epoch, from, to), (found) => found.map((entry) => leafHash(sha256, entry)))
      : Effect.map(
          sql<{ hash: Uint8Array }>`select hash from receipts_nodes
            where epoch = ${epoch} and level = ${level} and index >= ${from} and index < ${to} order by index`,
          (rows) => rows.map(({ hash }) => hash)
        )

  /** Hashes within one tile. A range of the whole tile is cached once all of it exists. */
  const hashes = Effect.fnUntraced(function* (epoch: number, level: number, from: number, to: number) {
    const tile = Math.floor(from / tileWidth)
    const key = `${epoch} ${level} ${tile}`
    const known = tiles.get(key)
    if (known !== undefined) return known.slice(from - tile * tileWidth, to - tile * tileWidth)
    const found = yield* readHashes(epoch, level, from, to)
    if (found.length === tileWidth) tiles.set(key, found)
    return found
  })

  /** The hashes of all nodes; reads each tile with some of them once. */
  const readNodes = Effect.fnUntraced(function* (epoch: number, nodes: ReadonlyArray<Node>) {
    const needed = new Map<string, { level: number; from: number; to: number }>()
    for (const node of nodes) {
      const { from, level, to } = stretchOf(node)
      const key = `${level} ${Math.floor(from / tileWidth)}`
      const other = needed.get(key) ?? { level, from, to }
      needed.set(key, { level, from: Math.min(from, other.from), to: Math.max(to, other.to) })
    }
    const read = new Map<string, Uint8Array>()
    for (const { from, level, to } of needed.values())
      for (const [at, hash] of (yield* hashes(epoch, level, from, to)).entries())
        read.set(`${level} ${from + at}`, hash)
    return (node: Node): Uint8Array => {
      const { from, level, to } = stretchOf(node)
      const below = Array.from({ length: to - from }, (_, i) => read.get(`${level} ${from + i}`))
      if (below.includes(undefined)) throw new Error(`the log has no node ${node.height}/${node.index}`)
      return rootOfComplete(sha256, below as ReadonlyArray<Uint8Array>)
    }
  })
  return { entries, forget: Effect.sync(() => tiles.clear()), hashes, readHashes, readNodes }
})

export class Tree extends Context.Service<
  Tree,
  {
    /** Entries of an epoch with indexes from `from` up to, but not including, `to`, in order; only existing ones. */
    readonly entries: (epoch: number, from: number, to: number) => Sql<ReadonlyArray<Uint8Array>>
    /** Hashes of level 8·level of an epoch from `from` up to, but not including, `to`; only existing ones. */
    readonly hashes: (epoch: number, level: number, from: number, to: number) => Sql<ReadonlyArray<Uint8Array>>
    /** Computes over the tree's complete nodes, which must exist. */
    readonly compute: <A>(epoch: number, compute: (sha256: Sha256, read: ReadNode) => A) => Sql<A>
    /** Clears the cache, because a copy may have replaced the database. */
    readonly forget: Effect.Effect<void>
    /** In the caller's transaction, under the log's lock: adds leaves after the first `size`. */
    readonly append: (epoch: number, size: number, leaves: ReadonlyArray<NewLeaf>) => Sql<void>
  }
>()("tollkeeper/receipts/Tree") {
  static readonly layer = Layer.effect(
    Tree,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { sha256 } = yield* Crypto
      const { entries, forget, hashes, readHashes, readNodes } = yield* makeReads

      const compute = <A>(epoch: number, run: (sha256: Sha256, read: ReadNode) => A) =>
        Effect.map(readNodes(epoch, nodesOf(run)), (read) => run(sha256, read))

      /** Stores the roots of the tiles that became full, on each level. */
      const fillTiles = Effect.fnUntraced(function* (epoch: number, level: number, from: number, to: number) {
        let [before, after] = [from, to]
        for (let at = level; Math.floor(after / tileWidth) > Math.floor(before / tileWidth); at++) {
          const [first, end] = [Math.floor(before / tileWidth), Math.floor(after / tileWidth)]
          for (let tile = first; tile < end; tile++) {
            const below = yield* readHashes(epoch, at, tile * tileWidth, (tile + 1) * tileWidth)
            const hash = rootOfComplete(sha256, below)
            yield* sql`insert into receipts_nodes ${sql.insert({ epoch, level: at + 1, index: tile, hash })}`
          }
          ;[before, after] = [first, end]
        }
      })

      const append = Effect.fnUntraced(function* (epoch: number, size: number, leaves: ReadonlyArray<NewLeaf>) {
        if (leaves.length === 0) return
        const rows = leaves.map((leaf, at) => rowOf(leaf, size + at))
        yield* sql`insert into receipts_leaves
            (epoch, index, entry, salt, record, transaction, principal, payer, pay_to)
          select ${epoch}::int, index, decode(entry, 'hex'), decode(salt, 'hex'), record, decode(transaction, 'hex'),
            principal, payer, pay_to
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g (index int8, entry text, salt text,
            record text, transaction text, principal text, payer text, pay_to text)`
        yield* sql`update receipts_epochs set size = ${size + leaves.length} where epoch = ${epoch}`
        yield* fillTiles(epoch, 0, size, size + leaves.length)
      })

      return Tree.of({ entries, hashes, compute, forget, append })
    })
  )
}
