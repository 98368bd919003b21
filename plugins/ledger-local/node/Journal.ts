// The ledger on disk: a snapshot and a journal of the ledgers after it, one line of JSON each, in a folder of its own.
// A ledger is appended before anybody can see it, so what a client was told survives `kill -9` (not a power cut:
// nothing is synced). A torn last line is a ledger that never happened. When the journal has grown, a new snapshot is
// written beside the old one and takes its place in one rename; lines that the snapshot covers already are passed over
// when reading.
import { Effect, FileSystem, Path } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { EngineCrypto } from "../engine/EngineCrypto.ts"
import { Store } from "../engine/state/Store.ts"
import { fromLatin1, latin1, codec } from "../engine/xdr/Xdr.ts"
import { ZERO_HASH } from "./Header.ts"
import type { KeyString } from "../engine/state/LedgerKeys.ts"
import type { ClosedLedger, Ledger, LedgerState } from "./Ledger.ts"
import type { LedgerRecord, TransactionRecord } from "./History.ts"
import { fromBase64, toBase64 } from "./text.ts"
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
  readonly ledgers: ReadonlyArray<LedgerLine>
}

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

const snapshotOf = (ledger: Ledger): Snapshot => {
  const ledgers = [...ledger.history.from(0)]
  const oldest = ledgers[0]!
  return {
    version: VERSION,
    network: toBase64(ledger.options.networkId),
    feePool: oldest.feePoolStroops.toString(),
    lastOfferId: oldest.lastOfferId.toString(),
    previousHash: toBase64(oldest.previousHash),
    entries: [...ledger.store.export()].map(toBase64),
    ledgers: ledgers.map(ledgerLine)
  }
}

const replay = (crypto: EngineCrypto, snapshot: Snapshot, lines: ReadonlyArray<JournalLine>): LedgerState => {
  const store = Store.import(snapshot.entries.map(bytes))
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
    if (line.n !== ledgers.at(-1)!.sequence + 1) continue
    for (const entry of line.put ?? []) store.put(codec.LedgerEntry.decode(bytes(entry)))
    for (const key of [...(line.gone ?? []), ...(line.evicted ?? [])]) store.delete(keyOfText(key))
    add(line)
  }
  return { store, ledgers }
}

/** Complete lines only: what follows the last newline was being written when the process died. */
const parseLines = (text: string): ReadonlyArray<JournalLine> =>
  text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as JournalLine)

export interface Journal {
  /** What an earlier run left, or nothing in a fresh folder. */
  readonly read: Effect.Effect<LedgerState | undefined>
  /** Writes the first snapshot of a fresh ledger. */
  readonly begin: (ledger: Ledger) => Effect.Effect<void>
  /** Records a ledger before it is published. */
  readonly append: (closed: ClosedLedger) => Effect.Effect<void>
  /** Makes the journal short again when it is long; after a publish. */
  readonly compact: (ledger: Ledger) => Effect.Effect<void>
}

/** Opens the journal in `folder`, which is made when it is absent. A folder of another network is a defect. */
export const openJournal = Effect.fn("openJournal")(function* (
  folder: string,
  networkId: Uint8Array,
  linesMax = JOURNAL_LINES_MAX
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

  const snapshot = Effect.fnUntraced(function* (ledger: Ledger) {
    const fresh = path.join(folder, "snapshot.new.json")
    const text = JSON.stringify(snapshotOf(ledger))
    snapshotSize = text.length
    yield* files.writeFileString(fresh, text, { mode: 0o600 })
    yield* files.rename(fresh, snapshotFile)
    yield* files.writeFileString(journalFile, "", { mode: 0o600 })
    lines = 0
    size = 0
  })

  const read = Effect.gen(function* () {
    if (!(yield* files.exists(snapshotFile))) return undefined
    const snapshotText = yield* files.readFileString(snapshotFile)
    snapshotSize = snapshotText.length
    const stored = JSON.parse(snapshotText) as Snapshot
    if (stored.version !== VERSION || stored.network !== toBase64(networkId)) {
      return yield* Effect.die(new Error(`${folder} holds the ledger of another network or version`))
    }
    const text = (yield* files.exists(journalFile)) ? yield* files.readFileString(journalFile) : ""
    const parsed = parseLines(text)
    if (text !== "" && !text.endsWith("\n"))
      yield* files.writeFileString(journalFile, text.slice(0, text.lastIndexOf("\n") + 1))
    lines = parsed.length
    size = text.length
    return replay(crypto, stored, parsed)
  })

  const append = Effect.fnUntraced(function* (closed: ClosedLedger) {
    const line = `${JSON.stringify(journalLine(closed))}\n`
    yield* files.writeFileString(journalFile, line, { flag: "a" })
    lines += 1
    size += line.length
  })

  const journal: Journal = {
    read: Effect.orDie(read),
    begin: (ledger) => Effect.orDie(snapshot(ledger)),
    append: (closed) => Effect.orDie(append(closed)),
    compact: (ledger) =>
      lines < linesMax && size < Math.max(BYTES_MAX, snapshotSize) ? Effect.void : Effect.orDie(snapshot(ledger))
  }
  return journal
})
