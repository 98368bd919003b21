// The log's side of the audit, with its own SQL and hashing: leaves in order, each as the commitment to its record, the
// root of every stored checkpoint and its signature, and stored receipts. It also reads a published copy of the log,
// which shows the losses of a restored database. It shares only tables and formats with the plugin. It reads pages of
// leaves, so its time is linear and its memory bounded, and it can store its position and resume.
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readFile, rename, writeFile } from "node:fs/promises"
import { openTiles, readNewest } from "../examples/receipts/tiles.mjs"
import { openCheckpoint } from "../examples/receipts/verify.mjs"
import type { Mismatch } from "../kernel/audit/compare.ts"
import type { LedgerView } from "../kernel/audit/readLedger.ts"
import {
  compareAnchors,
  compareCheckpoints,
  compareEpochs,
  compareErasures,
  compareKeys,
  compareSizes,
  documentOf,
  type EpochRow,
  type Heads,
  type KeyOfLog,
  type KeyRow,
  originOf,
  readHeads
} from "./compareHeads.ts"
import { compareChannels, compareDeposits } from "./compareChannels.ts"
import { compareMapRoot, compareMapRows, compareMapSize, type Pages } from "./compareMap.ts"
import {
  compareLeaves,
  type LeafRow,
  nameOf,
  type OpenedLeaf,
  type Rows,
  type SettlementRow,
  type StoredReceipt,
  type Wrong
} from "./compareReceipts.ts"
import { addLeaf, emptyTree, rootOf, sha, type TreeState } from "./logTree.ts"

/** An outcome recorded this long ago must be in the log. */
const dueMillis = 10_000
const pageMax = 2_000
/** Maximum findings; a report of more does not help anyone. */
const findingsMax = 10_000

type Copy = Awaited<ReturnType<typeof readNewest>>

const leafColumns = `epoch, index, entry, salt, record, encode(transaction, 'hex') as transaction, principal, payer,
  pay_to as "payTo", erased_transaction is not null as erased`
const settlementOf = `substring(record from '"settlement":"([^"]*)"')`

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
const readCopy = Effect.fnUntraced(function* (copy: Copy, did: unknown, host: string, heads: Heads, wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Effect.promise(() => openCheckpoint(copy.note, did, NaN))
  const tiles = openTiles(copy.place, tree.size)
  if ((yield* Effect.promise(() => tiles.root(0, tree.size))) !== tree.root)
    return wrong("published log", tree.origin, "its tiles do not match its checkpoint")
  const epoch = heads.epochs.find(({ name }) => originOf(host, name) === tree.origin)?.epoch ?? 0
  const size = Number(heads.epochs.find((one) => one.epoch === epoch)?.size ?? 0n)
  let rows: ReadonlyArray<Pick<LeafRow, "entry">> = []
  for (let at = 0, from = 0; at < Math.min(size, tree.size); at++) {
    if (at === from + rows.length) {
      from = at
      rows = yield* sql<LeafRow>`select entry from receipts_leaves
        where epoch = ${epoch} and index >= ${from} and index < ${from + pageMax} order by index`
    }
    const entry = rows[at - from]?.entry
    const published = yield* Effect.promise(() => tiles.root(at, at + 1))
    if (entry !== undefined && published === sha(Buffer.of(0), entry).toString("hex")) continue
    wrong("published log", `leaf ${at} of ${tree.origin}`, "differs here")
    break
  }
  const have = yield* sql<{ size: bigint }>`select count(*)::int8 as size from receipts_leaves where epoch = ${epoch}`
  if (tree.size > Number(have[0]!.size))
    wrong(
      "published since",
      tree.origin,
      `leaves ${have[0]!.size} to ${tree.size - 1} were published, but the database does not have them`
    )
})

/** A position, as a file: the trees' states, and the findings so far. */
interface Position {
  readonly version: 1
  readonly trees: Record<string, TreeState>
  leaves: number
  swept: number
  readonly mismatches: Array<Mismatch>
}

const emptyPosition = (): Position => ({ version: 1, trees: {}, leaves: 0, swept: 0, mismatches: [] })

const readPosition = async (file: string | undefined): Promise<Position> => {
  if (file === undefined) return emptyPosition()
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : Promise.reject(error)
  )
  const read = text === undefined ? emptyPosition() : JSON.parse(text)
  if (read.version !== 1) throw new Error(`${file} is not a position of an audit`)
  return read
}

const storePosition = async (file: string | undefined, position: Position): Promise<void> => {
  if (file === undefined) return
  await writeFile(`${file}.new`, JSON.stringify(position))
  await rename(`${file}.new`, file)
}

/** Reads the rows that leaves are compared with. */
const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const list = (values: ReadonlyArray<string>) =>
    sql`(select value from jsonb_array_elements_text(${JSON.stringify([...new Set(values)])}::jsonb) as g (value))`

  const rowsOf = Effect.fnUntraced(function* (leaves: ReadonlyArray<OpenedLeaf>) {
    const ids = leaves.map(({ record }) => String(record.settlement)).filter((id) => /^[0-9a-f-]{36}$/.test(id))
    const settlements = yield* sql<SettlementRow>`select id::text as id, state, network, scheme, principal, payer,
        pay_to as "payTo", asset, moved::text as moved, inner_hash, ended_by, ledger, fee_charged_stroops, reason,
        resource_url as resource, identifier, action, attempt_count as attempts, confirmations,
        floor(extract(epoch from closed_at))::text as "closedAt",
        floor(extract(epoch from greatest(recorded_at, resolved_at)) * 1000)::text as at
      from kernel_settlements where id in (select value::uuid from ${list(ids)} g)`
    const receipts =
      yield* sql<StoredReceipt>`select encode(transaction, 'hex') as transaction, network, jws, attestation
      from receipts_receipts where transaction in (select decode(value, 'hex')
        from ${list(leaves.map(({ record }) => record.transaction).filter((one) => /^[0-9a-f]{64}$/.test(one)))} g)`
    return {
      settlements: new Map(settlements.map((row) => [row.id, row])),
      receipts: new Map(receipts.map((row) => [row.transaction, row]))
    } satisfies Rows
  })

  const several = sql<{ id: string }>`select ${sql.literal(settlementOf)} as id from receipts_leaves
    where record is not null group by 1 having count(*) > 1`

  /** Leaves of some settlements, in the log's order. */
  const leavesOf = (ids: ReadonlySet<string>) =>
    sql<LeafRow>`select ${sql.literal(leafColumns)} from receipts_leaves
      where record is not null and ${sql.literal(settlementOf)} in ${list([...ids])} order by epoch, index`

  const missing = (begun: Date, now: number) => sql<{
    id: string
    state: string
    transaction: string
  }>`select id::text as id, state, coalesce(ended_by, inner_hash) as transaction
    from kernel_settlements s where state in ('settled', 'failed', 'expired') and resolved_at >= ${begun}
      and resolved_at < ${new Date(now - dueMillis)} and not exists (select 1 from receipts_leaves
        where record is not null and ${sql.literal(settlementOf)} = s.id::text)`

  /** A receipt and its leaf are written together, so in one statement we see both or neither. */
  const unlogged = sql<{ transaction: string }>`select encode(transaction, 'hex') as transaction
    from receipts_receipts r where not exists (select 1 from receipts_leaves l where l.transaction = r.transaction)`

  /** Public leaves, and the table of keys, which change in one transaction. */
  const publicRows = Effect.map(
    sql<LeafRow & (KeyRow | { readonly kid: null })>`select epoch, index, entry, null::text as kid,
        null::text as purpose, null::bytea as key, null::timestamptz as "from", null::timestamptz as until
      from receipts_leaves where salt is null
      union all select 0, 0, ''::bytea, kid, purpose, public_key, valid_from, valid_until from receipts_keys
      order by epoch, index`,
    (rows) => ({
      entries: rows.filter(({ kid }) => kid === null),
      keys: rows.flatMap((row): ReadonlyArray<KeyRow> => (row.kid === null ? [] : [row]))
    })
  )

  /** Settlements that ended again, with an outcome that the log does not have yet. */
  const inFlight = (ids: ReadonlyArray<string>) =>
    sql<{ id: string }>`select subject as id from kernel_facts
      where subject in ${list(ids)} and type in ('settlement.settled', 'settlement.failed', 'settlement.expired',
        'settlement.spent')
      group by 1 having count(*) > (select count(*) from receipts_leaves
        where record is not null and ${sql.literal(settlementOf)} = subject)`
  return { inFlight, leavesOf, missing, publicRows, rowsOf, several, unlogged }
})

/** The leaf with its record, if it is an outcome; reports everything that is wrong with it alone. */
const openLeaf = (row: LeafRow, at: number, wrong: Wrong): OpenedLeaf | undefined => {
  const [name, { entry, index, record, salt }] = [nameOf(row), row]
  if (Number(index) !== at) wrong("log order", name, `is where leaf ${at} is expected`)
  const members = ["salt", "record", "transaction", "principal", "payer", "payTo"] as const
  const isBare = entry[0] !== 1 || row.erased
  if (isBare) for (const member of members) if (row[member] !== null) wrong("leaf", name, `has a ${member}`)
  if (isBare) return undefined
  if (record === null || salt === null) {
    wrong("log commitment", name, "is an outcome without a record")
    return undefined
  }
  if (!Buffer.concat([Buffer.of(1), sha(salt, record)]).equals(entry))
    wrong("log commitment", name, "is not the commitment to its record")
  try {
    return { row, record: JSON.parse(record) }
  } catch {
    wrong("log commitment", name, "its record cannot be read")
    return undefined
  }
}

interface Walk {
  readonly heads: Heads
  readonly position: Position
  readonly file: string | undefined
  /** Settlements with several leaves, which are compared after all pages. */
  readonly several: ReadonlySet<string>
  readonly compare: (leaves: ReadonlyArray<ReadonlyArray<OpenedLeaf>>) => Effect.Effect<void, any, SqlClient.SqlClient>
  readonly wrong: Wrong
}

/** Walks through the leaves of one epoch; returns the roots at the sizes of its checkpoints. */
const walkEpoch = Effect.fn("audit.walkEpoch")(function* (epoch: EpochRow, walk: Walk) {
  const { compare, file, heads, position, several, wrong } = walk
  const sql = yield* SqlClient.SqlClient
  const size = Number(epoch.size)
  const tree = (position.trees[epoch.epoch] ??= emptyTree())
  const sizes = new Set(heads.checkpoints.flatMap((one) => (one.epoch === epoch.epoch ? [Number(one.size)] : [])))
  const roots = new Map<number, string>(sizes.has(tree.size) ? [[tree.size, rootOf(tree)]] : [])
  /** When the newest outcome was recorded, by size. */
  const times = new Map<number, number>()
  let at = 0
  let index = BigInt(tree.size)
  for (;;) {
    const rows = yield* sql<LeafRow>`select ${sql.literal(leafColumns)} from receipts_leaves
      where epoch = ${epoch.epoch} and index >= ${index} and index < ${size} order by index limit ${pageMax}`
    const opened = rows.flatMap((row) => {
      const leaf = openLeaf(row, tree.size, wrong)
      addLeaf(tree, row.entry, (level, tile, root) => {
        if (heads.nodes.get(`${epoch.epoch} ${level} ${tile}`) !== root)
          wrong("log tile", `tile ${level} ${tile} of epoch ${epoch.epoch}`, "hash differs from the leaves")
      })
      at = Math.max(at, Number(leaf?.record.at ?? 0))
      if (sizes.has(tree.size)) roots.set(tree.size, rootOf(tree))
      if (sizes.has(tree.size)) times.set(tree.size, at)
      return leaf === undefined ? [] : [leaf]
    })
    position.leaves += opened.length
    yield* compareMapRows(epoch, opened, wrong)
    yield* compare(opened.filter(({ record }) => !several.has(String(record.settlement))).map((leaf) => [leaf]))
    yield* Effect.promise(() => storePosition(file, position))
    if (rows.length < pageMax) break
    index = rows.at(-1)!.index + 1n
  }
  if (tree.size !== size) wrong("log size", `epoch ${epoch.epoch}`, `has ${tree.size} leaves, says ${size}`)
  return { newestAt: at, roots, times }
})

interface AuditLogOptions {
  /** A published copy of the log, a folder or URL. */
  readonly copy: string | undefined
  readonly view: LedgerView
  /** File with the position: the audit continues from it, and stores it after each page. */
  readonly file?: string | undefined
}

/**
 * Compares the log in the database with its records and with the ledger; with `copy`, also with a published copy. To
 * tolerate growth, each part is read after the part that it must contain: the copy first, then the heads, then leaves
 * up to the heads' sizes, each page before its settlements.
 */
export const auditLog = Effect.fn("audit.auditLog")(function* ({ copy, file, view }: AuditLogOptions) {
  const published = copy === undefined ? undefined : yield* Effect.promise(() => readNewest(copy))
  const position = yield* Effect.promise(() => readPosition(file))
  const wrong: Wrong = (rule, subject, detail) => {
    if (position.mismatches.length < findingsMax) position.mismatches.push({ rule, subject, detail })
  }
  const now = yield* Clock.currentTimeMillis
  const heads = yield* readHeads
  const { inFlight, leavesOf, missing, publicRows, rowsOf, several, unlogged } = yield* makeReads
  const { entries, keys } = yield* publicRows
  const twice = new Set((yield* several).map(({ id }) => id))
  const host = heads.checkpoints[0]?.note.split("/")[0] ?? ""
  const sides = { view, entries: new Map(view.entries.map((one) => [one.innerHash, one])), keptSince: heads.keptSince }
  const did = documentOf(
    host,
    keys.filter(({ purpose }) => purpose === "log")
  )

  const compare = Effect.fnUntraced(function* (groups: ReadonlyArray<ReadonlyArray<OpenedLeaf>>) {
    const rows = yield* rowsOf(groups.flat())
    yield* compareDeposits([...rows.receipts.values()], wrong)
    const findings = groups.map((leaves) => {
      const [found, id]: [Array<Mismatch>, string] = [[], String(leaves[0]!.record.settlement)]
      const isSwept = compareLeaves(leaves, rows, sides, did.id, (rule, subject, detail) =>
        found.push({ rule, subject, detail })
      )
      const isLater = Number(rows.settlements.get(id)?.at) > Number(leaves.at(-1)!.record.at)
      return { found, id, isLater, isSwept }
    })
    const later = findings.filter(({ found, isLater }) => found.length > 0 && isLater).map(({ id }) => id)
    const ended = new Set(later.length === 0 ? [] : (yield* inFlight(later)).map(({ id }) => id))
    for (const { found, id, isSwept } of findings) {
      position.swept += Number(isSwept)
      if (!ended.has(id)) for (const { detail, rule, subject } of found) wrong(rule, subject, detail)
    }
  })
  const walk: Walk = { heads, position, file, several: twice, compare, wrong }
  // Findings about the heads are of this run only, because the next run reads all of them again.
  const ofHeads: Array<Mismatch> = []
  const wrongHead: Wrong = (rule, subject, detail) => void ofHeads.push({ rule, subject, detail })
  for (const epoch of heads.epochs) {
    const walked = yield* walkEpoch(epoch, walk)
    yield* compareCheckpoints(epoch, walked, heads, did, now, wrongHead)
    yield* compareMapSize(epoch, epoch.size, wrongHead)
    const pages = heads.pages.get(epoch.epoch) ?? []
    const byPrefix: Pages = new Map(pages.flatMap(({ page, prefix }) => (prefix === null ? [] : [[prefix, page]])))
    yield* compareMapRoot(epoch, byPrefix, pages[0]?.note, wrongHead)
  }
  const before = position.mismatches.length
  const repeated = (yield* leavesOf(twice)).flatMap((row) => openLeaf(row, Number(row.index), () => {}) ?? [])
  yield* compare([...Map.groupBy(repeated, ({ record }) => record.settlement).values()])
  ofHeads.push(...position.mismatches.splice(before))
  const unloggedSettlements = yield* missing(heads.epochs[0]?.begun ?? new Date(now), now)
  const erased = yield* compareErasures(wrongHead)
  for (const { id, state, transaction } of unloggedSettlements)
    if (!erased.has(transaction)) wrongHead("logged", id, `is ${state}, and the log has no leaf of it`)
  yield* compareChannels(wrongHead)
  yield* compareAnchors(wrongHead)
  for (const { transaction } of yield* unlogged) wrongHead("receipt", transaction, "no leaf contains its transaction")
  yield* compareSizes(wrongHead)
  compareKeys(keys, entries, wrongHead)
  const isBelow = ({ epoch, index }: LeafRow) => index < (heads.epochs.find((one) => one.epoch === epoch)?.size ?? 0n)
  compareEpochs(host, heads, keys, entries.filter(isBelow), wrongHead)
  if (published !== undefined) yield* readCopy(published, did, host, heads, wrongHead)
  const { leaves, mismatches } = position
  return { leaves, swept: position.swept, erased: erased.size, mismatches: [...mismatches, ...ofHeads] }
})
