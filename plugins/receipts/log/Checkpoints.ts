// The checkpoints of the log: signed after the transaction that added leaves, at most a few in a second, one for each
// size of an epoch whatever the number of replicas. A proof is always of the newest.
import { Clock, Context, Duration, Effect, Layer, Option } from "effect"
import { Base64, Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Config } from "../Config.ts"
import { entryKinds, type InclusionProof, type LogEpoch } from "../contract.ts"
import { ReceiptKeys } from "../keys/ReceiptKeys.ts"
import { makeCollecting } from "./collectCosignatures.ts"
import { Epochs, originOf, otherEntries } from "./Epochs.ts"
import { inclusionPath, leafHash, rootOfRange } from "./merkle.ts"
import { checkpointText, signNote, verifierKey } from "./note.ts"
import { Tree } from "./Tree.ts"

/** How long leaves are collected into one checkpoint. */
const gather = Duration.millis(200)
/** A turn without a wake: leaves of a replica that ended before it signed, and a key that took effect since. */
const every = Duration.seconds(10)
const cosignedEvery = Duration.minutes(1)
/** How long a checkpoint that is not the newest is kept, and how often older ones are deleted. */
const keptMillis = 3_600_000
const sweptEveryMillis = 60_000

interface Leaf {
  readonly epoch: number
  readonly index: number
  readonly entry: Uint8Array
}

export interface Checkpoint {
  readonly epoch: number
  readonly size: number
  readonly root: Uint8Array
  readonly note: string
  readonly signedAt: Date
}

interface CheckpointRow {
  readonly epoch: number
  readonly size: bigint
  readonly root: Uint8Array
  readonly note: string
  readonly signedAt: Date
}

interface EpochRow {
  readonly epoch: number
  readonly size: bigint
  readonly begun: Date
  readonly reason: string | null
  readonly statement: string | null
  readonly previous_size: bigint | null
  readonly previous_root: Uint8Array | null
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** What a new epoch says of the one before. */
const statementText = (host: string, { epoch, previous_root, previous_size }: EpochRow): string =>
  `tollkeeper-log-epoch\n${originOf(host, epoch)}\n${originOf(host, epoch - 1)}\n${previous_size}\n` +
  `${Base64.encode(previous_root!)}\n`

type LogKey = NonNullable<ReturnType<ReceiptKeys["Service"]["inForce"]>>

/** Stores checkpoints, and signs what is said of frozen epochs. */
const makeFormer = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const host = (yield* Config).host ?? ""

  const signStatements = Effect.fnUntraced(function* (key: LogKey) {
    const silent = yield* sql<EpochRow>`select epoch, size, begun_at as begun, reason, statement, previous_size,
      previous_root from receipts_epochs where reason is not null and statement is null`
    for (const row of silent) {
      const signer = { name: originOf(host, row.epoch), publicKey: key.publicKey, sign: key.sign! }
      const statement = yield* signNote(crypto, statementText(host, row), signer)
      yield* sql`update receipts_epochs set statement = ${statement}
        where epoch = ${row.epoch} and statement is null`
    }
  })

  /** One for each size; one of a former key is replaced, since a retired key alone proves nothing. */
  const store = (
    signed: Omit<Checkpoint, "signedAt">,
    key: LogKey
  ) => sql`insert into receipts_checkpoints ${sql.insert({ ...signed })}
    on conflict (epoch, size) do update set note = excluded.note, signed_at = excluded.signed_at
    where receipts_checkpoints.signed_at < ${new Date(key.validFrom)}::timestamptz`

  /**
   * What a frozen epoch keeps and none of its checkpoints covers, since those were lost with the last commits, or one
   * of a former key alone.
   */
  const signFrozen = Effect.fnUntraced(function* (key: LogKey) {
    const frozen = yield* sql<{ epoch: number; size: bigint }>`select e.epoch, e.size from receipts_epochs e
      join receipts_epochs n on n.epoch = e.epoch + 1 and n.reason <> ${otherEntries}
      where e.size > 0
        and e.size >= coalesce((select max(size) from receipts_checkpoints c where c.epoch = e.epoch), 0)
        and not exists (select 1 from receipts_checkpoints c where c.epoch = e.epoch and c.size = e.size
          and c.signed_at >= ${new Date(key.validFrom)}::timestamptz)`
    for (const { epoch, size: written } of frozen) {
      const [name, size] = [originOf(host, epoch), Number(written)]
      const root = yield* tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
      const note = yield* signNote(crypto, checkpointText(name, size, root), { ...key, name, sign: key.sign! })
      yield* store({ epoch, size, root, note }, key)
    }
  })
  return { signFrozen, signStatements, store }
})

/** Signs what the log has, and reads it. */
const makeSigning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const tree = yield* Tree
  const epochs = yield* Epochs
  const { signFrozen, signStatements, store } = yield* makeFormer
  const keys = yield* ReceiptKeys
  const host = (yield* Config).host ?? ""
  let sweptAt = -Infinity

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

  /** One turn: a checkpoint of the current size, unless there is one of the key in force. */
  const sign = Effect.gen(function* () {
    const [now] = yield* sql<{ due: boolean; epoch: number }>`select not exists (select 1 from receipts_checkpoints c
        where c.epoch = e.epoch and c.size = e.size and c.signed_at >= (select max(valid_from) from receipts_keys
          where purpose = 'log' and valid_from <= clock_timestamp())) as due, epoch
      from receipts_epochs e order by epoch desc limit 1`
    if (now === undefined || (!now.due && !epochs.hasToSay(now.epoch))) return
    const key = yield* keyNow
    if (key?.sign === undefined) return
    const { epoch, size } = yield* inTransaction(epochs.lock)
    if (size === 0) return
    const root = yield* tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
    // Known here before any reader can know of it.
    yield* epochs.setMark({ epoch, size, root: Hex.encode(root) })
    const name = originOf(host, epoch)
    const signer = { name, publicKey: key.publicKey, sign: key.sign }
    const note = yield* signNote(crypto, checkpointText(name, size, root), signer)
    // Before it is stored: until then this turn is due again.
    yield* signStatements(key)
    yield* signFrozen(key)
    yield* store({ epoch, size, root, note }, key)
    yield* sweep
  })
  return Effect.provideService(sign, SqlClient.SqlClient, sql)
})

const toCheckpoint = (row: CheckpointRow): Checkpoint => ({ ...row, size: Number(row.size) })

export class Checkpoints extends Context.Service<
  Checkpoints,
  {
    /** Leaves were added. */
    readonly wake: Effect.Effect<void>
    /** The newest of an epoch; absent: of the current one. */
    readonly newest: (epoch?: number) => Sql<Option.Option<Checkpoint>>
    /** The proof of a leaf in the newest checkpoint, with the history of a key; None until one covers it. */
    readonly proofOf: (leaf: Leaf, kid: string | undefined) => Sql<Option.Option<InclusionProof>>
    readonly epochs: Sql<ReadonlyArray<LogEpoch>>
  }
>()("tollkeeper/receipts/Checkpoints") {
  static readonly layer = Layer.effect(
    Checkpoints,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const tree = yield* Tree
      const keys = yield* ReceiptKeys
      const host = (yield* Config).host ?? ""

      const newest = (epoch?: number) =>
        Effect.map(
          sql<CheckpointRow>`select epoch, size, root, note, signed_at as "signedAt" from receipts_checkpoints
            where epoch = ${epoch === undefined ? sql`(select max(epoch) from receipts_epochs)` : sql`${epoch}`}
            order by size desc limit 1`,
          ([row]) => Option.map(Option.fromUndefinedOr(row), toCheckpoint)
        )

      /** What the first leaves of an epoch say of a key. */
      const keysOf = Effect.fnUntraced(function* (epoch: number, size: number, kid: string) {
        const rows = yield* sql<{ index: bigint; entry: string }>`select index,
            convert_from(substr(entry, 2), 'UTF8') as entry from receipts_leaves
          where epoch = ${epoch} and index < ${size} and salt is null and get_byte(entry, 0) = ${entryKinds.key}
            and strpos(convert_from(substr(entry, 2), 'UTF8'), ${`"kid":${JSON.stringify(kid)}`}) > 0 order by index`
        return yield* Effect.forEach(rows, ({ entry, index }) => {
          const path = tree.compute(epoch, (sha256, read) => inclusionPath(sha256, read, Number(index), size))
          return Effect.map(path, (path) => ({
            index: Number(index),
            entry,
            hashes: path.map((hash) => Hex.encode(hash))
          }))
        })
      })

      const proofOf = Effect.fnUntraced(function* ({ entry, epoch, index }: Leaf, kid: string | undefined) {
        const checkpoint = yield* newest(epoch)
        if (Option.isNone(checkpoint) || checkpoint.value.size <= index) return Option.none<InclusionProof>()
        // Under a retired key it would prove nothing; a new one follows within seconds.
        const { signedAt } = checkpoint.value
        const key = keys.inForce("log", yield* Clock.currentTimeMillis)
        if (key !== undefined && signedAt.getTime() < key.validFrom) return Option.none<InclusionProof>()
        const { note, size } = checkpoint.value
        const path = yield* tree.compute(epoch, (sha256, read) => inclusionPath(sha256, read, index, size))
        return Option.some<InclusionProof>({
          epoch,
          origin: originOf(host, epoch),
          index,
          size,
          leafHash: Hex.encode(leafHash(crypto.sha256, entry)),
          hashes: path.map((hash) => Hex.encode(hash)),
          keys: kid === undefined ? [] : yield* keysOf(epoch, size, kid),
          checkpoint: note
        })
      })

      const epochs = Effect.gen(function* () {
        const rows = yield* sql<EpochRow>`select epoch, size, begun_at as begun, reason, statement, previous_size,
          previous_root from receipts_epochs order by epoch`
        const logKeys = keys.history().filter(({ use }) => use === "log")
        return yield* Effect.forEach(rows, ({ begun, epoch, reason, size: written, statement }) => {
          const [origin, size] = [originOf(host, epoch), Number(written)]
          const root = tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))
          return Effect.map(root, (root): LogEpoch => ({
            epoch,
            origin,
            size,
            root: Base64.encode(root),
            begunAt: Math.floor(begun.getTime() / 1_000),
            reason,
            statement,
            keys: logKeys.map(({ publicKey }) => verifierKey(crypto, origin, publicKey))
          }))
        })
      })

      if (!keys.isEnabled) return Checkpoints.of({ wake: Effect.void, newest, proofOf, epochs })
      const { witnesses } = yield* Config
      const cosigning =
        witnesses.length === 0
          ? { wake: Effect.void }
          : yield* reconciler({
              id: "receipts-witnesses",
              every: cosignedEvery,
              gather,
              turn: yield* makeCollecting(newest)
            })
      const turn = Effect.andThen(yield* makeSigning, cosigning.wake)
      const { wake } = yield* reconciler({ id: "receipts-checkpoints", every, gather, turn })
      return Checkpoints.of({ wake, newest, proofOf, epochs })
    })
  )
}
