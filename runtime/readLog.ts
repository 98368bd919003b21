// The log's side of the audit, with its own SQL and hashing: leaves in order, each as the commitment to its record, the
// root of every stored checkpoint and its signature, and stored receipts. It also reads a published copy of the log,
// which shows the losses of a restored database. It shares only tables and formats with the plugin.
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { openTiles, readNewest } from "../examples/receipts/tiles.mjs"
import { openCheckpoint } from "../examples/receipts/verify.mjs"
import { compareMaps, readMaps } from "./compareMap.ts"
import { compareReceipts } from "./compareReceipts.ts"
import type { Mismatch } from "../kernel/audit/compare.ts"
import type { LoggedOutcome, LogView } from "../kernel/audit/compareLog.ts"

/** An outcome recorded this long ago must be in the log. */
const dueMillis = 10_000
/** Maximum seconds from the choice of a checkpoint's key until the checkpoint is stored. */
const storedWithinSeconds = 60

interface LeafRow {
  readonly epoch: number
  readonly index: bigint
  readonly entry: Uint8Array
  readonly salt: Uint8Array | null
  readonly record: string | null
  readonly transaction: string | null
  readonly principal: string | null
  readonly payer: string | null
  readonly payTo: string | null
}

const tileWidth = 256

const sha = (...parts: ReadonlyArray<string | Uint8Array>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Roots of a growing tree: the complete subtrees of its entries, highest first. */
const makeFrontier = () => {
  const subtrees: Array<{ readonly height: number; readonly hash: Buffer }> = []
  return {
    add: (entry: Uint8Array): void => {
      let node = { height: 0, hash: sha(Buffer.of(0), entry) }
      while (subtrees.at(-1)?.height === node.height)
        node = { height: node.height + 1, hash: sha(Buffer.of(1), subtrees.pop()!.hash, node.hash) }
      subtrees.push(node)
    },
    root: (): string =>
      subtrees.length === 0
        ? sha().toString("hex")
        : subtrees
            .map(({ hash }) => hash)
            .reduceRight((right, left) => sha(Buffer.of(1), left, right))
            .toString("hex")
  }
}

/** Roots of the full tiles of a growing tree, by level and index. */
const makeTileRoots = () => {
  const roots = new Map<string, string>()
  const levels: Array<{ readonly pending: Array<Buffer>; full: number }> = []
  const add = (hash: Buffer, level: number): void => {
    const { pending, ...rest } = (levels[level] ??= { pending: [], full: 0 })
    if (pending.push(hash) < tileWidth) return
    let row = pending.splice(0)
    while (row.length > 1)
      row = Array.from({ length: row.length / 2 }, (_, at) => sha(Buffer.of(1), row[2 * at]!, row[2 * at + 1]!))
    roots.set(`${level + 1} ${rest.full}`, row[0]!.toString("hex"))
    levels[level]!.full += 1
    add(row[0]!, level + 1)
  }
  return { roots, add: (entry: Uint8Array): void => add(sha(Buffer.of(0), entry), 0) }
}

/** Compares the stored roots of an epoch's full tiles with the roots computed from its leaves. */
const compareNodes = (
  epoch: number,
  size: number,
  nodes: ReadonlyMap<string, string>,
  rows: ReadonlyArray<LeafRow>,
  wrong: Wrong
): void => {
  const tiles = makeTileRoots()
  for (const { entry } of rows.slice(0, size)) tiles.add(entry)
  for (const [place, root] of tiles.roots)
    if (nodes.get(`${epoch} ${place}`) !== root)
      wrong("log tile", `tile ${place} of epoch ${epoch}`, "has a different root")
}

interface KeyRow {
  readonly kid: string
  readonly purpose: string
  readonly key: Uint8Array
  readonly from: Date
  readonly until: Date | null
}

type Copy = Awaited<ReturnType<typeof readNewest>>
type Wrong = (rule: string, subject: string, detail: string) => void

/** The leaves of one epoch, and the roots at the requested sizes. */
const readLeaves = (rows: ReadonlyArray<LeafRow>, sizes: ReadonlySet<number>, wrong: Wrong) => {
  const frontier = makeFrontier()
  const roots = new Map<number, string>()
  const outcomes: Array<LoggedOutcome & { readonly receipt?: string }> = []
  rows.forEach(({ entry, epoch, index, record, salt }, at) => {
    const name = `leaf ${index} of epoch ${epoch}`
    if (Number(index) !== at) wrong("log order", name, `is where leaf ${at} is expected`)
    if (record !== null && salt !== null) {
      const expected = Buffer.concat([Buffer.of(1), sha(salt, record)])
      if (!expected.equals(entry)) wrong("log commitment", name, "is not the commitment to its record")
      outcomes.push({ ...JSON.parse(record), epoch, index: Number(index) })
    } else if (entry[0] === 1) wrong("log commitment", name, "is an outcome without a record")
    frontier.add(entry)
    if (sizes.has(at + 1)) roots.set(at + 1, frontier.root())
  })
  return { outcomes, roots }
}

const keyLine = (event: string, kid: string, key: string, seconds: number) => `${event} ${kid} ${key} at ${seconds}`

/** An entry of a key's history; undefined for any other entry, and for an invalid one. */
const keyLineOf = ({ entry }: LeafRow): string | undefined => {
  if (entry[0] !== 2) return undefined
  try {
    const { at, event, kid, publicKey } = JSON.parse(Buffer.from(entry).toString("utf8", 1))
    return keyLine(event, kid.slice(kid.indexOf("#") + 1), publicKey, at)
  } catch {
    return undefined
  }
}

/** Compares the log's key entries with the table from which did.json is made. */
const compareKeys = (keys: ReadonlyArray<KeyRow>, leaves: ReadonlyArray<LeafRow>, wrong: Wrong): void => {
  const logged = new Set(leaves.flatMap((leaf) => keyLineOf(leaf) ?? []))
  const served = new Set<string>()
  for (const { from, key, kid, until } of keys) {
    const publicKey = Buffer.from(key).toString("base64url")
    served.add(keyLine("announced", kid, publicKey, Math.floor(from.getTime() / 1_000)))
    if (until !== null) served.add(keyLine("retired", kid, publicKey, Math.floor(until.getTime() / 1_000)))
  }
  for (const one of served) if (!logged.has(one)) wrong("log keys", one, "is served, but the log does not contain it")
  for (const one of logged) if (!served.has(one)) wrong("log keys", one, "is in the log, but is not served")
}

interface KeyOfLog extends Pick<KeyRow, "kid" | "key" | "from" | "until"> {}

interface StoredReceipt {
  readonly transaction: string
  readonly network: string
  readonly jws: string
  readonly isLogged: boolean
}

/** The claims of stored receipts, by the row's transaction. Reports invalid receipts. */
const readClaims = (stored: ReadonlyArray<StoredReceipt>, wrong: Wrong) => {
  const claims = new Map<string, Record<string, unknown>>()
  for (const { isLogged, jws, network, transaction } of stored) {
    try {
      const claimed = JSON.parse(Buffer.from(jws.split(".")[1] ?? "", "base64url").toString())
      claims.set(transaction, claimed)
      if (claimed.transaction !== transaction) wrong("receipt", transaction, "transaction differs from its row's")
      if (claimed.network !== network) wrong("receipt", transaction, "network differs from its row's")
    } catch {
      wrong("receipt", transaction, "its claims cannot be read")
    }
    if (!isLogged) wrong("receipt", transaction, "no leaf contains its transaction")
  }
  return claims
}

/** The leaf of an outcome, if its record is readable. */
const claimedLeaf = ({ epoch, index, record, ...columns }: LeafRow) => {
  try {
    return record === null ? [] : [{ ...columns, name: `leaf ${index} of epoch ${epoch}`, record: JSON.parse(record) }]
  } catch {
    return []
  }
}

/** The log's keys in the format of its host's DID document. */
const documentOf = (host: string, keys: ReadonlyArray<KeyOfLog>) => {
  const id = `did:web:${encodeURIComponent(host)}`
  const verificationMethod = keys.map(({ from, key, kid, until }) => ({
    id: `${id}#${kid}`,
    publicKeyJwk: { x: Buffer.from(key).toString("base64url") },
    validFrom: from.getTime() / 1_000,
    ...(until === null ? {} : { validUntil: until.getTime() / 1_000 })
  }))
  return { id, verificationMethod }
}

/** The newest checkpoint of a published copy, a folder or URL, that a key of this log has signed. */
export const readPublished = Effect.fn("audit.readPublished")(function* (place: string) {
  const sql = yield* SqlClient.SqlClient
  const keys = yield* sql<KeyOfLog>`select kid, public_key as key, valid_from as "from", valid_until as until
    from receipts_keys where purpose = 'log'`
  const { note } = yield* Effect.promise(() => readNewest(place))
  const did = documentOf(note.slice(0, note.indexOf("/")), keys)
  const { origin, root, size } = yield* Effect.promise(() => openCheckpoint(note, did, NaN))
  return { origin, size, root: Buffer.from(root, "hex").toString("base64") }
})

/** Compares a published copy, a folder or URL, with the database's data of its epoch. */
const readCopy = async (copy: Copy, did: unknown, byOrigin: ReadonlyMap<string, ReadonlyArray<LeafRow>>) => {
  const issues: Array<Mismatch> = []
  const tree = await openCheckpoint(copy.note, did, NaN)
  const tiles = openTiles(copy.place, tree.size)
  if ((await tiles.root(0, tree.size)) !== tree.root)
    return [{ rule: "published log", subject: tree.origin, detail: "its tiles do not match its checkpoint" }]
  const rows = byOrigin.get(tree.origin) ?? []
  const common = Math.min(rows.length, tree.size)
  for (let at = 0; at < common; at++) {
    if ((await tiles.root(at, at + 1)) === sha(Buffer.of(0), rows[at]!.entry).toString("hex")) continue
    issues.push({ rule: "published log", subject: `leaf ${at} of ${tree.origin}`, detail: "differs here" })
    break
  }
  if (tree.size > rows.length)
    issues.push({
      rule: "published since",
      subject: tree.origin,
      detail: `leaves ${rows.length} to ${tree.size - 1} were published, but the database does not have them`
    })
  return issues
}

/** The stored roots of full tiles, by epoch, level and index. */
const readNodes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const nodes = yield* sql<{ place: string; hash: string }>`select epoch || ' ' || level || ' ' || index as place,
      encode(hash, 'hex') as hash from receipts_nodes`
  return new Map(nodes.map(({ hash, place }) => [place, hash]))
})

/**
 * Reads the log from the database; with `copy`, compares the published copy with it. To tolerate growth, each part is
 * read after the part that it must contain: the copy before the database, and ended settlements, checkpoints and maps
 * before the leaves.
 */
export const readLog = Effect.fn("audit.readLog")(function* (copy: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  const issues: Array<Mismatch> = []
  const wrong: Wrong = (rule, subject, detail) => issues.push({ rule, subject, detail })
  const published = copy === undefined ? undefined : yield* Effect.promise(() => readNewest(copy))
  const now = yield* Clock.currentTimeMillis
  const ended = yield* sql<{ id: string; at: Date }>`select id::text as id, resolved_at as at from kernel_settlements
    where state in ('settled', 'failed', 'expired') and resolved_at is not null`
  const keys = yield* sql<KeyRow>`select kid, purpose, public_key as key, valid_from as "from", valid_until as until
    from receipts_keys`
  const checkpoints = yield* sql<{ epoch: number; size: bigint; root: Uint8Array; note: string; signed: Date }>`
    select epoch, size, root, note, signed_at as signed from receipts_checkpoints order by epoch, size`
  const maps = yield* readMaps
  const epochs = yield* sql<{ epoch: number; name: string | null; size: bigint; begun: Date }>`select epoch, size,
      begun_at as begun, case when epoch > 1 then coalesce(name, epoch::text) end as name
    from receipts_epochs order by epoch`
  const nodes = yield* readNodes
  const all = yield* sql<LeafRow>`select epoch, index, entry, salt, record, encode(transaction, 'hex') as transaction,
      principal, payer, pay_to as "payTo" from receipts_leaves order by epoch, index`
  const sizes = new Map(epochs.map(({ epoch, size }) => [epoch, size]))
  const leaves = all.filter(({ epoch, index }) => index < (sizes.get(epoch) ?? 0n))
  // A receipt and its leaf are written together, so in one statement we see both or neither.
  const stored = yield* sql<StoredReceipt>`select encode(transaction, 'hex') as transaction, network, jws,
      exists (select 1 from receipts_leaves l where l.transaction = r.transaction) as "isLogged"
    from receipts_receipts r`
  const claims = readClaims(stored, wrong)
  compareKeys(keys, leaves, wrong)

  const host = checkpoints[0]?.note.split("/")[0] ?? ""
  const did = documentOf(
    host,
    keys.filter(({ purpose }) => purpose === "log")
  )
  const outcomes: Array<LoggedOutcome> = []
  const receipts = new Map(stored.map(({ jws, transaction }) => [transaction, `sha256:${sha(jws).toString("hex")}`]))
  const byOrigin = new Map<string, ReadonlyArray<LeafRow>>()
  for (const { epoch, name: called, size } of epochs) {
    const rows = leaves.filter((leaf) => leaf.epoch === epoch)
    const own = checkpoints.filter((checkpoint) => checkpoint.epoch === epoch)
    const read = readLeaves(rows, new Set(own.map((one) => Number(one.size))), wrong)
    if (rows.length !== Number(size)) wrong("log size", `epoch ${epoch}`, `has ${rows.length} leaves, says ${size}`)
    for (const { note, root, signed: signedAt, size: at } of own) {
      const name = `checkpoint ${at} of epoch ${epoch}`
      // The checkpoint is stored a moment after its key was chosen.
      const seconds = signedAt.getTime() / 1_000 - storedWithinSeconds
      const signed = yield* Effect.promise(() => openCheckpoint(note, did, seconds).catch((): undefined => undefined))
      if (signed === undefined) wrong("checkpoint", name, "is not signed by a key of the log that was in force")
      const roots = [Buffer.from(root).toString("hex"), signed?.root, read.roots.get(Number(at))]
      if (signed !== undefined && new Set(roots).size > 1) wrong("checkpoint", name, "its root differs from the leaves")
    }
    compareNodes(epoch, Number(size), nodes, rows, wrong)
    for (const { receipt, transaction } of read.outcomes)
      if (receipt !== undefined && receipts.get(transaction) !== receipt)
        wrong("receipt", transaction, "the stored receipt is not the one that was logged")
    outcomes.push(...read.outcomes)
    byOrigin.set(called === null ? `${host}/log` : `${host}/log/${called}`, rows)
  }
  compareMaps(maps, leaves, new Map(checkpoints.map(({ epoch, note }) => [epoch, note])), wrong)
  yield* compareReceipts(leaves.flatMap(claimedLeaf), claims, wrong)
  if (published !== undefined) issues.push(...(yield* Effect.promise(() => readCopy(published, did, byOrigin))))
  const begun = epochs[0]?.begun.getTime() ?? Infinity
  const isDue = (at: number) => at >= begun && now - at > dueMillis
  const view: LogView = {
    outcomes,
    issues,
    due: new Set(ended.flatMap(({ at, id: one }) => (isDue(at.getTime()) ? [one] : []))),
    keptSince: ended.reduce((least, { at }) => Math.min(least, at.getTime()), Infinity)
  }
  return view
})
