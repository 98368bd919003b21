// Compares the payment map in the database with the log's leaves: each outcome's row, the pages, and the root in the
// newest checkpoint. It uses separate hashing code, and reads the rows in the order of their keys, so that its memory
// does not grow with the log.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { nameOf, type OpenedLeaf, type Wrong } from "./compareReceipts.ts"
import { sha } from "./logTree.ts"

export interface MapOfEpoch {
  readonly epoch: number
  readonly secret: Uint8Array | null
  /** Leaves of the log in the map. */
  readonly mapSize: bigint
}

/** The 16 subtrees below each prefix, as of a checkpoint, in hex. */
export type Pages = ReadonlyMap<string, string>

interface Place {
  readonly key: string
  readonly value: string
}

/** Hex digits of a kind (empty, one leaf, node) and a hash. */
const slotDigits = 66
const rowsMax = 4_000
const digitsMax = 8
const empty = "00".repeat(33)

/** Key and value of an outcome's leaf. */
const placeOf = ({ record, row }: OpenedLeaf, secret: Uint8Array): Place => ({
  key: sha(secret, `${record["network"] ?? ""}\n${record.transaction}`).toString("hex"),
  value: sha(row.salt!, `${row.index}\n`, sha(Buffer.of(0), row.entry)).toString("hex")
})

/** Compares the rows of some leaves of an epoch. */
export const compareMapRows = Effect.fn("audit.compareMapRows")(function* (
  { epoch, mapSize, secret }: MapOfEpoch,
  leaves: ReadonlyArray<OpenedLeaf>,
  wrong: Wrong
) {
  if (secret === null) return
  const sql = yield* SqlClient.SqlClient
  const expected = leaves
    .filter(({ row }) => row.index < mapSize)
    .map((leaf) => ({ ...placeOf(leaf, secret), index: Number(leaf.row.index), row: leaf.row }))
  const given = JSON.stringify(expected.map(({ index, key }) => ({ index, key })))
  const rows = yield* sql<Place & { index: bigint }>`select g.key, m.index, encode(m.value, 'hex') as value
    from jsonb_to_recordset(${given}::jsonb) as g (key text, index int8)
    join receipts_map m on m.epoch = ${epoch} and m.key = decode(g.key, 'hex') and m.index = g.index`
  const values = new Map(rows.map(({ index, value }) => [Number(index), value]))
  for (const { index, row, value } of expected)
    if (values.get(index) !== value)
      wrong("payment map", nameOf(row), `${values.has(index) ? "value" : "key"} differs from its row's in the map`)
})

/** Reports rows of the map without a leaf, or with another row's leaf. */
export const compareMapSize = Effect.fn("audit.compareMapSize")(function* (
  { epoch, mapSize }: MapOfEpoch,
  size: bigint,
  wrong: Wrong
) {
  const sql = yield* SqlClient.SqlClient
  if (mapSize > size) wrong("payment map", `epoch ${epoch}`, `map_size is ${mapSize}, the log has ${size} leaves`)
  const rows = yield* sql<{ index: bigint; often: number }>`select index, count(*)::int as often from receipts_map m
    where epoch = ${epoch} and index < ${mapSize} group by index
    having count(*) > 1 or not exists (select 1 from receipts_leaves l
      where l.epoch = ${epoch} and l.index = m.index and get_byte(l.entry, 0) = 1) order by index limit 100`
  for (const { index, often } of rows)
    wrong("payment map", nameOf({ epoch, index }), often > 1 ? `has ${often} rows in the map` : "is no outcome")
})

const bitOf = (key: string, depth: number): number => (Number.parseInt(key[depth >> 2]!, 16) >> (3 - (depth & 3))) & 1

const joined = (left: string, right: string): string => {
  if (left === empty && !right.startsWith("02")) return right
  if (right === empty && !left.startsWith("02")) return left
  const hash = sha(Buffer.of(3), Buffer.from(left.slice(2), "hex"), Buffer.from(right.slice(2), "hex"))
  return `02${hash.toString("hex")}`
}

/** The subtree of some leaves at a depth. */
const subtreeOf = (places: ReadonlyArray<Place>, depth: number): string => {
  const [first] = places
  if (first === undefined) return empty
  if (places.length === 1) return `01${sha(Buffer.of(2), Buffer.from(first.key + first.value, "hex")).toString("hex")}`
  const [left, right] = [0, 1].map((bit) => places.filter(({ key }) => bitOf(key, depth) === bit))
  return joined(subtreeOf(left!, depth + 1), subtreeOf(right!, depth + 1))
}

const slotsOf = (page: string): ReadonlyArray<string> =>
  Array.from({ length: 16 }, (_, at) => page.slice(at * slotDigits, (at + 1) * slotDigits))

const folded = (page: string): string => {
  let level = slotsOf(page)
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, at) => joined(level[2 * at]!, level[2 * at + 1]!))
  return level[0]!
}

/** The shortest prefix of a key without a page. */
const bucketOf = (pages: Pages, key: string): string => {
  let length = 0
  while (length < digitsMax && pages.has(key.slice(0, length))) length += 1
  return key.slice(0, length)
}

/** The subtrees of all places without a page, from the rows in the order of their keys. */
const readBuckets = Effect.fnUntraced(function* (epoch: number, size: number, pages: Pages) {
  const sql = yield* SqlClient.SqlClient
  const buckets = new Map<string, string>()
  let [after, bucket, places]: [string, string, Array<Place>] = ["", "", []]
  const close = () => {
    if (places.length > 0) buckets.set(bucket, subtreeOf(places, bucket.length * 4))
    places = []
  }
  for (;;) {
    const rows = yield* sql<Place>`select encode(key, 'hex') as key, encode(value, 'hex') as value from (
      select distinct on (key) key, value from receipts_map
      where epoch = ${epoch} and index < ${size} and key > decode(${after}, 'hex')
      order by key, index desc limit ${rowsMax}) m`
    for (const place of rows) {
      const own = bucketOf(pages, place.key)
      if (own !== bucket) close()
      bucket = own
      places.push(place)
    }
    if (rows.length < rowsMax) break
    after = rows.at(-1)!.key
  }
  close()
  return buckets
})

/** Compares the pages of an epoch's map, and the root of its newest checkpoint, with the rows. */
export const compareMapRoot = Effect.fn("audit.compareMapRoot")(function* (
  { epoch, secret }: MapOfEpoch,
  pages: Pages,
  note: string | undefined,
  wrong: Wrong
) {
  const line = note?.split("\n").find((one) => one.startsWith("map "))
  if (line === undefined || secret === null) return
  const size = Number(note!.split("\n")[1])
  const buckets = yield* readBuckets(epoch, size, pages)
  for (const [prefix, page] of pages)
    for (const [digit, slot] of slotsOf(page).entries()) {
      const below = prefix + digit.toString(16)
      const isPage = pages.has(below)
      const expected = isPage ? folded(pages.get(below)!) : (buckets.get(below) ?? empty)
      if (slot !== expected)
        wrong("payment map", `page '${prefix}' of epoch ${epoch}`, `subtree ${digit} differs from its leaves`)
    }
  const root = pages.has("") ? folded(pages.get("")!) : (buckets.get("") ?? empty)
  const expected = `map ${Buffer.from(root.slice(2), "hex").toString("base64")} ${sha(secret).toString("base64")}`
  if (line !== expected) wrong("payment map", `checkpoint ${size} of epoch ${epoch}`, "its map differs from the leaves")
})
