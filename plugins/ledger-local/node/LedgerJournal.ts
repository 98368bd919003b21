// The ledger on disk: a snapshot and a journal of the ledgers after it, one line of JSON each, in a folder of its own.
// A ledger is appended before it becomes visible, so what a client was answered survives `kill -9` (not a power cut:
// nothing is synced). Each line, and the snapshot, has a checksum: damage or a gap is reported, and what follows is
// dropped only on request. The snapshot and the journal exist only together; a missing one is reported too. A torn last
// line is a ledger that never happened. When the journal has grown, a new snapshot is written beside the old one and
// replaces it in one rename; lines that the snapshot covers already are skipped when reading.
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
import { privateFolder } from "./privateFolder.ts"

/** Journal lines after which a snapshot is due. */
export const JOURNAL_LINES_MAX = 20_000
/**
 * Bytes after which one is due, when the snapshot is not larger: a snapshot holds the history too, and writing a large
 * one again for every few lines would keep a busy ledger from closing.
 */
const BYTES_MAX = 16 * 1024 * 1024

/** The folder is not what was written, or not of this network: nothing in it was changed. */
export class JournalRefused extends Data.TaggedError("JournalRefused")<{ readonly message: string }> {}

const refuse = (message: string) => new JournalRefused({ message })

export interface LedgerJournal {
  /** What an earlier run left, over the state that a fork began from; nothing in a fresh folder. */
  readonly read: (root?: Store) => Effect.Effect<LedgerState | undefined, JournalRefused>
  /** Writes a snapshot in place of everything before: of a fresh ledger, or of one that goes back to another. */
  readonly begin: (image: StoredImage) => Effect.Effect<void>
  /** Records a ledger before it is published. */
  readonly append: (closed: ClosedLedger) => Effect.Effect<void>
  /** Makes the journal short again when it is long; after a publish. */
  readonly compact: (ledger: Ledger) => Effect.Effect<void>
}

export interface JournalOptions {
  /** Lines after which a snapshot is due. */
  readonly linesMax?: number | undefined
  /** Gives up what follows what is damaged or missing, and keeps it in a file beside; otherwise it is refused. */
  readonly repair?: boolean | undefined
}

/**
 * Where lines are added, opened with the first: a quiet machine writes one every second. What empties the journal
 * leaves it the same file.
 */
const endOf = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const opening = Scope.provide(files.open(file, { flag: "a", mode: 0o600 }), yield* Effect.scope)
  let end: FileSystem.File | undefined
  return Effect.suspend(() =>
    end === undefined ? Effect.tap(opening, (opened) => Effect.sync(() => (end = opened))) : Effect.succeed(end)
  )
})

/** Where what is. */
interface Place {
  readonly folder: string
  readonly snapshotFile: string
  readonly journalFile: string
  /** Keeps a journal that was given up in part. */
  readonly damagedFile: string
}

/** Refuses what is damaged; to repair it, backs up the journal and continues. */
const onDamage = Effect.fnUntraced(function* (
  { damagedFile, folder }: Place,
  repair: boolean,
  said: string,
  text: string | undefined
) {
  if (!repair) return yield* refuse(`${said}; \`tollkeeper ledger --state ${folder} --repair\` continues from there`)
  if (text === undefined) return yield* Effect.logWarning(said)
  yield* (yield* FileSystem.FileSystem).writeFileString(damagedFile, text, { mode: 0o600 })
  yield* Effect.logWarning(`${said}; the journal as it was is in ${damagedFile}`)
})

/** A snapshot of this network as it was written. */
const snapshotOfText = Effect.fnUntraced(function* (
  { folder, snapshotFile }: Place,
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

/** What an earlier run left, the journal cut to what is whole of it; undefined when there is nothing. */
const storedIn = Effect.fnUntraced(function* (place: Place, networkId: Uint8Array, repair: boolean) {
  const files = yield* FileSystem.FileSystem
  const textOf = (file: string) =>
    Effect.flatMap(files.exists(file), (exists) => (exists ? files.readFileString(file) : Effect.succeed(undefined)))
  const { journalFile, snapshotFile } = place
  const [snapshotText, journalText] = [yield* textOf(snapshotFile), yield* textOf(journalFile)]
  const text = journalText ?? ""
  if (snapshotText === undefined) {
    const said = `${snapshotFile} is missing, and without it no ledger after it is known`
    if (text !== "") yield* onDamage(place, repair, said, text)
    return undefined
  }
  const snapshot = yield* snapshotOfText(place, networkId, snapshotText)
  const latest = snapshot.ledgers.at(-1)!.n
  if (journalText === undefined) {
    yield* onDamage(place, repair, `${journalFile} is missing; the ledgers up to ${latest} are whole`, undefined)
    yield* files.writeFileString(journalFile, "", { mode: 0o600 })
  }
  const { damage, length, lines } = readLines(yield* Crypto, text, latest)
  if (damage !== undefined)
    yield* onDamage(place, repair, `${journalFile}: ${damage}; ${lines.length} ledgers before it are whole`, text)
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
  const place = { folder, snapshotFile, journalFile, damagedFile: path.join(folder, "journal.damaged.jsonl") }
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
    const stored = yield* storedIn(place, networkId, repair)
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
