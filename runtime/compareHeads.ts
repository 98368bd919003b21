// The heads of the log for the audit: checkpoints, epochs, keys, tiles and the map's pages. Compares them with the
// log's entries and with the roots of its leaves.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { createPublicKey, verify } from "node:crypto"
import { openCheckpoint } from "../examples/receipts/verify.mjs"
import type { MapOfEpoch } from "./compareMap.ts"
import { type LeafRow, nameOf, type Wrong } from "./compareReceipts.ts"

/** If the newest leaf is this old, the log must have a checkpoint of its size. */
const signedWithinMillis = 120_000
/** Maximum seconds from the choice of a checkpoint's key until the checkpoint is stored. */
const storedWithinSeconds = 60

export interface KeyRow {
  readonly kid: string
  readonly purpose: string
  readonly key: Uint8Array
  readonly from: Date
  readonly until: Date | null
}
export type KeyOfLog = Pick<KeyRow, "kid" | "key" | "from" | "until">

interface CheckpointRow {
  readonly epoch: number
  readonly size: bigint
  readonly root: Uint8Array
  readonly note: string
  readonly signed: Date
}

export interface EpochRow extends MapOfEpoch {
  /** Null for the first epoch. */
  readonly name: string | null
  readonly size: bigint
  readonly begun: Date
  readonly since: Date | null
  readonly fork: string | null
  readonly reason: string | null
  readonly statement: string | null
  readonly previousOrigin: string | null
  readonly previousSize: bigint | null
  readonly previousRoot: Uint8Array | null
}

interface PageRow {
  readonly epoch: number
  readonly note: string
  readonly prefix: string | null
  readonly page: string
}

/**
 * Everything but the leaves. Checkpoints are read before the sizes that cover them. One statement reads the map's pages
 * with their checkpoint, because newer pages replace them.
 */
export const readHeads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [oldest] = yield* sql<{ at: Date | null }>`select min(resolved_at) as at from kernel_settlements
    where state in ('settled', 'failed', 'expired')`
  const checkpoints = yield* sql<CheckpointRow>`
    select epoch, size, root, note, signed_at as signed from receipts_checkpoints order by epoch, size`
  const epochs = yield* sql<EpochRow>`select epoch, size, begun_at as begun, map_secret as secret,
      map_size as "mapSize", map_since as since, fork, reason, statement, previous_origin as "previousOrigin",
      previous_size as "previousSize", previous_root as "previousRoot",
      case when epoch > 1 then coalesce(name, epoch::text) end as name
    from receipts_epochs order by epoch`
  const nodes = yield* sql<{ place: string; hash: string }>`select epoch || ' ' || level || ' ' || index as place,
      encode(hash, 'hex') as hash from receipts_nodes`
  const pages = yield* sql<PageRow>`select c.epoch, c.note, p.prefix, encode(p.subtrees, 'hex') as page
    from (select distinct on (epoch) epoch, size, note from receipts_checkpoints order by epoch, size desc) c
    left join lateral (select distinct on (prefix) prefix, subtrees from receipts_map_pages p
      where p.epoch = c.epoch and p.size <= c.size order by prefix, p.size desc) p on true`
  return {
    epochs,
    checkpoints,
    nodes: new Map(nodes.map(({ hash, place }) => [place, hash])),
    pages: Map.groupBy(pages, ({ epoch }) => epoch),
    keptSince: oldest?.at?.getTime() ?? Infinity
  }
})

export type Heads = Effect.Success<typeof readHeads>

/** The log's keys in the format of its host's DID document. */
export const documentOf = (host: string, keys: ReadonlyArray<KeyOfLog>) => {
  const id = `did:web:${encodeURIComponent(host)}`
  const verificationMethod = keys.map(({ from, key, kid, until }) => ({
    id: `${id}#${kid}`,
    publicKeyJwk: { x: Buffer.from(key).toString("base64url") },
    validFrom: from.getTime() / 1_000,
    ...(until === null ? {} : { validUntil: until.getTime() / 1_000 })
  }))
  return { id, verificationMethod }
}

const keyLine = (event: string, kid: string, key: string, seconds: number) => `${event} ${kid} ${key} at ${seconds}`

/** A public entry as JSON; undefined if it is unreadable. */
const openPublic = ({ entry }: Pick<LeafRow, "entry">): any => {
  try {
    return JSON.parse(Buffer.from(entry).toString("utf8", 1))
  } catch {
    return undefined
  }
}

/** Compares the log's key entries with the table behind did.json. */
export const compareKeys = (
  keys: ReadonlyArray<KeyRow>,
  leaves: ReadonlyArray<Pick<LeafRow, "entry">>,
  wrong: Wrong
): void => {
  const logged = new Set(
    leaves.flatMap(({ entry }) => {
      const { at, event, kid = "", publicKey } = (entry[0] === 2 && openPublic({ entry })) || {}
      return event === undefined ? [] : [keyLine(event, kid.slice(kid.indexOf("#") + 1), publicKey, at)]
    })
  )
  const served = new Set<string>()
  for (const { from, key, kid, until } of keys) {
    const publicKey = Buffer.from(key).toString("base64url")
    served.add(keyLine("announced", kid, publicKey, Math.floor(from.getTime() / 1_000)))
    if (until !== null) served.add(keyLine("retired", kid, publicKey, Math.floor(until.getTime() / 1_000)))
  }
  for (const one of served) if (!logged.has(one)) wrong("log keys", one, "is served, but the log does not contain it")
  for (const one of logged) if (!served.has(one)) wrong("log keys", one, "is in the log, but is not served")
}

export const originOf = (host: string, name: string | null): string =>
  name === null ? `${host}/log` : `${host}/log/${name}`

/** True if a key of the log signed the note, as of any time. */
const isNoteSigned = (note: string, text: string, name: string, keys: ReadonlyArray<KeyRow>): boolean => {
  const [, of, seal = ""] = note.slice(text.length + 1).split(/ |\n/)
  const signature = Buffer.from(seal, "base64").subarray(4)
  return (
    note.startsWith(`${text}\n— `) &&
    of === name &&
    keys.some(({ key, purpose }) => {
      const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(key).toString("base64url") }
      return (
        purpose === "log" && verify(null, Buffer.from(text), createPublicKey({ key: jwk, format: "jwk" }), signature)
      )
    })
  )
}

/** Compares the rows of epochs with the log's entries about them, and with their signed statements. */
export const compareEpochs = (
  host: string,
  { checkpoints, epochs }: Heads,
  keys: ReadonlyArray<KeyRow>,
  leaves: ReadonlyArray<Pick<LeafRow, "entry" | "epoch" | "index">>,
  wrong: Wrong
): void => {
  const entries = leaves.flatMap((leaf) => (leaf.entry[0] === 3 ? [openPublic(leaf)] : []))
  for (const { epoch, name, previousOrigin, previousRoot, previousSize, reason, since, statement } of epochs) {
    const subject = `epoch ${epoch}`
    const note = checkpoints.findLast((one) => one.epoch === epoch)
    // Checkpoints have a map from this time on, to the second.
    if (note?.note.includes("\nmap ") === true && !(since !== null && since.getTime() <= note.signed.getTime() + 2_000))
      wrong("epoch", subject, "map_since differs from its checkpoints'")
    if (epoch === 1) continue
    const own = entries.filter((entry) => entry?.epoch === epoch)
    const [origin, last] = [originOf(host, name), own.at(-1)]
    const previous = {
      origin: previousOrigin ?? last?.previous?.origin,
      size: Number(previousSize),
      root: Buffer.from(previousRoot ?? []).toString("base64")
    }
    if (last?.origin !== origin) wrong("epoch", subject, "name differs from its entry's")
    if (own[0]?.reason !== reason) wrong("epoch", subject, "reason differs from its entry's")
    for (const member of ["origin", "size", "root"] as const)
      if (last?.previous?.[member] !== previous[member])
        wrong("epoch", subject, `previous_${member} differs from its entry's`)
    const text = `tollkeeper-log-epoch\n${origin}\n${previous.origin}\n${previous.size}\n${previous.root}\n`
    if (statement !== null && !isNoteSigned(statement, text, origin, keys))
      wrong("epoch", subject, "statement is not the signed one")
  }
}

/** Reports rows beyond the sizes of their epochs. A row and its size change in one transaction. */
export const compareSizes = Effect.fnUntraced(function* (wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string; epoch: number }>`
    select 'leaf ' || l.index as name, epoch from receipts_leaves l left join receipts_epochs e using (epoch)
      where e.epoch is null or l.index >= e.size or l.index < 0
    union all select 'tile ' || n.level || ' ' || n.index, epoch from receipts_nodes n
      left join receipts_epochs e using (epoch)
      where e.epoch is null or n.level < 1 or n.index < 0 or (n.index + 1) * power(256, n.level) > e.size
    union all select 'row ' || m.index, epoch from receipts_map m left join receipts_epochs e using (epoch)
      where e.epoch is null or m.index >= e.map_size
    union all select 'checkpoint ' || c.size, epoch from receipts_checkpoints c
      left join receipts_epochs e using (epoch) where e.epoch is null or c.size > e.size
    limit 100`
  for (const { epoch, name } of rows) wrong("log size", `${name} of epoch ${epoch}`, "is beyond the epoch's size")
})

interface ErasedRow extends Pick<LeafRow, "epoch" | "index"> {
  readonly transaction: string
  readonly isRecorded: boolean
  readonly isErased: boolean
}

/** Reports erased leaves without an operator's act, or with content; returns the erased transactions. */
export const compareErasures = Effect.fnUntraced(function* (wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ErasedRow>`select epoch, index,
      encode(erased_transaction, 'hex') as transaction, exists (select 1 from kernel_operator_acts a
        where a.action = 'erase-receipt' and a.subject = encode(erased_transaction, 'hex') and a.reason <> ''
          and a.asked is null and a.at <= erased_at
          and not exists (select 1 from kernel_operator_acts d where d.asked = a.id and d.outcome <> 'done'))
        as "isRecorded",
      salt is null and record is null and get_byte(entry, 0) = 1 and not exists (select 1
        from receipts_receipts r where r.transaction = erased_transaction) as "isErased"
    from receipts_leaves where erased_transaction is not null`
  for (const row of rows) {
    if (!row.isRecorded) wrong("erasure", nameOf(row), "no operator's act with a reason records it")
    if (!row.isErased) wrong("erasure", nameOf(row), "its content or receipt is still stored")
  }
  return new Set(rows.map(({ transaction }) => transaction))
})

/** Reports anchors that are not the landed transaction of the sponsor for their checkpoint. */
export const compareAnchors = Effect.fnUntraced(function* (wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  // Retention deletes old transactions of the sponsor.
  const rows = yield* sql<{ epoch: number; transaction: string }>`select epoch, anchor->>'transaction' as transaction
    from receipts_epochs e left join kernel_sponsor_transactions t on t.hash = anchor->>'transaction'
    where anchor is not null and case when t.hash is null then anchored_at > now() - interval '1 day'
      else t.state <> 'landed' or t.sponsor <> anchor->>'account' or t.ledger::text <> anchor->>'ledger'
        or t.purpose <> 'anchor ' || encode(sha256(convert_to(
          split_part(anchor->>'checkpoint', chr(10) || chr(10), 1) || chr(10), 'UTF8')), 'hex') end`
  for (const { epoch, transaction } of rows)
    wrong("anchor", `epoch ${epoch}`, `anchor ${transaction} differs from the sponsor's transaction`)
})

/** The roots of an epoch's leaves, and when the newest outcome was recorded, by size. */
interface WalkedEpoch {
  readonly newestAt: number
  readonly roots: ReadonlyMap<number, string>
  readonly times: ReadonlyMap<number, number>
}

export const compareCheckpoints = Effect.fnUntraced(function* (
  { epoch, fork, size }: EpochRow,
  { newestAt, roots, times }: WalkedEpoch,
  { checkpoints }: Heads,
  did: unknown,
  now: number,
  wrong: Wrong
) {
  const own = checkpoints.filter((one) => one.epoch === epoch)
  for (const { note, root, signed: signedAt, size: at } of own) {
    const name = `checkpoint ${at} of epoch ${epoch}`
    // The checkpoint is stored a moment after its key was chosen.
    const seconds = signedAt.getTime() / 1_000 - storedWithinSeconds
    const signed = yield* Effect.promise(() => openCheckpoint(note, did, seconds).catch((): undefined => undefined))
    if (signed === undefined) wrong("checkpoint", name, "note is not signed by a key of the log that was in force")
    else if (signed.size !== Number(at)) wrong("checkpoint", name, "size differs from its note's")
    else if (signed.root !== Buffer.from(root).toString("hex"))
      wrong("checkpoint", name, "root differs from its note's")
    else if (![signed.root, undefined].includes(roots.get(Number(at))))
      wrong("checkpoint", name, "root differs from the leaves")
    if (at > size) wrong("checkpoint", name, `the log has ${size} leaves`)
    const [time, leafTime] = [signedAt.getTime(), times.get(Number(at)) ?? 0]
    const isOther = Math.abs((signed?.time ?? time / 1_000) * 1_000 - time) > signedWithinMillis
    if (isOther || time > now + signedWithinMillis || time < leafTime - signedWithinMillis)
      wrong("checkpoint", name, "signed_at differs from its note's time, or from its leaves' times")
  }
  if (fork === null && (own.at(-1)?.size ?? 0n) < size && newestAt > 0 && now - newestAt > signedWithinMillis)
    wrong("checkpoint", `epoch ${epoch}`, `no checkpoint covers leaf ${size - 1n}`)
})
