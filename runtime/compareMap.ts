// Compares the payment map in the database with the log's leaves: each outcome's row, and the root in the newest
// checkpoint. It uses separate hashing code.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"

interface MapRow {
  readonly epoch: number
  readonly key: string
  readonly index: bigint
  readonly value: string
}

interface MapOfEpoch {
  readonly epoch: number
  readonly secret: Uint8Array
  readonly size: bigint
}

interface Leaf {
  readonly epoch: number
  readonly index: bigint
  readonly entry: Uint8Array
  readonly salt: Uint8Array | null
  readonly record: string | null
}

type Wrong = (rule: string, subject: string, detail: string) => void

const sha = (...parts: ReadonlyArray<string | Uint8Array>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Read before the leaves, which grow in the meantime. */
export const readMaps = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* sql<MapOfEpoch>`select epoch, map_secret as secret, map_size as size from receipts_epochs
    where map_secret is not null`
  const rows = yield* sql<MapRow>`select epoch, encode(key, 'hex') as key, index, encode(value, 'hex') as value
    from receipts_map order by epoch, index`
  return { epochs, rows }
})

/** Key and value of an outcome's leaf. */
const placeOf = ({ entry, index, record, salt }: Leaf, secret: Uint8Array) => {
  const { network = "", transaction } = JSON.parse(record!)
  return {
    key: sha(secret, `${network}\n${transaction}`).toString("hex"),
    value: sha(salt!, `${index}\n`, sha(Buffer.of(0), entry)).toString("hex")
  }
}

const bitOf = (key: string, depth: number): number => (Number.parseInt(key[depth >> 2]!, 16) >> (3 - (depth & 3))) & 1

const rootOf = (places: ReadonlyArray<readonly [key: string, value: string]>, depth = 0): Buffer => {
  const [first] = places
  if (first === undefined) return Buffer.alloc(32)
  if (places.length === 1) return sha(Buffer.of(2), Buffer.from(first[0], "hex"), Buffer.from(first[1], "hex"))
  const [left, right] = [0, 1].map((bit) => places.filter(([key]) => bitOf(key, depth) === bit))
  return sha(Buffer.of(3), rootOf(left!, depth + 1), rootOf(right!, depth + 1))
}

/** Compares the map of one epoch with its leaves and its newest checkpoint. */
const compareEpoch = (
  { epoch, secret, size }: MapOfEpoch,
  rows: ReadonlyArray<MapRow>,
  leaves: ReadonlyArray<Leaf>,
  note: string | undefined,
  wrong: Wrong
): void => {
  const byIndex = new Map(rows.map((row) => [row.index, row]))
  const signed = Number(note?.split("\n")[1] ?? 0)
  const places = new Map<string, string>()
  for (const leaf of leaves) {
    if (leaf.salt === null || leaf.record === null) continue
    const { key, value } = placeOf(leaf, secret)
    if (leaf.index < signed) places.set(key, value)
    const row = byIndex.get(leaf.index)
    byIndex.delete(leaf.index)
    if (leaf.index < size && (row?.key !== key || row.value !== value))
      wrong("payment map", `leaf ${leaf.index} of epoch ${epoch}`, "has another row in the map, or none")
  }
  for (const index of byIndex.keys())
    if (index < size) wrong("payment map", `row ${index} of epoch ${epoch}`, "is of no outcome in the log")
  const line = note?.split("\n").find((one) => one.startsWith("map "))
  if (line === undefined) return
  const expected = `map ${rootOf([...places]).toString("base64")} ${sha(secret).toString("base64")}`
  if (line !== expected)
    wrong("payment map", `checkpoint ${signed} of epoch ${epoch}`, "has another map than the leaves")
}

/** Compares the maps with the leaves. `notes` contains the newest checkpoint of each epoch. */
export const compareMaps = (
  { epochs, rows }: Effect.Success<typeof readMaps>,
  leaves: ReadonlyArray<Leaf>,
  notes: ReadonlyMap<number, string>,
  wrong: Wrong
): void => {
  const rowsOf = Map.groupBy(rows, ({ epoch }) => epoch)
  const leavesOf = Map.groupBy(leaves, ({ epoch }) => epoch)
  for (const one of epochs) {
    const { epoch } = one
    const own = leavesOf.get(epoch) ?? []
    try {
      compareEpoch(one, rowsOf.get(epoch) ?? [], own, notes.get(epoch), wrong)
    } catch {
      wrong("payment map", `epoch ${epoch}`, "cannot be compared: a leaf's record cannot be read")
    }
  }
}
