// The ledger on disk: a snapshot and a journal of the ledgers after it, one line of JSON each, in a dedicated folder. A
// ledger is appended before it becomes visible, so acknowledged data survives `kill -9` (not a power cut: nothing is
// synced). Each line, and the snapshot, has a checksum: damage or a gap is reported, and the lines after it are dropped
// only on request. The snapshot and the journal exist only together; a missing one is reported too. A torn last line is
// a ledger that never happened. When the journal has grown, a new snapshot is written next to the old one and replaces
// it in one rename; reading skips lines that the snapshot already covers.
import { Data, Effect, FileSystem, Path, Scope } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Store } from "../engine/state/Store.ts"
import {
  imageOf,
  isOf,
  journalLine,
  readLines,
  readSnapshot,
  replay,
  snapshotOf,
  type StoredImage,
  withCheck
} from "./journalText.ts"
import type { ClosedLedger, Ledger, LedgerState } from "./Ledger.ts"

// Restricts the ledger's folder to its user: no other user of the machine may read its content, which includes the key
// of the HTTPS listener. An existing folder is restricted as well, regardless of its permissions.

const folderMode = 0o700

/** Makes the folder, or restricts the existing one. */
export const privateFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: folderMode })
  yield* files.chmod(folder, folderMode)
})

/** Journal lines after which a snapshot is due. */
const JOURNAL_LINES_MAX = 20_000
/**
 * Bytes after which one is due, when the snapshot is not larger: a snapshot holds the history too, and writing a large
 * one again for every few lines would keep a busy ledger from closing.
 */
const BYTES_MAX = 16 * 1024 * 1024

/** The folder's content was changed since it was written, or belongs to another network. We change nothing in it. */
export class JournalRefused extends Data.TaggedError("JournalRefused")<{ readonly message: string }> {}

const refuse = (message: string) => new JournalRefused({ message })

export interface LedgerJournal {
  /** The ledger of an earlier run, over the state from which a fork began; undefined in a fresh folder. */
  readonly read: (root?: Store) => Effect.Effect<LedgerState | undefined, JournalRefused>
  /** Writes a snapshot in place of everything before: of a fresh ledger, or of a ledger that reverts to another. */
  readonly begin: (image: StoredImage) => Effect.Effect<void>
  /** Records a ledger before it is published. */
  readonly append: (closed: ClosedLedger) => Effect.Effect<void>
  /** Makes the journal short again when it is long; after a publish. */
  readonly compact: (ledger: Ledger) => Effect.Effect<void>
}

interface JournalOptions {
  /** Lines after which a snapshot is due. */
  readonly linesMax?: number | undefined
  /** Drops everything after a damaged or missing part, and keeps it in a backup file; otherwise damage is refused. */
  readonly repair?: boolean | undefined
}

/**
 * The end of the journal, opened with the first append: a quiet machine appends one line every second. Truncating the
 * journal keeps the same file.
 */
const endOf = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const opening = Scope.provide(files.open(file, { flag: "a", mode: 0o600 }), yield* Effect.scope)
  let end: FileSystem.File | undefined
  return Effect.suspend(() =>
    end === undefined ? Effect.tap(opening, (opened) => Effect.sync(() => (end = opened))) : Effect.succeed(end)
  )
})

interface JournalPaths {
  readonly folder: string
  readonly snapshotFile: string
  readonly journalFile: string
  /** Keeps a journal that was given up in part. */
  readonly damagedFile: string
}

/** Refuses damage; with repair, backs up the journal and continues. */
const onDamage = Effect.fnUntraced(function* (
  { damagedFile, folder }: JournalPaths,
  repair: boolean,
  said: string,
  text: string | undefined
) {
  if (!repair) return yield* refuse(`${said}; \`tollkeeper ledger --state ${folder} --repair\` continues from there`)
  if (text === undefined) return yield* Effect.logWarning(said)
  yield* (yield* FileSystem.FileSystem).writeFileString(damagedFile, text, { mode: 0o600 })
  yield* Effect.logWarning(`${said}; the journal as it was is in ${damagedFile}`)
})

/** Reads a snapshot of this network. */
const snapshotOfText = Effect.fnUntraced(function* (
  { folder, snapshotFile }: JournalPaths,
  networkId: Uint8Array,
  text: string
) {
  const snapshot = readSnapshot(yield* Crypto, text)
  if (snapshot === undefined) {
    const said = `${snapshotFile} is not what was written, and nothing replaces it`
    return yield* refuse(`${said}; put back a copy of it, or begin a ledger in another folder with --state DIR`)
  }
  if (isOf(snapshot, networkId)) return snapshot
  return yield* refuse(`${folder} holds the ledger of another network or version; choose another with --state DIR`)
})

/** The ledger of an earlier run, with the journal cut to its intact lines; undefined when there is none. */
const storedIn = Effect.fnUntraced(function* (paths: JournalPaths, networkId: Uint8Array, repair: boolean) {
  const files = yield* FileSystem.FileSystem
  const textOf = (file: string) =>
    Effect.flatMap(files.exists(file), (exists) => (exists ? files.readFileString(file) : Effect.succeed(undefined)))
  const { journalFile, snapshotFile } = paths
  const [snapshotText, journalText] = [yield* textOf(snapshotFile), yield* textOf(journalFile)]
  const text = journalText ?? ""
  if (snapshotText === undefined) {
    const said = `${snapshotFile} is missing, and without it no ledger after it is known`
    if (text !== "") yield* onDamage(paths, repair, said, text)
    return undefined
  }
  const snapshot = yield* snapshotOfText(paths, networkId, snapshotText)
  const latest = snapshot.ledgers.at(-1)!.n
  if (journalText === undefined) {
    yield* onDamage(paths, repair, `${journalFile} is missing; the ledgers up to ${latest} are whole`, undefined)
    yield* files.writeFileString(journalFile, "", { mode: 0o600 })
  }
  const { damage, length, lines } = readLines(yield* Crypto, text, latest)
  if (damage !== undefined)
    yield* onDamage(paths, repair, `${journalFile}: ${damage}; ${lines.length} ledgers before it are whole`, text)
  if (length < text.length) yield* files.writeFileString(journalFile, text.slice(0, length))
  return { snapshot, lines, snapshotSize: snapshotText.length, size: length }
})

/** Opens the journal in `folder`, which is made when it is absent. */
export const openJournal = Effect.fn("openJournal")(function* (
  folder: string,
  networkId: Uint8Array,
  { linesMax = JOURNAL_LINES_MAX, repair = false }: JournalOptions = {}
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const crypto = yield* Crypto
  const context = yield* Effect.context<Crypto | FileSystem.FileSystem>()
  yield* privateFolder(folder)
  const [snapshotFile, journalFile] = [path.join(folder, "snapshot.json"), path.join(folder, "journal.jsonl")]
  const paths = { folder, snapshotFile, journalFile, damagedFile: path.join(folder, "journal.damaged.jsonl") }
  let lines = 0
  let size = 0
  let snapshotSize = 0

  const snapshot = Effect.fnUntraced(function* (image: StoredImage) {
    const fresh = path.join(folder, "snapshot.new.json")
    const text = withCheck(crypto, snapshotOf(image))
    snapshotSize = text.length
    yield* files.writeFileString(fresh, text, { mode: 0o600 })
    if (!(yield* files.exists(journalFile))) yield* files.writeFileString(journalFile, "", { mode: 0o600 })
    yield* files.rename(fresh, snapshotFile)
    yield* files.writeFileString(journalFile, "", { mode: 0o600 })
    lines = 0
    size = 0
  })

  const read = Effect.fnUntraced(function* (root: Store | undefined) {
    const stored = yield* storedIn(paths, networkId, repair)
    if (stored === undefined) return undefined
    snapshotSize = stored.snapshotSize
    lines = stored.lines.length
    size = stored.size
    return replay(crypto, root, stored.snapshot, stored.lines)
  })

  const end = yield* endOf(journalFile)
  const append = Effect.fnUntraced(function* (closed: ClosedLedger) {
    const line = `${withCheck(crypto, journalLine(closed))}\n`
    yield* (yield* end).writeAll(new TextEncoder().encode(line))
    lines += 1
    size += line.length
  })

  const journal: LedgerJournal = {
    read: (root) => Effect.catchTag(read(root), "PlatformError", Effect.die).pipe(Effect.provideContext(context)),
    begin: (image) => Effect.orDie(snapshot(image)),
    append: (closed) => Effect.orDie(append(closed)),
    compact: (ledger) =>
      lines < linesMax && size < Math.max(BYTES_MAX, snapshotSize)
        ? Effect.void
        : Effect.orDie(snapshot(imageOf(ledger)))
  }
  return journal
})
