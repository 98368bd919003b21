// The checkpoints of the log. They are signed after the transaction that added leaves, at most a few times per second,
// and once per size of an epoch for all replicas together. Proofs always use the newest checkpoint.
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

/** Time for which leaves are collected into one checkpoint. */
const gather = Duration.millis(200)
/**
 * Interval of turns without a wake. They cover leaves of a replica that ended before it signed, and a key that took
 * effect since.
 */
const every = Duration.seconds(10)
const cosignedEvery = Duration.minutes(1)
/** Retention of checkpoints other than the newest, and the interval of their deletion. */
const keptMillis = 3_600_000
const sweptEveryMillis = 60_000

/** Transactions per turn that add leaves of an older log to the map. */
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

/**
 * The end of the previous epoch. Rows of earlier versions do not store the previous origin; that epoch's name is this
 * epoch's number minus one.
 */
const previousText = (host: string, row: EpochRow, separator: string): string => {
  const { epoch, previous_origin: named, previous_root: root, previous_size: size } = row
  const origin = named ?? originOf(host, epoch === 2 ? null : String(epoch - 1))
  return [origin, size, Base64.encode(root!)].join(separator)
}

/** A new epoch's statement about the previous epoch. */
const statementText = (host: string, row: EpochRow): string =>
  `tollkeeper-log-epoch\n${originOf(host, row.name)}\n${previousText(host, row, "\n")}\n`

interface Signed {
  readonly size: number
  readonly root: Uint8Array
  /** The database's time of the signature. */
  readonly at: Date
  /** The payment map's line. */
  readonly line: string | undefined
}

/** A checkpoint's text. Further lines: the end of the previous epoch, the signature's time, and the payment map. */
const textOf = (host: string, row: EpochRow, { at, line = "", root, size }: Signed): string => {
  const text = checkpointText(originOf(host, row.name), size, root)
  const previous = row.previous_root === null ? "" : `previous ${previousText(host, row, " ")}\n`
  return `${text}${previous}time ${Math.floor(at.getTime() / 1_000)}\n${line}`
}

/** SQL: whether a checkpoint has its time and the root of the payment map. Earlier versions signed neither. */
const isWhole = "strpos(note, chr(10) || 'map ') > 0 and strpos(note, chr(10) || 'time ') > 0"

const epochColumns = `epoch, ${nameColumn} as name, size, previous_origin, previous_size, previous_root`

type LogKey = NonNullable<ReturnType<ReceiptKeys["Service"]["inForce"]>>

/** Stores checkpoints, and signs statements and last checkpoints of frozen epochs. */
const makeFormer = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const epochs = yield* Epochs
  const follow = yield* makeFollowing
  const { checkpointSeconds, host = "" } = yield* Config

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

  /**
   * Stores one checkpoint per size. It replaces an old checkpoint, one under a former key, and one without all lines:
   * these prove less, or nothing.
   */
  const store = (
    signed: Omit<Checkpoint, "signedAt">,
    key: LogKey
  ) => sql`insert into receipts_checkpoints ${sql.insert({ ...signed })}
    on conflict (epoch, size) do update set note = excluded.note, signed_at = excluded.signed_at
    where receipts_checkpoints.signed_at < ${new Date(key.validFrom)}::timestamptz
      or receipts_checkpoints.signed_at <= clock_timestamp() - ${checkpointSeconds} * interval '1 second'
      or strpos(receipts_checkpoints.note, chr(10) || 'map ') = 0
      or strpos(receipts_checkpoints.note, chr(10) || 'time ') = 0`

  /**
   * Signs the end of each frozen epoch that no checkpoint under the key in force covers: its checkpoints were lost with
   * the last commits, or only a former key signed one.
   */
  const signFrozen = Effect.fnUntraced(function* (key: LogKey, at: Date) {
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
      const note = yield* signNote(crypto, textOf(host, row, { size, root, at, line }), {
        ...key,
        name,
        sign: key.sign!
      })
      yield* store({ epoch, size, root, note }, key)
    }
  })
  return { signFrozen, signStatements, store }
})

interface Current extends EpochRow {
  readonly due: boolean
  /** Whether its newest checkpoint has the map's root and its time. */
  readonly whole: boolean
  readonly fork: string | null
  readonly ended: string | null
  readonly since: Date | null
}

/** Reads the current epoch, and the log with the map's line. */
const makeCurrent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* Epochs
  const follow = yield* makeFollowing
  const { checkpointSeconds } = yield* Config

  const current = sql<Current>`
    select not exists (select 1 from receipts_checkpoints c
        where c.epoch = e.epoch and c.size = e.size and c.signed_at >= (select max(valid_from) from receipts_keys
          where purpose = 'log' and valid_from <= clock_timestamp())
          and c.signed_at > clock_timestamp() - ${checkpointSeconds} * interval '1 second') as due,
        ${sql.literal(epochColumns)}, fork, ended,
        exists (select 1 from receipts_checkpoints c
          where c.epoch = e.epoch and c.size = e.size and ${sql.literal(isWhole)}) as whole,
        (select min(map_since) from receipts_epochs) as since
      from receipts_epochs e order by epoch desc limit 1`

  const followOnce = Effect.gen(function* () {
    const now = yield* epochs.lock
    return { ...now, line: yield* follow(now.epoch, now.size) }
  })

  /** The current log, with the map's line if the map has all of the log. */
  const followed = Effect.gen(function* () {
    let now = yield* inTransaction(followOnce)
    for (let more = followsMax; more > 1 && now.line === undefined; more--) now = yield* inTransaction(followOnce)
    return now
  })

  return { current, followed }
})

/**
 * Signs the current log. `collecting` asks witnesses and copies; `shown` receives the current epoch, with the reason if
 * it is a fork.
 */
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
  /** Epochs that this process has published, after it asked the witnesses. */
  const asked = new Set<number>()

  /** The log's key in force by the database's clock, which also sets the times of keys. */
  const keyNow = Effect.map(sql<{ at: Date }>`select clock_timestamp() as at`, ([row]) => ({
    at: row!.at,
    key: keys.inForce("log", row!.at.getTime())
  }))

  const sweep = Effect.gen(function* () {
    const now = yield* monotonicMillis
    if (now - sweptAt < sweptEveryMillis) return
    sweptAt = now
    yield* sql`delete from receipts_checkpoints c where signed_at < clock_timestamp() -
        ${keptMillis} * interval '1 millisecond'
      and size < (select max(size) from receipts_checkpoints n where n.epoch = c.epoch)`
  })

  /**
   * One turn: signs a checkpoint of the current size, unless the key in force has signed a recent one or the epoch is a
   * fork.
   */
  const sign = Effect.gen(function* () {
    const [now] = yield* current
    if (now === undefined) return
    shown(now)
    if (now.ended === null && (now.fork !== null || (!now.due && now.whole && !epochs.hasToSay(now)))) return
    const { at, key } = yield* keyNow
    if (key?.sign === undefined) return
    const { epoch, line, size } = yield* followed
    const [row] = yield* current
    if (row !== undefined) shown(row)
    if (size === 0 || row === undefined || row.epoch !== epoch || row.fork !== null) return
    const root = yield* tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
    // While an older log is read into the map, checkpoints lack the line. Once the map was complete, each has it.
    if (line === undefined && (row.since !== null || !row.due)) return
    const name = originOf(host, row.name)
    const signer = { name, publicKey: key.publicKey, sign: key.sign }
    const note = yield* signNote(crypto, textOf(host, row, { size, root, at, line }), signer)
    // If this database is a restored copy, a witness or a published copy may have more leaves. Ask before publishing.
    if (collecting !== undefined && !asked.has(epoch)) {
      yield* collecting.askAll({ epoch, size, note })
      const [after] = yield* current
      if (after === undefined || after.epoch !== epoch || after.fork !== null)
        return after === undefined ? undefined : shown(after)
    }
    asked.add(epoch)
    // Store the mark before any reader can see the checkpoint.
    yield* epochs.setMark({ epoch, name: row.name, size, root: Hex.encode(root) })
    // These run before the checkpoint is stored: until then this turn is due again.
    yield* signStatements(key)
    yield* signFrozen(key, at)
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
    /** The proof of a leaf in the newest checkpoint, with the history of a key; None until a checkpoint covers it. */
    readonly proofOf: (leaf: Leaf, kid: string | undefined) => Sql<Option.Option<InclusionProof>>
    readonly epochs: Sql<ReadonlyArray<LogEpoch>>
    /** The number of a named epoch, `1` for the first. */
    readonly epochOf: (name: string) => Sql<number | undefined>
    /** The reason if the current epoch is a fork; then nothing is signed. */
    readonly fork: () => string | null
    /** The time from which each checkpoint has the root of the payment map, seconds since 1970. */
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
