// Ledger streams as stellar-core publishes them: record-marked LedgerCloseMeta frames, one file per test of its own
// suite. Finds them in a folder (unpacked, or as `streams.tar.gz`, which is unpacked once into a temporary folder)
// together with the index that names each file. Without streams the caller prints a message and skips.
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { xdr } from "@stellar/stellar-sdk/base"

type LedgerCloseMeta = Extract<xdr.LedgerCloseMetaWire, { v: 2 }>["v2"]

export interface StreamFile {
  readonly path: string
  /** The suite: the folder's name. */
  readonly suite: string
  /** The test's name, or the file's if the index does not contain it. */
  readonly name: string
  /** The family that a table groups by: the name up to its first hyphen. */
  readonly family: string
}

/** The folder of the shared streams. */
export const sharedStreams = new URL("../../../shared/data/ledger-streams", import.meta.url).pathname

type Index = Readonly<Record<string, Readonly<Record<string, string>>>>

const readIndex = (folder: string): Index => {
  const path = join(folder, "index.json")
  if (!existsSync(path)) return {}
  return JSON.parse(readFileSync(path, "utf8")) as Index
}

const unpacked = (folder: string): string => {
  const archive = ["streams.tar.gz", "streams.tgz"].map((name) => join(folder, name)).find(existsSync)
  if (archive === undefined) return folder
  const { size, mtimeMs } = statSync(archive)
  const target = join(tmpdir(), `tollkeeper-streams-${size}-${Math.floor(mtimeMs)}`)
  if (existsSync(target)) return target
  const fresh = mkdtempSync(`${target}-`)
  execFileSync("tar", ["-xzf", archive, "-C", fresh])
  try {
    renameSync(fresh, target)
  } catch {
    // Another run was faster; its copy is the same.
    rmSync(fresh, { recursive: true, force: true })
  }
  return target
}

const xdrFiles = (folder: string): Array<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? xdrFiles(path) : entry.name.endsWith(".xdr") ? [path] : []
  })

/** Every stream below `folder`; undefined if the folder does not exist or is empty. */
export const findStreams = (folder: string): ReadonlyArray<StreamFile> | undefined => {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) return undefined
  const root = unpacked(folder)
  const index: Index = { ...readIndex(root), ...readIndex(folder) }
  const files = xdrFiles(root).map((path): StreamFile => {
    const [suite, file] = path.split("/").slice(-2) as [string, string]
    const id = file.replace(/\.xdr$/, "")
    const local = readIndex(join(path, "..")) as unknown as Readonly<Record<string, string>>
    const name = index[suite]?.[id] ?? local[id] ?? id
    return { path, suite, name, family: name.split("-")[0]! }
  })
  return files.length === 0 ? undefined : files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

type Envelope = xdr.TransactionEnvelopeWire
type Processing = Omit<LedgerCloseMeta["txProcessing"][number], "ext" | "postTxApplyFeeProcessing"> & {
  readonly postTxApplyFeeProcessing: ReadonlyArray<xdr.LedgerEntryChangeWire>
}

/** An envelope with its place in the transaction set. */
export interface Placed {
  readonly envelope: Envelope
  /** The price per operation of its part of the set; undefined means the whole bid. */
  readonly baseFee: bigint | undefined
  /** Position of its stage in the parallel phase; undefined in the classic phase. */
  readonly stage: number | undefined
}

/** One closed ledger in one shape, for every version of its meta. */
export interface Ledger {
  readonly header: xdr.LedgerHeaderWire
  readonly envelopes: ReadonlyArray<Placed>
  readonly processing: ReadonlyArray<Processing>
  readonly upgrades: ReadonlyArray<{ readonly changes: ReadonlyArray<xdr.LedgerEntryChangeWire> }>
  readonly evicted: ReadonlyArray<xdr.LedgerKeyWire>
  /** The transaction set as XDR, which the header's hash covers; absent for sets of the first kind. */
  readonly setBytes: Uint8Array | undefined
  /**
   * The average size of contract state that determines the price of writing, as the node reports it with the ledger.
   */
  readonly stateSizeBytes: bigint | undefined
}

const envelopesOf = (set: Extract<xdr.GeneralizedTransactionSetWire, { v: 1 }>): Array<Placed> =>
  set.v1TxSet.phases.flatMap((phase): Array<Placed> =>
    phase.v === 0
      ? phase.v0Components.flatMap(({ txsMaybeDiscountedFee: { baseFee, txs } }) =>
          txs.map((envelope) => ({ envelope, baseFee: baseFee ?? undefined, stage: undefined }))
        )
      : phase.parallelTxsComponent.executionStages.flatMap((clusters, stage) =>
          clusters
            .flat()
            .map((envelope) => ({ envelope, baseFee: phase.parallelTxsComponent.baseFee ?? undefined, stage }))
        )
  )

const ledgerOf = (meta: xdr.LedgerCloseMetaWire): Ledger => {
  const closed = meta.v === 0 ? meta.v0 : meta.v === 1 ? meta.v1 : meta.v2
  return {
    header: closed.ledgerHeader.header,
    envelopes:
      "v1TxSet" in closed.txSet
        ? envelopesOf(closed.txSet)
        : closed.txSet.txs.map((envelope) => ({ envelope, baseFee: undefined, stage: undefined })),
    processing: closed.txProcessing.map((tx) => ({ postTxApplyFeeProcessing: [], ...tx })),
    upgrades: closed.upgradesProcessing,
    evicted: meta.v === 2 ? meta.v2.evictedKeys : [],
    setBytes: "v1TxSet" in closed.txSet ? xdr.GeneralizedTransactionSet.schema.encode(closed.txSet) : undefined,
    stateSizeBytes: meta.v === 2 ? meta.v2.totalByteSizeOfLiveSorobanState : undefined
  }
}

/** The protocol at the end of a stream. */
export const lastProtocol = (file: StreamFile): number | undefined => {
  let last: number | undefined
  for (const { header } of readLedgers(file)) last = header.ledgerVersion
  return last
}

/** The ledgers of one stream, in order. */
export function* readLedgers(file: StreamFile): Generator<Ledger> {
  const bytes = readFileSync(file.path)
  let at = 0
  while (at < bytes.length) {
    const length = bytes.readUInt32BE(at) & 0x7fffffff
    yield ledgerOf(xdr.LedgerCloseMeta.schema.decode(new Uint8Array(bytes.subarray(at + 4, at + 4 + length))))
    at += 4 + length
  }
}
