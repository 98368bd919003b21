// The epochs of the log. Within an epoch the log only grows. Every change of the log holds one lock, and begins a new
// epoch if the current one would go back. That is the case for another database, for another timeline, and for an
// embedded database in another folder. It is also the case if the leaves are fewer than, or differ from, a checkpoint
// that this process signed or found in its state folder. The first entry of a new epoch names the last known checkpoint
// of the former epoch, which then stays frozen. A replica that had signed more of the former epoch adds a later entry.
// If a witness shows a fork, we stop signing the epoch until an operator begins the next one. Names are random.
import { Clock, Context, Effect, FileSystem, Layer, Path, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { joinedBytes } from "../../../kernel/stellar/joinBytes.ts"
import { Database, inTransaction } from "../../../kernel/database/Database.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Config } from "../Config.ts"
import { type EpochEntry, entryKinds, type KeyEntry } from "../contract.ts"
import { rootOfRange } from "./merkle.ts"
import { makeTakingOver } from "./takeOver.ts"
import { type NewLeaf, Tree } from "./Tree.ts"

interface Epoch {
  readonly epoch: number
  /** Null for the first epoch. */
  readonly name: string | null
  readonly size: number
}

/** The last published checkpoint in this process's memory or state folder. */
interface Mark extends Epoch {
  /** In hex. */
  readonly root: string
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** SQL: identity of the database server, the same across restarts. */
const server = "receipts_server()"

/** The origin of an epoch's log, which is also the prefix of its URLs. */
export const originOf = (host: string, name: string | null): string =>
  name === null ? `${host}/log` : `${host}/log/${name}`

/** The reason of an epoch that is frozen because its leaves in the database are a fork. */
export const otherEntries = "the database has other entries than were published"

/** SQL: an epoch's name. Replicas of earlier versions do not store it. */
export const nameColumn = "case when epoch = 1 then null else coalesce(name, epoch::text) end"

const text = new TextEncoder()

const publicLeaf = (kind: number, value: KeyEntry | EpochEntry): NewLeaf => ({
  entry: joinedBytes(Uint8Array.of(kind), text.encode(canonicalJson(value)))
})

/** Files of earlier versions have only the number, which was the name. */
const nameOf = ({ epoch, name }: { readonly epoch: number; readonly name?: unknown }): string | null =>
  epoch === 1 ? null : typeof name === "string" ? name : String(epoch)

interface Marks {
  readonly get: () => Mark | undefined
  /** The last mark of each epoch before this one. */
  readonly before: (epoch: number) => ReadonlyArray<Mark>
  readonly set: (next: Mark) => Effect.Effect<void>
}

/** Maximum marks of former epochs in the state folder. */
const formerMax = 20

const readMark = (read: any): Mark | undefined =>
  Number.isSafeInteger(read?.epoch) && Number.isSafeInteger(read?.size) && /^[0-9a-f]{64}$/.test(read?.root)
    ? { epoch: read.epoch, name: nameOf(read), size: read.size, root: read.root }
    : undefined

/**
 * The newest mark in this state folder, across restarts, and the last marks of former epochs: a failover may also lose
 * the entry that named one. An unreadable or damaged file counts as missing.
 */
const makeMark = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join((yield* Host).stateFolder, "receipts.checkpoint")
  const stored = yield* Effect.option(files.readFileString(file))
  let mark: Mark | undefined
  let former: ReadonlyArray<Mark> = []
  try {
    const read = stored._tag === "Some" ? JSON.parse(stored.value) : undefined
    mark = readMark(read)
    if (Array.isArray(read?.former)) former = read.former.flatMap((one: unknown) => readMark(one) ?? [])
  } catch {
    yield* Effect.logWarning(`${file} cannot be read; whether the log went back is not known from it`)
  }
  const marks: Marks = {
    get: () => mark,
    before: (epoch) => [...former, ...(mark === undefined ? [] : [mark])].filter((one) => one.epoch < epoch),
    set: (next) =>
      Effect.suspend(() => {
        if (mark !== undefined && mark.epoch < next.epoch) former = [...former, mark].slice(-formerMax)
        mark = next
        // Atomic: a process that dies while it writes leaves the former mark.
        const written = Effect.andThen(
          files.writeFileString(`${file}.new`, `${JSON.stringify({ ...next, former })}\n`),
          files.rename(`${file}.new`, file)
        )
        return Effect.catch(written, (error) => Effect.logWarning(`${file} cannot be written`, error))
      })
  }
  return marks
})

interface EpochRow {
  readonly epoch: number
  readonly name: string | null
  readonly size: bigint
  readonly fork: string | null
  /** The operator's reason for the next epoch. */
  readonly ended: string | null
  readonly published: { readonly origin: string; readonly size: number; readonly root: string } | null
  /** Whether the epoch is still on the database and timeline on which it began. */
  readonly isSame: boolean
  /** Identity of the server process. */
  readonly identity: string
}

type MarkOf = () => Mark | undefined

const rootAt = (tree: Tree["Service"], epoch: number, size: number) =>
  tree.compute(epoch, (sha256, read) => rootOfRange(sha256, read, 0, size))

/** Random bytes in an epoch's name. */
const nameBytes = 8

/** Begins the next epoch, in the caller's transaction. */
const makeBegin = Effect.fnUntraced(function* (markOf: MarkOf) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const crypto = yield* Crypto
  const { keyEntries, takeUnsigned } = yield* makeTakingOver
  const name = (yield* Config).host ?? ""

  /** The newest published checkpoint: the operator's, else this replica's, else the database's. */
  const previousOf = Effect.fnUntraced(function* (former: EpochRow) {
    const [known, own] = [markOf(), Number(former.size)]
    if (former.published !== null) {
      const { origin, root, size } = former.published
      return { epoch: former.epoch, origin, size, root: Result.getOrThrow(Base64.decode(root)) }
    }
    const isAhead =
      known !== undefined &&
      (known.epoch > former.epoch || (known.epoch === former.epoch && (known.name !== former.name || known.size > own)))
    return isAhead
      ? { ...known, origin: originOf(name, known.name), root: Result.getOrThrow(Hex.decode(known.root)) }
      : {
          epoch: former.epoch,
          origin: originOf(name, former.name),
          size: own,
          root: yield* rootAt(tree, former.epoch, own)
        }
  })

  const begin = Effect.fnUntraced(function* (former: EpochRow, reason: string) {
    const previous = yield* previousOf(former)
    const epoch = previous.epoch + 1
    const own = Hex.encode(crypto.randomBytes(nameBytes))
    const origin = originOf(name, own)
    const { root, size } = previous
    const entry: EpochEntry = {
      epoch,
      origin,
      previous: { origin: previous.origin, size, root: Base64.encode(root) },
      reason,
      at: Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    }
    yield* sql`insert into receipts_epochs (epoch, name, server, reason, previous_origin, previous_size, previous_root)
      values (${epoch}, ${own}, ${sql.literal(server)}, ${reason}, ${previous.origin}, ${size}, ${root})`
    const keys = yield* keyEntries
    const leaves = [
      publicLeaf(entryKinds.epoch, entry),
      ...keys.map((key) => publicLeaf(entryKinds.key, key)),
      ...(former.fork === null ? [] : yield* takeUnsigned(former.epoch))
    ]
    yield* tree.append(epoch, 0, leaves)
    yield* Effect.logWarning(`the log of receipts begins ${origin}: ${reason}`).pipe(
      Effect.annotateLogs({ previousSize: size, keptSize: Number(former.size) })
    )
    return { epoch, name: own, size: leaves.length }
  })
  return begin
})

/** Adds this replica's newer checkpoints of former epochs to an epoch; in the caller's transaction. */
const makeAmend = Effect.fnUntraced(function* (marks: Marks) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const name = (yield* Config).host ?? ""
  /** The marks compared in an epoch. The next epoch may have lost what was compared. */
  let compared = { name: undefined as string | null | undefined, marks: new Set<Mark>() }

  const leftToSay = (now: Pick<Epoch, "epoch" | "name">): ReadonlyArray<Mark> =>
    marks.before(now.epoch).filter((mark) => compared.name !== now.name || !compared.marks.has(mark))

  /** Adds an entry if the epoch after the mark's names an earlier checkpoint. */
  const amendFor = Effect.fnUntraced(function* (mark: Mark, { epoch, size }: Epoch) {
    const root = Result.getOrThrow(Hex.decode(mark.root))
    const [of, former] = [mark.epoch + 1, originOf(name, mark.name)]
    const [amended] = yield* sql<{ name: string }>`update receipts_epochs
      set previous_size = ${mark.size}, previous_root = ${root}, statement = null
      where epoch = ${of} and previous_size < ${mark.size} and coalesce(previous_origin, ${former}) = ${former}
      returning coalesce(name, epoch::text) as name`
    if (amended === undefined) return 0
    const entry: EpochEntry = {
      epoch: of,
      origin: originOf(name, amended.name),
      previous: { origin: former, size: mark.size, root: Base64.encode(root) },
      reason: "a replica had published more of the epoch before",
      at: Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    }
    yield* tree.append(epoch, size, [publicLeaf(entryKinds.epoch, entry)])
    yield* Effect.logWarning(`the log of receipts names a later checkpoint of ${former}: ${mark.size} leaves`)
    return 1
  })

  const amend = Effect.fnUntraced(function* (now: Epoch) {
    const left = leftToSay(now)
    if (left.length === 0) return now
    let size = now.size
    for (const mark of left) size += yield* amendFor(mark, { ...now, size })
    yield* sql.afterCommit(
      Effect.sync(() => {
        const before = compared.name === now.name ? compared.marks : []
        compared = { name: now.name, marks: new Set([...before, ...left]) }
      })
    )
    return { ...now, size }
  })
  return { hasToSay: (now: Pick<Epoch, "epoch" | "name">) => leftToSay(now).length > 0, amend }
})

/** Compares an epoch in the database with this process's mark. */
const makeComparing = Effect.fnUntraced(function* (markOf: MarkOf) {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const isEmbedded = (yield* Database).kind === "embedded"
  /** The server process with verified leaves up to the mark. On it the leaves only grow. */
  let checkedAt: string | undefined

  /** The mark is in the folder of the embedded database, so checkpoints without a mark mean a copied database. */
  const isCopied = Effect.fnUntraced(function* (epoch: number) {
    if (!isEmbedded) return false
    return (yield* sql`select 1 from receipts_checkpoints where epoch = ${epoch} limit 1`).length > 0
  })

  /** The reason to end this epoch; undefined if it continues the known checkpoint. */
  const wentBack = Effect.fnUntraced(function* ({ ended, epoch, fork, identity, isSame, name, size }: EpochRow) {
    if (ended !== null) return ended
    // Only an operator ends a fork: this process's mark may be on the wrong side of it.
    if (fork !== null) return undefined
    if (!isSame) return "the database is served anew, from a copy or another timeline"
    const known = markOf()
    if (known === undefined)
      return (yield* isCopied(epoch)) ? "the embedded database was put into another folder" : undefined
    if (known.epoch < epoch) return undefined
    if (known.epoch === epoch && known.name !== name) return "the database has another epoch than was published"
    if (known.epoch > epoch || known.size > Number(size)) return "the database lost entries that were published"
    if (checkedAt === identity) return undefined
    yield* tree.forget
    const root = yield* rootAt(tree, epoch, known.size)
    if (Hex.encode(root) !== known.root) return otherEntries
    checkedAt = identity
    return undefined
  })
  return wentBack
})

export class Epochs extends Context.Service<
  Epochs,
  {
    /** In the caller's transaction: the current epoch, under the log's lock. */
    readonly lock: Sql<Epoch>
    /** Whether `lock` may have to add this replica's newer checkpoint of an earlier epoch. */
    readonly hasToSay: (now: Pick<Epoch, "epoch" | "name">) => boolean
    /** In the caller's transaction: adds leaves to the current epoch. */
    readonly append: (leaves: ReadonlyArray<NewLeaf>) => Sql<void>
    readonly appendKeys: (entries: ReadonlyArray<KeyEntry>) => Sql<void>
    /** Stores the mark of a checkpoint before it is published. */
    readonly setMark: (mark: Mark) => Effect.Effect<void>
  }
>()("tollkeeper/receipts/Epochs") {
  static readonly layer = Layer.effect(
    Epochs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const tree = yield* Tree
      const { host } = yield* Config
      const mark = yield* makeMark
      const begin = yield* makeBegin(mark.get)
      const { amend, hasToSay } = yield* makeAmend(mark)
      const wentBack = yield* makeComparing(mark.get)

      const lock = Effect.gen(function* () {
        yield* sql`select pg_advisory_xact_lock(724402407)`
        yield* sql`insert into receipts_epochs (epoch, server) select 1, ${sql.literal(server)}
          where not exists (select 1 from receipts_epochs)`
        const [row] =
          yield* sql<EpochRow>`select epoch, size, ${sql.literal(nameColumn)} as name, fork, ended, published,
            server = ${sql.literal(server)} as "isSame",
            kernel_server_identity() as identity
          from receipts_epochs order by epoch desc limit 1`
        const reason = yield* wentBack(row!)
        const { epoch, fork, name } = row!
        const current = { epoch, name, size: Number(row!.size) }
        if (reason !== undefined) return yield* begin(row!, reason)
        return yield* fork === null ? amend(current) : Effect.succeed(current)
      })

      const append = Effect.fnUntraced(function* (leaves: ReadonlyArray<NewLeaf>) {
        const { epoch, size } = yield* lock
        yield* tree.append(epoch, size, leaves)
      })

      // Compare the mark of this state folder with the database before any leaf is added or checkpoint signed.
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
