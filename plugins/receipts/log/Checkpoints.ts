// The checkpoints of the log: signed after the transaction that added leaves, at most a few in a second, one for each
// size of an epoch whatever the number of replicas. A proof is always of the newest.
import { Context, Duration, Effect, Layer, Option } from "effect"
import { Base64, Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Config } from "../Config.ts"
import type { InclusionProof, LogEpoch } from "../contract.ts"
import { ReceiptKeys } from "../keys/ReceiptKeys.ts"
import { type Collecting, makeCollecting } from "./collectCosignatures.ts"
import { Epochs, nameColumn, originOf, otherEntries } from "./Epochs.ts"
import { rootOfRange } from "./merkle.ts"
import { checkpointText, signNote } from "./note.ts"
import { makeFollowing } from "./PaymentMap.ts"
import { type Checkpoint, type Leaf, makeReading } from "./readCheckpoints.ts"
import { Tree } from "./Tree.ts"

/** How long leaves are collected into one checkpoint. */
const gather = Duration.millis(200)
/** A turn without a wake: leaves of a replica that ended before it signed, and a key that took effect since. */
const every = Duration.seconds(10)
const cosignedEvery = Duration.minutes(1)
/** How long a checkpoint that is not the newest is kept, and how often older ones are deleted. */
const keptMillis = 3_600_000
const sweptEveryMillis = 60_000

/** Transactions in which one turn adds leaves of an older log to the map. */
const followsMax = 5

interface EpochRow {
  readonly epoch: number
  readonly name: string | null
  readonly size: bigint
  readonly previous_origin: string | null
  readonly previous_size: bigint | null
  readonly previous_root: Uint8Array | null
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** The end of the epoch before. A row of an earlier version does not name that: its name is a number less. */
const previousText = (host: string, row: EpochRow, separator: string): string => {
  const { epoch, previous_origin: named, previous_root: root, previous_size: size } = row
  const origin = named ?? originOf(host, epoch === 2 ? null : String(epoch - 1))
  return [origin, size, Base64.encode(root!)].join(separator)
}

/** What a new epoch says of the one before. */
const statementText = (host: string, row: EpochRow): string =>
  `tollkeeper-log-epoch\n${originOf(host, row.name)}\n${previousText(host, row, "\n")}\n`

/** A checkpoint's text: in further lines, what a later epoch continues, and the root of the payment map. */
const textOf = (host: string, row: EpochRow, size: number, root: Uint8Array, map = ""): string => {
  const text = checkpointText(originOf(host, row.name), size, root)
  return `${text}${row.previous_root === null ? "" : `previous ${previousText(host, row, " ")}\n`}${map}`
}

/** SQL: whether a checkpoint has the root of the payment map. */
const isMapped = "strpos(note, chr(10) || 'map ') > 0"

const epochColumns = `epoch, ${nameColumn} as name, size, previous_origin, previous_size, previous_root`

type LogKey = NonNullable<ReturnType<ReceiptKeys["Service"]["inForce"]>>

/** Stores checkpoints, and signs what is said of frozen epochs. */
const makeFormer = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const epochs = yield* Epochs
  const follow = yield* makeFollowing
  const host = (yield* Config).host ?? ""

  const signStatements = Effect.fnUntraced(function* (key: LogKey) {
    const silent = yield* sql<EpochRow>`select ${sql.literal(epochColumns)} from receipts_epochs
      where reason is not null and statement is null`
    for (const row of silent) {
      const signer = { name: originOf(host, row.name), publicKey: key.publicKey, sign: key.sign! }
      const statement = yield* signNote(crypto, statementText(host, row), signer)
      yield* sql`update receipts_epochs set statement = ${statement}
        where epoch = ${row.epoch} and statement is null`
    }
  })

  /** One for each size; one of a former key, or without the map, is replaced: alone it proves nothing, or less. */
  const store = (
    signed: Omit<Checkpoint, "signedAt">,
    key: LogKey
  ) => sql`insert into receipts_checkpoints ${sql.insert({ ...signed })}
    on conflict (epoch, size) do update set note = excluded.note, signed_at = excluded.signed_at
    where receipts_checkpoints.signed_at < ${new Date(key.validFrom)}::timestamptz
      or strpos(receipts_checkpoints.note, chr(10) || 'map ') = 0`

  /**
   * What a frozen epoch keeps and none of its checkpoints covers, since those were lost with the last commits, or one
   * of a former key alone.
   */
  const signFrozen = Effect.fnUntraced(function* (key: LogKey) {
    const frozen = yield* sql<EpochRow>`select e.epoch, e.name, e.size, e.previous_origin, e.previous_size,
        e.previous_root from (select ${sql.literal(`${epochColumns}, fork`)} from receipts_epochs) e
      join receipts_epochs n on n.epoch = e.epoch + 1 and n.reason <> ${otherEntries}
      where e.size > 0 and e.fork is null
        and e.size >= coalesce((select max(size) from receipts_checkpoints c where c.epoch = e.epoch), 0)
        and not exists (select 1 from receipts_checkpoints c where c.epoch = e.epoch and c.size = e.size
          and c.signed_at >= ${new Date(key.validFrom)}::timestamptz)`
    for (const row of frozen) {
      const [{ epoch }, name, size] = [row, originOf(host, row.name), Number(row.size)]
      const root = yield* tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
      const line = yield* inTransaction(Effect.andThen(epochs.lock, follow(epoch, size)))
      const note = yield* signNote(crypto, textOf(host, row, size, root, line), { ...key, name, sign: key.sign! })
      yield* store({ epoch, size, root, note }, key)
    }
  })
  return { signFrozen, signStatements, store }
})

interface Current extends EpochRow {
  readonly due: boolean
  /** Whether its newest checkpoint has the map's root. */
  readonly mapped: boolean
  readonly fork: string | null
  readonly ended: string | null
  readonly since: Date | null
}

/** The current epoch, and the log with the map's line. */
const makeCurrent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* Epochs
  const follow = yield* makeFollowing

  const current = sql<Current>`
    select not exists (select 1 from receipts_checkpoints c
        where c.epoch = e.epoch and c.size = e.size and c.signed_at >= (select max(valid_from) from receipts_keys
          where purpose = 'log' and valid_from <= clock_timestamp())) as due, ${sql.literal(epochColumns)}, fork, ended,
        exists (select 1 from receipts_checkpoints c
          where c.epoch = e.epoch and c.size = e.size and ${sql.literal(isMapped)}) as mapped,
        (select min(map_since) from receipts_epochs) as since
      from receipts_epochs e order by epoch desc limit 1`

  const followOnce = Effect.gen(function* () {
    const now = yield* epochs.lock
    return { ...now, line: yield* follow(now.epoch, now.size) }
  })

  /** The log as it is now, with the map's line where that has all of it. */
  const followed = Effect.gen(function* () {
    let now = yield* inTransaction(followOnce)
    for (let more = followsMax; more > 1 && now.line === undefined; more--) now = yield* inTransaction(followOnce)
    return now
  })

  return { current, followed }
})

/** Signs what the log has. `collecting` asks witnesses and copies; `shown` receives why an epoch is a fork. */
const makeSigning = Effect.fnUntraced(function* (
  collecting: Collecting | undefined,
  shown: (now: Pick<Current, "fork" | "since">) => void
) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const epochs = yield* Epochs
  const { current, followed } = yield* makeCurrent
  const { signFrozen, signStatements, store } = yield* makeFormer
  const keys = yield* ReceiptKeys
  const host = (yield* Config).host ?? ""
  let sweptAt = -Infinity
  /** Epochs of which this process has published, after the witnesses were asked. */
  const asked = new Set<number>()

  /** The log's key in force by the database's clock, which every key's time is of. */
  const keyNow = Effect.map(sql<{ now: Date }>`select clock_timestamp() as now`, ([row]) =>
    keys.inForce("log", row!.now.getTime())
  )

  const sweep = Effect.gen(function* () {
    const now = yield* monotonicMillis
    if (now - sweptAt < sweptEveryMillis) return
    sweptAt = now
    yield* sql`delete from receipts_checkpoints c where signed_at < clock_timestamp() -
        ${keptMillis} * interval '1 millisecond'
      and size < (select max(size) from receipts_checkpoints n where n.epoch = c.epoch)`
  })

  /** One turn: a checkpoint of the current size, unless there is one of the key in force, or the epoch is a fork. */
  const sign = Effect.gen(function* () {
    const [now] = yield* current
    if (now === undefined) return
    shown(now)
    if (now.ended === null && (now.fork !== null || (!now.due && now.mapped && !epochs.hasToSay(now.epoch)))) return
    const key = yield* keyNow
    if (key?.sign === undefined) return
    const { epoch, line, size } = yield* followed
    const [row] = yield* current
    if (row !== undefined) shown(row)
    if (size === 0 || row === undefined || row.epoch !== epoch || row.fork !== null) return
    const root = yield* tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
    // An older log is read into the map first; then each checkpoint has it.
    if (line === undefined && (row.since !== null || !row.due)) return
    const name = originOf(host, row.name)
    const signer = { name, publicKey: key.publicKey, sign: key.sign }
    const note = yield* signNote(crypto, textOf(host, row, size, root, line), signer)
    // A restored copy is not published before a witness or a published copy that has more could show it.
    if (collecting !== undefined && !asked.has(epoch)) {
      yield* collecting.askAll({ epoch, size, note })
      const [after] = yield* current
      if (after === undefined || after.epoch !== epoch || after.fork !== null)
        return after === undefined ? undefined : shown(after)
    }
    asked.add(epoch)
    // Known here before any reader can know of it.
    yield* epochs.setMark({ epoch, name: row.name, size, root: Hex.encode(root) })
    // Before it is stored: until then this turn is due again.
    yield* signStatements(key)
    yield* signFrozen(key)
    yield* store({ epoch, size, root, note }, key)
    yield* sweep
  })
  return Effect.provideService(sign, SqlClient.SqlClient, sql)
})

export class Checkpoints extends Context.Service<
  Checkpoints,
  {
    /** Leaves were added. */
    readonly wake: Effect.Effect<void>
    readonly newest: (epoch: number) => Sql<Option.Option<Checkpoint>>
    /** The proof of a leaf in the newest checkpoint, with the history of a key; None until one covers it. */
    readonly proofOf: (leaf: Leaf, kid: string | undefined) => Sql<Option.Option<InclusionProof>>
    readonly epochs: Sql<ReadonlyArray<LogEpoch>>
    /** An epoch's number by its name, `1` for the first. */
    readonly epochOf: (name: string) => Sql<number | undefined>
    /** Why nothing is signed: the current epoch is a fork. */
    readonly fork: () => string | null
    /** Since when each checkpoint has the root of the payment map, seconds since 1970. */
    readonly mapSince: () => number | undefined
  }
>()("tollkeeper/receipts/Checkpoints") {
  static readonly layer = Layer.effect(
    Checkpoints,
    Effect.gen(function* () {
      const reading = yield* makeReading
      const sql = yield* SqlClient.SqlClient
      const [begun] = yield* sql<{ since: Date | null }>`select min(map_since) as since from receipts_epochs`
      let [fork, since]: [string | null, Date | null] = [null, begun!.since]
      const mapSince = () => (since === null ? undefined : Math.floor(since.getTime() / 1_000))
      const shared = { ...reading, fork: () => fork, mapSince }
      if (!(yield* ReceiptKeys).isEnabled) return Checkpoints.of({ wake: Effect.void, ...shared })
      const { copies, witnesses } = yield* Config
      const collecting = witnesses.length + copies.length === 0 ? undefined : yield* makeCollecting
      const collect = Effect.gen(function* () {
        const [row] = yield* sql<{ epoch: number }>`select epoch from receipts_epochs where fork is null
          and epoch = (select max(epoch) from receipts_epochs)`
        const checkpoint = row === undefined ? Option.none() : yield* reading.newest(row.epoch)
        if (Option.isSome(checkpoint)) yield* collecting!.askAll(checkpoint.value)
      })
      const cosigning =
        collecting === undefined
          ? { wake: Effect.void }
          : yield* reconciler({ id: "receipts-witnesses", every: cosignedEvery, gather, turn: collect })
      const signing = yield* makeSigning(collecting, (now) => void ({ fork, since } = now))
      const turn = Effect.andThen(signing, cosigning.wake)
      const { wake } = yield* reconciler({ id: "receipts-checkpoints", every, gather, turn })
      return Checkpoints.of({ wake, ...shared })
    })
  )
}
