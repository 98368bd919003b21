// The epochs of the log: one unbroken life each. Every change of the log is made under one lock, and begins a new epoch
// where the current one would go back: the database is another, or on another timeline, or an embedded one in another
// folder; or it has fewer leaves, or others, than a checkpoint that this process signed or found in its state folder.
// The first entry of a new epoch names the last checkpoint known of the one before, to which nothing is added any more.
// A replica that had signed more of it than the one that began the epoch adds that as a later entry.
import { Clock, Context, Effect, FileSystem, Layer, Path, Result } from "effect"
import { Base64, Base64Url, Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Database, inTransaction } from "../../../kernel/database/Database.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Config, didOf } from "../Config.ts"
import { type EpochEntry, entryKinds, type KeyEntry, type KeyUse } from "../contract.ts"
import { concat, rootOfRange } from "./merkle.ts"
import { type NewLeaf, Tree } from "./Tree.ts"

export interface Epoch {
  readonly epoch: number
  readonly size: number
}

/** A checkpoint that was published, as far as this process knows. */
export interface Mark extends Epoch {
  /** Hex. */
  readonly root: string
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** SQL: what serves the database, across restarts of the same server. */
const server = "receipts_server()"

/** Name of an epoch's log, and the prefix of its URLs. */
export const originOf = (host: string, epoch: number): string => (epoch === 1 ? `${host}/log` : `${host}/log/${epoch}`)

/** Why an epoch is frozen whose leaves in the database are a fork: nothing of it is signed any more. */
export const otherEntries = "the database has other entries than were published"

const text = new TextEncoder()

/** A public entry. */
const publicLeaf = (kind: number, value: KeyEntry | EpochEntry): NewLeaf => ({
  entry: concat(Uint8Array.of(kind), text.encode(canonicalJson(value)))
})

/** The newest mark of this state folder, kept across restarts; unreadable or damaged counts as none. */
const makeMark = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join((yield* Host).stateFolder, "receipts.checkpoint")
  const stored = yield* Effect.option(files.readFileString(file))
  let mark: Mark | undefined
  try {
    const read = stored._tag === "Some" ? JSON.parse(stored.value) : undefined
    if (Number.isSafeInteger(read?.epoch) && Number.isSafeInteger(read?.size) && /^[0-9a-f]{64}$/.test(read?.root))
      mark = { epoch: read.epoch, size: read.size, root: read.root }
  } catch {
    yield* Effect.logWarning(`${file} cannot be read; whether the log went back is not known from it`)
  }
  return {
    get: () => mark,
    set: (next: Mark) =>
      Effect.suspend(() => {
        mark = next
        // In one step: a process that ends while it writes leaves the former mark.
        const written = Effect.andThen(
          files.writeFileString(`${file}.new`, `${JSON.stringify(next)}\n`),
          files.rename(`${file}.new`, file)
        )
        return Effect.catch(written, (error) => Effect.logWarning(`${file} cannot be written`, error))
      })
  }
})

interface EpochRow {
  readonly epoch: number
  readonly size: bigint
  /** Whether the same database of the same line serves it as when it began. */
  readonly isSame: boolean
  /** Of the server process. */
  readonly identity: string
}

type MarkOf = () => Mark | undefined

/** Root of the first leaves of an epoch. */
const rootAt = (tree: Tree["Service"], epoch: number, size: number) =>
  tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))

/** Begins the epoch after a former one, in the caller's transaction. */
const makeBegin = Effect.fnUntraced(function* (markOf: MarkOf) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const name = (yield* Config).host ?? ""

  const currentKeys = Effect.map(
    sql<{ kid: string; purpose: KeyUse; public_key: Uint8Array; valid_from: Date }>`select kid, purpose,
      public_key, valid_from from receipts_keys where valid_until is null order by purpose`,
    (rows) =>
      rows.map((row): KeyEntry => ({
        event: "announced",
        kid: `${didOf(name)}#${row.kid}`,
        publicKey: Base64Url.encode(row.public_key),
        use: row.purpose,
        at: Math.floor(row.valid_from.getTime() / 1_000)
      }))
  )

  const begin = Effect.fnUntraced(function* (former: EpochRow, reason: string) {
    const known = markOf()
    const isAhead =
      known !== undefined &&
      (known.epoch > former.epoch || (known.epoch === former.epoch && known.size > Number(former.size)))
    const previous = isAhead
      ? { epoch: known.epoch, size: known.size, root: Hex.decode(known.root) }
      : { epoch: former.epoch, size: Number(former.size), root: undefined }
    const root =
      previous.root?._tag === "Success" ? previous.root.success : yield* rootAt(tree, former.epoch, Number(former.size))
    const epoch = previous.epoch + 1
    const entry: EpochEntry = {
      epoch,
      origin: originOf(name, epoch),
      previous: { origin: originOf(name, previous.epoch), size: previous.size, root: Base64.encode(root) },
      reason,
      at: Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    }
    yield* sql`insert into receipts_epochs (epoch, server, reason, previous_size, previous_root)
      values (${epoch}, ${sql.literal(server)}, ${reason}, ${previous.size}, ${root})`
    const keys = yield* currentKeys
    const leaves = [publicLeaf(entryKinds.epoch, entry), ...keys.map((key) => publicLeaf(entryKinds.key, key))]
    yield* tree.append(epoch, 0, leaves)
    yield* Effect.logWarning(`the log of receipts begins epoch ${epoch}: ${reason}`).pipe(
      Effect.annotateLogs({ previousSize: previous.size, keptSize: Number(former.size) })
    )
    return { epoch, size: leaves.length }
  })
  return begin
})

/** Says of an epoch what only this replica has published of the one before it; in the caller's transaction. */
const makeAmend = Effect.fnUntraced(function* (markOf: MarkOf) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const name = (yield* Config).host ?? ""
  /** The mark that was compared with what is said. */
  let compared: Mark | undefined

  const hasToSay = (epoch: number): boolean => {
    const known = markOf()
    return known !== undefined && known.epoch < epoch && known !== compared
  }

  const amend = Effect.fnUntraced(function* ({ epoch, size }: Epoch) {
    const known = markOf()
    if (known === undefined || !hasToSay(epoch)) return { epoch, size }
    const root = Result.getOrThrow(Hex.decode(known.root))
    const amended = yield* sql`update receipts_epochs set previous_size = ${known.size}, previous_root = ${root},
      statement = null where epoch = ${known.epoch + 1} and previous_size < ${known.size} returning epoch`
    if (amended.length > 0) {
      const [of, former] = [known.epoch + 1, originOf(name, known.epoch)]
      const entry: EpochEntry = {
        epoch: of,
        origin: originOf(name, of),
        previous: { origin: former, size: known.size, root: Base64.encode(root) },
        reason: "a replica had published more of the epoch before",
        at: Math.floor((yield* Clock.currentTimeMillis) / 1_000)
      }
      yield* tree.append(epoch, size, [publicLeaf(entryKinds.epoch, entry)])
      yield* Effect.logWarning(`the log of receipts names a later checkpoint of ${former}: ${known.size} leaves`)
    }
    yield* sql.afterCommit(Effect.sync(() => void (compared = known)))
    return { epoch, size: size + amended.length }
  })
  return { hasToSay, amend }
})

export class Epochs extends Context.Service<
  Epochs,
  {
    /** In the caller's transaction: the current epoch, under the log's lock. */
    readonly lock: Sql<Epoch>
    /** Whether `lock` may have to say what only this replica has published of an epoch before this one. */
    readonly hasToSay: (epoch: number) => boolean
    /** In the caller's transaction: adds leaves to the current epoch. */
    readonly append: (leaves: ReadonlyArray<NewLeaf>) => Sql<void>
    readonly appendKeys: (entries: ReadonlyArray<KeyEntry>) => Sql<void>
    /** A checkpoint is about to be published. */
    readonly setMark: (mark: Mark) => Effect.Effect<void>
  }
>()("tollkeeper/receipts/Epochs") {
  static readonly layer = Layer.effect(
    Epochs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const tree = yield* Tree
      const { host } = yield* Config
      const isEmbedded = (yield* Database).kind === "embedded"
      const mark = yield* makeMark
      const begin = yield* makeBegin(mark.get)
      const { amend, hasToSay } = yield* makeAmend(mark.get)
      /** The server whose leaves up to the mark are those that were published; they only grow there. */
      let checkedAt: string | undefined

      /** An embedded database and the mark are in one folder: what was signed is known there, unless it was copied. */
      const isCopied = Effect.fnUntraced(function* (epoch: number) {
        if (!isEmbedded) return false
        return (yield* sql`select 1 from receipts_checkpoints where epoch = ${epoch} limit 1`).length > 0
      })

      /** Why nothing may be added to this epoch; undefined when it continues what is known of it. */
      const wentBack = Effect.fnUntraced(function* ({ epoch, identity, isSame, size }: EpochRow) {
        if (!isSame) return "the database is served anew, from a copy or another timeline"
        const known = mark.get()
        if (known === undefined)
          return (yield* isCopied(epoch)) ? "the embedded database was put into another folder" : undefined
        if (known.epoch < epoch) return undefined
        if (known.epoch > epoch || known.size > Number(size)) return "the database lost entries that were published"
        if (checkedAt === identity) return undefined
        yield* tree.forget
        const root = yield* rootAt(tree, epoch, known.size)
        if (Hex.encode(root) !== known.root) return otherEntries
        checkedAt = identity
        return undefined
      })

      const lock = Effect.gen(function* () {
        yield* sql`select pg_advisory_xact_lock(724402407)`
        yield* sql`insert into receipts_epochs (epoch, server) select 1, ${sql.literal(server)}
          where not exists (select 1 from receipts_epochs)`
        const [row] = yield* sql<EpochRow>`select epoch, size, server = ${sql.literal(server)} as "isSame",
            kernel_server_identity() as identity
          from receipts_epochs order by epoch desc limit 1`
        const reason = yield* wentBack(row!)
        return yield* reason === undefined ? amend({ epoch: row!.epoch, size: Number(row!.size) }) : begin(row!, reason)
      })

      const append = Effect.fnUntraced(function* (leaves: ReadonlyArray<NewLeaf>) {
        const { epoch, size } = yield* lock
        yield* tree.append(epoch, size, leaves)
      })

      // Before anything is added or signed: what this state folder knows is compared with what the database has.
      if (host !== undefined) yield* inTransaction(lock).pipe(Effect.provideService(SqlClient.SqlClient, sql))

      return Epochs.of({
        lock,
        hasToSay,
        append,
        appendKeys: (entries) => append(entries.map((entry) => publicLeaf(entryKinds.key, entry))),
        setMark: (next) =>
          Effect.suspend(() => {
            const known = mark.get()
            const isNewer =
              known === undefined || next.epoch > known.epoch || (next.epoch === known.epoch && next.size > known.size)
            return isNewer ? mark.set(next) : Effect.void
          })
      })
    })
  )
}
