// The ledger on disk: a snapshot and a journal of the ledgers after it, one line of JSON each, in a folder of its own.
// A ledger is appended before anybody can see it, so what a client was told survives `kill -9` (not a power cut:
// nothing is synced). Each line has a checksum: one that is damaged or missing is said, and what follows is given up
// only when asked to. A torn last line is a ledger that never happened. When the journal has grown, a new snapshot is
// written beside the old one and takes its place in one rename; lines that the snapshot covers already are passed over
// when reading.
import { Effect, FileSystem, Path, Scope } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { EngineCrypto } from "../engine/EngineCrypto.ts"
import { Store } from "../engine/state/Store.ts"
import { fromLatin1, latin1, codec } from "../engine/xdr/Xdr.ts"
import { ZERO_HASH } from "./Header.ts"
import type { KeyString } from "../engine/state/LedgerKeys.ts"
import type { ClosedLedger, Ledger, LedgerImage, LedgerState } from "./Ledger.ts"
import type { LedgerRecord, TransactionRecord } from "./History.ts"
import { fromBase64, toBase64, toHex } from "./text.ts"
import { emptyHashes } from "./transactionSet.ts"

const VERSION = 1
/** Journal lines after which a snapshot is due. */
export const JOURNAL_LINES_MAX = 20_000
/**
 * Bytes after which one is due, when the snapshot is not larger: a snapshot holds the history too, and writing a large
 * one again for every few lines would keep a busy ledger from closing.
 */
const BYTES_MAX = 16 * 1024 * 1024

interface TransactionLine extends Omit<
  TransactionRecord,
  "envelope" | "result" | "meta" | "feeChanges" | "refundChanges" | "closeTime" | "inclusionFeeStroops" | "ledger"
> {
  readonly bytes: readonly [envelope: string, result: string, meta: string, feeChanges: string, refundChanges: string]
  readonly fee: string
}

/** Short names and nothing that is empty: most ledgers of a quiet machine are, and there is one every second. */
interface LedgerLine {
  readonly n: number
  readonly time: string
  readonly hash: string
  /** With transactions only. */
  readonly with?: {
    readonly set: string
    readonly results: string
    readonly feePool: string
    /** Absent while nobody has made an offer. */
    readonly lastOfferId?: string
    readonly transactions: ReadonlyArray<TransactionLine>
  }
  readonly evicted?: ReadonlyArray<string>
  /** Of a ledger without transactions: it has the hashes of an empty set. Absent in the lines of earlier versions. */
  readonly empty?: 1
}

interface JournalLine extends LedgerLine {
  readonly put?: ReadonlyArray<string>
  readonly gone?: ReadonlyArray<string>
}

interface Snapshot {
  readonly version: number
  /** Base64 of the network's id, so that a folder is not read as another network's. */
  readonly network: string
  readonly feePool: string
  readonly lastOfferId?: string
  /** Hash of the ledger before the oldest one. */
  readonly previousHash: string
  readonly entries: ReadonlyArray<string>
  /** Of a fork, keys of what it deleted of the state that it began from. */
  readonly gone?: ReadonlyArray<string>
  readonly ledgers: ReadonlyArray<LedgerLine>
}

/** What a snapshot is made of. */
type StoredImage = Pick<LedgerImage, "networkId" | "store" | "ledgers">

const bytes = (text: string): Uint8Array => fromBase64(text) ?? new Uint8Array(0)

const keyText = (key: KeyString): string => toBase64(fromLatin1(key))
const keyOfText = (text: string): KeyString => latin1(bytes(text))

const transactionLine = (record: TransactionRecord): TransactionLine => {
  const {
    envelope,
    result,
    meta,
    feeChanges,
    refundChanges,
    closeTime: _time,
    ledger: _ledger,
    inclusionFeeStroops,
    ...rest
  } = record
  const encoded = [envelope, result, meta, feeChanges, refundChanges].map(toBase64)
  return { ...rest, bytes: encoded as unknown as TransactionLine["bytes"], fee: inclusionFeeStroops.toString() }
}

const ledgerLine = (record: LedgerRecord): LedgerLine => ({
  n: record.sequence,
  time: record.closeTime.toString(),
  hash: toBase64(record.hash),
  ...(record.transactions.length === 0
    ? { empty: 1 as const }
    : {
        with: {
          set: toBase64(record.transactionSetHash),
          results: toBase64(record.resultHash),
          feePool: record.feePoolStroops.toString(),
          ...(record.lastOfferId === 0n ? {} : { lastOfferId: record.lastOfferId.toString() }),
          transactions: record.transactions.map(transactionLine)
        }
      }),
  ...(record.evicted.length === 0 ? {} : { evicted: record.evicted.map(keyText) })
})

/** A ledger from its line; what an empty ledger does not say follows from the one before. */
const readLedger = (
  crypto: EngineCrypto,
  line: LedgerLine,
  before: Pick<LedgerRecord, "hash" | "feePoolStroops" | "lastOfferId">
): LedgerRecord => {
  const closeTime = BigInt(line.time)
  const { set, results, feePool, lastOfferId, transactions = [] } = line.with ?? {}
  return {
    sequence: line.n,
    closeTime,
    hash: bytes(line.hash),
    previousHash: before.hash,
    transactionSetHash: ZERO_HASH,
    resultHash: ZERO_HASH,
    ...(line.empty === undefined ? {} : emptyHashes(crypto, before.hash)),
    ...(set === undefined || results === undefined
      ? {}
      : { transactionSetHash: bytes(set), resultHash: bytes(results) }),
    feePoolStroops: feePool === undefined ? before.feePoolStroops : BigInt(feePool),
    evicted: (line.evicted ?? []).map(keyOfText),
    lastOfferId: lastOfferId === undefined ? before.lastOfferId : BigInt(lastOfferId),
    transactions: transactions.map(({ bytes: [envelope, result, meta, feeChanges, refundChanges], fee, ...rest }) => ({
      ...rest,
      envelope: bytes(envelope),
      result: bytes(result),
      meta: bytes(meta),
      feeChanges: bytes(feeChanges),
      refundChanges: bytes(refundChanges),
      closeTime,
      ledger: line.n,
      inclusionFeeStroops: BigInt(fee)
    }))
  }
}

const journalLine = ({ record, changes }: ClosedLedger): JournalLine => {
  const put = changes.flatMap(({ after }) => (after === undefined ? [] : [toBase64(codec.LedgerEntry.encode(after))]))
  const evicted = new Set(record.evicted)
  const gone = changes.flatMap(({ key, after }) => (after === undefined && !evicted.has(key) ? [keyText(key)] : []))
  return { ...ledgerLine(record), ...(put.length === 0 ? {} : { put }), ...(gone.length === 0 ? {} : { gone }) }
}

const snapshotOf = ({ ledgers, networkId, store }: StoredImage): Snapshot => {
  const oldest = ledgers[0]!
  const own = [...store.own()]
  const gone = own.flatMap(([key, entry]) => (entry === undefined ? [keyText(key)] : []))
  return {
    version: VERSION,
    network: toBase64(networkId),
    feePool: oldest.feePoolStroops.toString(),
    lastOfferId: oldest.lastOfferId.toString(),
    previousHash: toBase64(oldest.previousHash),
    entries: own.flatMap(([, entry]) => (entry === undefined ? [] : [toBase64(codec.LedgerEntry.encode(entry))])),
    ...(gone.length === 0 ? {} : { gone }),
    ledgers: ledgers.map(ledgerLine)
  }
}

const imageOf = ({ history, options, store }: Ledger): StoredImage => ({
  networkId: options.networkId,
  store,
  ledgers: [...history.from(0)]
})

/** A journal as far as it is whole. */
interface Whole {
  readonly lines: ReadonlyArray<JournalLine>
  /** Characters of the text up to the end of the last whole line. */
  readonly length: number
  /** What is wrong with the line after that; absent when nothing is. */
  readonly damage: string | undefined
}

const CHECKED = /^(.*),"c":"([0-9a-f]{16})"\}$/
const CHECK_CHARACTERS = 16

const checkOf = (crypto: EngineCrypto, json: string): string =>
  toHex(crypto.sha256(new TextEncoder().encode(json))).slice(0, CHECK_CHARACTERS)

/** A line with a checksum of itself at its end. */
const withCheck = (crypto: EngineCrypto, line: JournalLine): string => {
  const json = JSON.stringify(line)
  return `${json.slice(0, -1)},"c":"${checkOf(crypto, json)}"}\n`
}

/** A line, or undefined when it is not what was written. Lines of earlier versions have no checksum. */
const readLine = (crypto: EngineCrypto, text: string): JournalLine | undefined => {
  const [, body, check] = CHECKED.exec(text) ?? []
  const json = body === undefined ? text : `${body}}`
  if (body !== undefined && checkOf(crypto, json) !== check) return undefined
  try {
    const line = JSON.parse(json) as Partial<JournalLine> | null
    return typeof line?.n === "number" && typeof line.hash === "string" ? (line as JournalLine) : undefined
  } catch {
    return undefined
  }
}

/**
 * The lines after the ledger `latest`, in order and without gaps. What follows the last newline was being written when
 * the process died, and never happened; lines that the snapshot covers are passed over.
 */
const readLines = (crypto: EngineCrypto, text: string, latest: number): Whole => {
  const lines: Array<JournalLine> = []
  let [length, number, expected] = [0, 0, latest + 1]
  for (const line of text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .slice(0, -1)) {
    number++
    const read = readLine(crypto, line)
    if (read === undefined) return { lines, length, damage: `line ${number} is not what was written` }
    if (read.n > expected) return { lines, length, damage: `ledger ${expected} is missing before line ${number}` }
    length += line.length + 1
    if (read.n < expected) continue
    lines.push(read)
    expected++
  }
  return { lines, length, damage: undefined }
}

const replay = (
  crypto: EngineCrypto,
  root: Store | undefined,
  snapshot: Snapshot,
  lines: ReadonlyArray<JournalLine>
): LedgerState => {
  const store = root === undefined ? Store.empty() : root.child()
  for (const entry of snapshot.entries) store.put(codec.LedgerEntry.decode(bytes(entry)))
  for (const key of snapshot.gone ?? []) store.delete(keyOfText(key))
  const ledgers: Array<LedgerRecord> = []
  let last: Pick<LedgerRecord, "hash" | "feePoolStroops" | "lastOfferId"> = {
    hash: bytes(snapshot.previousHash),
    feePoolStroops: BigInt(snapshot.feePool),
    lastOfferId: BigInt(snapshot.lastOfferId ?? 0)
  }
  const add = (line: LedgerLine): void => {
    const record = readLedger(crypto, line, last)
    ledgers.push(record)
    last = record
  }
  for (const line of snapshot.ledgers) add(line)
  for (const line of lines) {
    for (const entry of line.put ?? []) store.put(codec.LedgerEntry.decode(bytes(entry)))
    for (const key of [...(line.gone ?? []), ...(line.evicted ?? [])]) store.delete(keyOfText(key))
    add(line)
  }
  return { store, ledgers }
}

export interface LedgerJournal {
  /** What an earlier run left, over the state that a fork began from; nothing in a fresh folder. */
  readonly read: (root?: Store) => Effect.Effect<LedgerState | undefined>
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
  /** Gives up what follows a damaged line, which is kept in a file beside; otherwise such a journal is a defect. */
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

/** Opens the journal in `folder`, which is made when it is absent. A folder of another network is a defect. */
export const openJournal = Effect.fn("openJournal")(function* (
  folder: string,
  networkId: Uint8Array,
  { linesMax = JOURNAL_LINES_MAX, repair = false }: JournalOptions = {}
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const crypto = yield* Crypto
  yield* files.makeDirectory(folder, { recursive: true })
  const snapshotFile = path.join(folder, "snapshot.json")
  const journalFile = path.join(folder, "journal.jsonl")
  let lines = 0
  let size = 0
  let snapshotSize = 0

  const snapshot = Effect.fnUntraced(function* (image: StoredImage) {
    const fresh = path.join(folder, "snapshot.new.json")
    const text = JSON.stringify(snapshotOf(image))
    snapshotSize = text.length
    yield* files.writeFileString(fresh, text, { mode: 0o600 })
    yield* files.rename(fresh, snapshotFile)
    yield* files.writeFileString(journalFile, "", { mode: 0o600 })
    lines = 0
    size = 0
  })

  const onDamage = Effect.fnUntraced(function* ({ damage, lines: kept }: Whole, text: string) {
    const said = `${journalFile}: ${damage}; ${kept.length} ledgers before it are whole`
    if (!repair) return yield* Effect.die(new Error(`${said}. Start once with --repair to go on from there`))
    const damaged = path.join(folder, "journal.damaged.jsonl")
    yield* files.writeFileString(damaged, text, { mode: 0o600 })
    yield* Effect.logWarning(`${said}; the journal as it was is in ${damaged}`)
  })

  const read = Effect.fnUntraced(function* (root: Store | undefined) {
    if (!(yield* files.exists(snapshotFile))) return undefined
    const snapshotText = yield* files.readFileString(snapshotFile)
    snapshotSize = snapshotText.length
    const stored = JSON.parse(snapshotText) as Snapshot
    if (stored.version !== VERSION || stored.network !== toBase64(networkId)) {
      return yield* Effect.die(new Error(`${folder} holds the ledger of another network or version`))
    }
    const text = (yield* files.exists(journalFile)) ? yield* files.readFileString(journalFile) : ""
    const whole = readLines(crypto, text, stored.ledgers.at(-1)!.n)
    if (whole.damage !== undefined) yield* onDamage(whole, text)
    if (whole.length < text.length) yield* files.writeFileString(journalFile, text.slice(0, whole.length))
    lines = whole.lines.length
    size = whole.length
    return replay(crypto, root, stored, whole.lines)
  })

  const end = yield* endOf(journalFile)
  const append = Effect.fnUntraced(function* (closed: ClosedLedger) {
    const line = withCheck(crypto, journalLine(closed))
    yield* (yield* end).writeAll(new TextEncoder().encode(line))
    lines += 1
    size += line.length
  })

  const journal: LedgerJournal = {
    read: (root) => Effect.orDie(read(root)),
    begin: (image) => Effect.orDie(snapshot(image)),
    append: (closed) => Effect.orDie(append(closed)),
    compact: (ledger) =>
      lines < linesMax && size < Math.max(BYTES_MAX, snapshotSize)
        ? Effect.void
        : Effect.orDie(snapshot(imageOf(ledger)))
  }
  return journal
})
