// The payment map in the database, from each (network, transaction) to its newest leaf, so that a checkpoint has one
// leaf per payment. The map follows the log in the turn that signs checkpoints, never while a payment is answered or
// outcomes are appended. Pages keep the versions that the newest checkpoint needs, so its proofs remain available.
import { Effect } from "effect"
import { Base64, Base64Url, Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { leafHash } from "./merkle.ts"
import {
  decodePage,
  digitOf,
  empty,
  encodePage,
  fold,
  foldProven,
  type MapLeaf,
  mapKey,
  mapValue,
  pageBits,
  pageWidth,
  provenIn,
  type Subtree,
  subtreeOf
} from "./mapTree.ts"

/** Maximum leaves of the log added per transaction. */
const addedMax = 2_000
/** Maximum leaves of the map below one place. Each change hashes them again; more leaves become a page. */
const bucketMax = 32
/** Hex digits of the longest prefix of a page: 16^8 places of up to `bucketMax` leaves each. */
const digitsMax = 8

interface LogRow {
  readonly index: bigint
  readonly entry: Uint8Array
  readonly salt: Uint8Array
  readonly record: string
}

type Pages = Map<string, Array<Subtree>>

const prefixesOf = (key: Uint8Array): ReadonlyArray<string> => {
  const hex = Hex.encode(key)
  return Array.from({ length: digitsMax + 1 }, (_, length) => hex.slice(0, length))
}

/** The shortest prefix of a key without a page: the place of its leaf. */
const bucketOf = (pages: Pages, key: Uint8Array): string => prefixesOf(key).find((prefix) => !pages.has(prefix))!

const makeChange = (sha256: Crypto["Service"]["sha256"], pages: Pages) => {
  const written = new Set<string>()
  /** The subtree of a place's leaves. Too many leaves become one page or several. */
  const place = (prefix: string, leaves: ReadonlyArray<MapLeaf>): Subtree => {
    const depth = prefix.length * pageBits
    if (leaves.length <= bucketMax || prefix.length === digitsMax) return subtreeOf(sha256, leaves, depth)
    const byDigit = Map.groupBy(leaves, ({ key }) => digitOf(key, depth))
    const subtrees = Array.from({ length: pageWidth }, (_, digit) =>
      place(prefix + digit.toString(16), byDigit.get(digit) ?? [])
    )
    pages.set(prefix, subtrees)
    written.add(prefix)
    return fold(sha256, subtrees)
  }
  const set = (prefix: string, subtree: Subtree): void => {
    const above = prefix.slice(0, -1)
    pages.get(above)![Number.parseInt(prefix.at(-1)!, 16)] = subtree
    written.add(above)
  }
  /** Applies each place with all its leaves, then the pages above them, lowest first. */
  const apply = (buckets: ReadonlyMap<string, ReadonlyArray<MapLeaf>>): Subtree => {
    let root = empty
    const put = (prefix: string, subtree: Subtree) => (prefix === "" ? void (root = subtree) : set(prefix, subtree))
    for (const [prefix, leaves] of buckets) put(prefix, place(prefix, leaves))
    for (let length = digitsMax; length >= 0; length--)
      for (const prefix of [...written].filter((one) => one.length === length))
        put(prefix, fold(sha256, pages.get(prefix)!))
    return root
  }
  return { apply, written }
}

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The pages above some keys, as of a size of the log. */
  const pagesOf = Effect.fnUntraced(function* (epoch: number, size: number, keys: ReadonlyArray<Uint8Array>) {
    const prefixes = [...new Set(keys.flatMap(prefixesOf))]
    const rows = yield* sql<{ prefix: string; subtrees: Uint8Array }>`select distinct on (prefix) prefix, subtrees
      from receipts_map_pages join jsonb_array_elements_text(${JSON.stringify(prefixes)}::jsonb) as g (prefix)
        using (prefix)
      where epoch = ${epoch} and size <= ${size} order by prefix, size desc`
    return new Map(rows.map(({ prefix, subtrees }) => [prefix, decodePage(subtrees)]))
  })

  /** The current leaves of places, as of a size of the log. */
  const leavesOf = Effect.fnUntraced(function* (epoch: number, size: number, prefixes: ReadonlyArray<string>) {
    // Each place is one range of the index.
    const rows = yield* sql<MapLeaf & { prefix: string }>`select g.prefix, m.key, m.value
      from jsonb_array_elements_text(${JSON.stringify(prefixes)}::jsonb) as g (prefix)
      cross join lateral (select distinct on (key) key, value from receipts_map
        where epoch = ${epoch} and index < ${size}
          and key between decode(rpad(g.prefix, 64, '0'), 'hex') and decode(rpad(g.prefix, 64, 'f'), 'hex')
        order by key, index desc) m`
    return Map.groupBy(rows, ({ prefix }) => prefix)
  })
  return { leavesOf, pagesOf }
})

const secretBytes = 32

/** A checkpoint's map line: the map's root, and the hash of the secret that blinds its keys. */
const lineOf = (sha256: Crypto["Service"]["sha256"], root: Subtree, secret: Uint8Array): string =>
  `map ${Base64.encode(root.hash)} ${Base64.encode(sha256(secret))}\n`

/** Adds leaves of the log to the map. */
const makeAdding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { sha256 } = yield* Crypto
  const { leavesOf, pagesOf } = yield* makeReads

  const store = (epoch: number, size: number, pages: Pages, written: ReadonlySet<string>) => {
    const rows = [...written].map((prefix) => ({ prefix, subtrees: Hex.encode(encodePage(pages.get(prefix)!)) }))
    if (rows.length === 0) return Effect.void
    const given = sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g (prefix text, subtrees text)`
    return sql`with replaced as (delete from receipts_map_pages p using ${given}
        where p.epoch = ${epoch} and p.prefix = g.prefix and exists (select 1 from receipts_map_pages n
          where n.epoch = p.epoch and n.prefix = p.prefix and n.size > p.size
            and n.size <= (select max(size) from receipts_checkpoints c where c.epoch = ${epoch})))
      insert into receipts_map_pages (epoch, prefix, size, subtrees)
      select ${epoch}::int, prefix, ${size}::int8, decode(subtrees, 'hex') from ${given}`
  }

  /** Adds leaves in the log's order; returns the new root. */
  const add = Effect.fnUntraced(function* (epoch: number, from: number, to: number, secret: Uint8Array) {
    const rows = yield* sql<LogRow>`select index, entry, salt, record from receipts_leaves
      where epoch = ${epoch} and index >= ${from} and index < ${to} and salt is not null order by index`
    if (rows.length === 0) return undefined
    const added = rows.map(({ entry, index, record, salt }) => {
      const { network = "", transaction } = JSON.parse(record)
      const value = mapValue(sha256, salt, Number(index), leafHash(sha256, entry))
      return { key: mapKey(sha256, secret, network, transaction), index: Number(index), value }
    })
    const given = added.map(({ index, key, value }) => ({ index, key: Hex.encode(key), value: Hex.encode(value) }))
    yield* sql`insert into receipts_map (epoch, key, index, value)
      select ${epoch}::int, decode(key, 'hex'), index, decode(value, 'hex')
      from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g (key text, index int8, value text)`
    const pages = yield* pagesOf(
      epoch,
      from,
      added.map(({ key }) => key)
    )
    const places = new Set(added.map(({ key }) => bucketOf(pages, key)))
    const { apply, written } = makeChange(sha256, pages)
    const root = apply(yield* leavesOf(epoch, to, [...places]))
    yield* store(epoch, to, pages, written)
    return root
  })

  return add
})

/** Brings the map up to the log. */
export const makeFollowing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { randomBytes, sha256 } = yield* Crypto
  const { leavesOf } = yield* makeReads
  const add = yield* makeAdding

  /** The root as of a size of the log. */
  const rootAt = Effect.fnUntraced(function* (epoch: number, size: number) {
    const [row] = yield* sql<{ subtrees: Uint8Array }>`select subtrees from receipts_map_pages
      where epoch = ${epoch} and prefix = '' and size <= ${size} order by size desc limit 1`
    if (row !== undefined) return fold(sha256, decodePage(row.subtrees))
    return subtreeOf(sha256, (yield* leavesOf(epoch, size, [""])).get("") ?? [], 0)
  })

  /** Drops the map: it has more leaves than the log, because some were removed from the log. */
  const forget = Effect.fnUntraced(function* (epoch: number) {
    yield* sql`delete from receipts_map where epoch = ${epoch}`
    yield* sql`delete from receipts_map_pages where epoch = ${epoch}`
    yield* sql`update receipts_epochs set map_size = 0 where epoch = ${epoch}`
  })

  /**
   * In the caller's transaction, under the log's lock: adds the log's next leaves to the map. Returns the map line of a
   * checkpoint of that size; undefined while an older log is not completely in the map.
   */
  const follow = Effect.fnUntraced(function* (epoch: number, size: number) {
    const [row] = yield* sql<{ secret: Uint8Array; from: bigint; isNew: boolean }>`update receipts_epochs
      set map_secret = coalesce(map_secret, ${randomBytes(secretBytes)}) where epoch = ${epoch}
      returning map_secret as secret, map_size as "from", map_since is null as "isNew"`
    if (row!.from > size) yield* forget(epoch)
    const from = row!.from > size ? 0 : Number(row!.from)
    const to = Math.min(size, from + addedMax)
    const added = to > from ? yield* add(epoch, from, to, row!.secret) : undefined
    const isWhole = to === size
    if (to > from || row!.isNew)
      yield* sql`update receipts_epochs set map_size = ${to}, map_since = case when ${isWhole}
          then coalesce(map_since, date_trunc('second', clock_timestamp()) + interval '1 second') else map_since end
        where epoch = ${epoch}`
    if (!isWhole) return undefined
    return lineOf(sha256, added ?? (yield* rootAt(epoch, size)), row!.secret)
  })

  return follow
})

export const makeMapProofs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { sha256 } = yield* Crypto
  const { leavesOf, pagesOf } = yield* makeReads

  /**
   * Proof that a payment has one leaf as of a checkpoint with the map's root; undefined if the checkpoint lacks the
   * root, or a newer one was just signed.
   */
  const prove = Effect.fnUntraced(function* (
    { epoch, note, size }: { readonly epoch: number; readonly note: string; readonly size: number },
    key: Uint8Array,
    secret: Uint8Array
  ) {
    const pages = yield* pagesOf(epoch, size, [key])
    const bucket = bucketOf(pages, key)
    const leaves = (yield* leavesOf(epoch, size, [bucket])).get(bucket) ?? []
    if (!leaves.some((leaf) => Hex.encode(leaf.key) === Hex.encode(key))) return undefined
    let proven = provenIn(sha256, leaves, key, bucket.length * pageBits)
    for (let length = bucket.length - 1; length >= 0; length--)
      proven = foldProven(sha256, pages.get(bucket.slice(0, length))!, proven, key, length * pageBits)
    if (!note.includes(`\n${lineOf(sha256, proven.subtree, secret)}`)) return undefined
    return { secret: Base64Url.encode(secret), hashes: proven.path.map((hash) => Hex.encode(hash)) }
  })

  /** Like `prove`, for the leaf of an outcome's record. */
  const proofOf = Effect.fnUntraced(function* (
    checkpoint: { readonly epoch: number; readonly note: string; readonly size: number },
    record: string
  ) {
    const [row] = yield* sql<{ secret: Uint8Array | null }>`select map_secret as secret from receipts_epochs
      where epoch = ${checkpoint.epoch}`
    const secret = row?.secret
    if (secret === null || secret === undefined) return undefined
    const { network = "", transaction } = JSON.parse(record)
    return yield* prove(checkpoint, mapKey(sha256, secret, network, transaction), secret)
  })

  return proofOf
})
