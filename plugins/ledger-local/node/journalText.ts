// The text format of the ledger's folder: a snapshot, and a line of JSON for every ledger after it, each with a
// checksum. Encodes and decodes; `LedgerJournal.ts` reads and writes the files.
import type { EngineCrypto } from "../engine/host/Random.ts"
import { Store } from "../engine/state/Store.ts"
import { fromLatin1, latin1, codec } from "../engine/xdr/Xdr.ts"
import { ZERO_HASH } from "./Header.ts"
import type { KeyString } from "../engine/state/LedgerKeys.ts"
import type { ClosedLedger, Ledger, LedgerImage, LedgerState } from "./Ledger.ts"
import type { LedgerRecord, TransactionRecord } from "./History.ts"
import { fromBase64, toBase64, toHex } from "./text.ts"
import { emptyHashes } from "./transactionSet.ts"

const VERSION = 1

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
    /** Absent until the first offer. */
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
  /** On a fork: keys of deleted entries of its first state. */
  readonly gone?: ReadonlyArray<string>
  readonly ledgers: ReadonlyArray<LedgerLine>
}

/** The parts of a snapshot. */
export type StoredImage = Pick<LedgerImage, "networkId" | "store" | "ledgers">

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

/** Decodes a ledger from its line; fields that an empty ledger omits follow from the previous ledger. */
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

export const journalLine = ({ record, changes }: ClosedLedger): JournalLine => {
  const put = changes.flatMap(({ after }) => (after === undefined ? [] : [toBase64(codec.LedgerEntry.encode(after))]))
  const evicted = new Set(record.evicted)
  const gone = changes.flatMap(({ key, after }) => (after === undefined && !evicted.has(key) ? [keyText(key)] : []))
  return { ...ledgerLine(record), ...(put.length === 0 ? {} : { put }), ...(gone.length === 0 ? {} : { gone }) }
}

export const snapshotOf = ({ ledgers, networkId, store }: StoredImage): Snapshot => {
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

export const imageOf = ({ history, options, store }: Ledger): StoredImage => ({
  networkId: options.networkId,
  store,
  ledgers: [...history.from(0)]
})

/** The intact part of a journal. */
interface Whole {
  readonly lines: ReadonlyArray<JournalLine>
  /** Characters of the text up to the end of the last whole line. */
  readonly length: number
  /** The damage of the line after that, if it is damaged. */
  readonly damage: string | undefined
}

const CHECK_CHARACTERS = 16
const CHECKED = /^,"c":"([0-9a-f]{16})"\}$/
const CHECKED_END = ',"c":""}'.length + CHECK_CHARACTERS

const checkOf = (crypto: EngineCrypto, json: string): string =>
  toHex(crypto.sha256(new TextEncoder().encode(json))).slice(0, CHECK_CHARACTERS)

/** JSON with a checksum of itself at its end. */
export const withCheck = (crypto: EngineCrypto, value: JournalLine | Snapshot): string => {
  const json = JSON.stringify(value)
  return `${json.slice(0, -1)},"c":"${checkOf(crypto, json)}"}`
}

/** Parses a text after verifying its checksum; undefined when either fails. Earlier versions wrote no checksum. */
const withoutCheck = (crypto: EngineCrypto, text: string): unknown => {
  const [end, check] = CHECKED.exec(text.slice(-CHECKED_END)) ?? []
  const json = end === undefined ? text : `${text.slice(0, -CHECKED_END)}}`
  if (end !== undefined && checkOf(crypto, json) !== check) return undefined
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const readLine = (crypto: EngineCrypto, text: string): JournalLine | undefined => {
  const line = withoutCheck(crypto, text) as Partial<JournalLine> | null | undefined
  return typeof line?.n === "number" && typeof line.hash === "string" ? (line as JournalLine) : undefined
}

export const readSnapshot = (crypto: EngineCrypto, text: string): Snapshot | undefined => {
  const snapshot = withoutCheck(crypto, text) as Partial<Snapshot> | null | undefined
  return typeof snapshot?.version === "number" ? (snapshot as Snapshot) : undefined
}

/**
 * The lines after the ledger `latest`, in order and without gaps. A rest after the last newline was being written when
 * the process died, and never happened; lines that the snapshot covers are skipped.
 */
export const readLines = (crypto: EngineCrypto, text: string, latest: number): Whole => {
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

export const replay = (
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

/** Whether a snapshot is of this network, and as this version writes it. */
export const isOf = ({ network, version }: Snapshot, networkId: Uint8Array): boolean =>
  version === VERSION && network === toBase64(networkId)
