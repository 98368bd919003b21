// Checks the declared resources of a contract transaction: instructions, bytes, entries and keys within the network's
// limits, keys that a contract can use, and archived entries listed in order. Returns the diagnostic that the network
// would show, or undefined when all is well.
import { AssetType, EntryType } from "../engine/xdr/types.ts"
import { hasTtl, isDiskKey, keyString } from "../engine/state/LedgerKeys.ts"
import type { HostErrorCode, HostErrorType } from "../engine/host/HostError.ts"
import { errorCodes, errorTypes } from "../engine/host/HostError.ts"
import * as scv from "../engine/xdr/ScVal.ts"
import { codec, type DiagnosticEvent, type LedgerKey, type ScVal } from "../engine/xdr/Xdr.ts"
import { isAssetValid } from "./assetRules.ts"
import { isIssuer } from "./ClassicEvents.ts"
import type { LedgerContext } from "./Context.ts"
import type { Frame } from "./Frame.ts"
import { isPersistent } from "./operations/footprint.ts"
import { OperationType } from "./Wire.ts"

/** An error event outside of any contract, as validation reports it. */
export const diagnosticError = (
  type: HostErrorType,
  code: HostErrorCode,
  message: string,
  args: ReadonlyArray<bigint> = []
): DiagnosticEvent => {
  const data: ScVal = args.length === 0 ? scv.str(message) : scv.vec([scv.str(message), ...args.map(scv.u64)])
  const error = { type: 2, error: { type: errorTypes.indexOf(type), code: errorCodes.indexOf(code) } } as ScVal
  return {
    inSuccessfulContractCall: false,
    event: { ext: { v: 0 }, contractId: null, type: 2, body: { v: 0, v0: { topics: [scv.sym("error"), error], data } } }
  }
}

const keyProblem = (key: LedgerKey, keyBytesMax: number): DiagnosticEvent | undefined => {
  if (key.type === EntryType.trustLine) {
    const asset = key.trustLine.asset
    const bad =
      asset.type === AssetType.native ||
      (asset.type !== AssetType.poolShare && (!isAssetValid(asset) || isIssuer(key.trustLine.accountId, asset)))
    if (bad) return diagnosticError("Storage", "InvalidInput", "transaction footprint contains invalid trustline asset")
  } else if (key.type !== EntryType.account && !hasTtl(key)) {
    return diagnosticError("Storage", "UnexpectedType", "transaction footprint contains unsupported ledger key type", [
      BigInt(key.type)
    ])
  }
  const size = codec.LedgerKey.encode(key).length
  return size > keyBytesMax
    ? diagnosticError("Storage", "ExceededLimit", "transaction footprint key exceeds network config limit", [
        BigInt(size),
        BigInt(keyBytesMax)
      ])
    : undefined
}

const archivedProblem = (
  indices: ReadonlyArray<number>,
  readWrite: ReadonlyArray<LedgerKey>
): DiagnosticEvent | undefined => {
  let last = -1
  for (const index of indices) {
    if (index <= last)
      return diagnosticError("Storage", "InvalidInput", "archivedSorobanEntries must be sorted in ascending order")
    last = index
    const key = readWrite[index]
    if (key === undefined) {
      return diagnosticError("Storage", "InvalidInput", "archivedSorobanEntries index is out of bounds", [
        BigInt(index),
        BigInt(readWrite.length)
      ])
    }
    if (!isPersistent(key)) {
      const message = "archivedSorobanEntries index points to a non-persistent entry"
      return diagnosticError("Storage", "InvalidInput", message, [BigInt(index), BigInt(key.type)])
    }
  }
  return undefined
}

/** Entries that count against the limit of disk reads: classic ones and archived ones. */
const diskReads = (frame: Frame): number => {
  const {
    ext,
    resources: { footprint }
  } = frame.soroban!
  if (frame.tx.operations[0]!.body.type === OperationType.restoreFootprint) return footprint.readWrite.length
  const archived = ext.v === 1 ? ext.resourceExt.archivedSorobanEntries.length : 0
  return [...footprint.readOnly, ...footprint.readWrite].filter(isDiskKey).length + archived
}

/** The first limit that a contract transaction exceeds, or nothing. */
export const resourceProblem = (frame: Frame, ledger: LedgerContext): DiagnosticEvent | undefined => {
  const { limits } = ledger.settings
  const { ext, resources } = frame.soroban!
  const { readOnly, readWrite } = resources.footprint
  const over = (type: HostErrorType, have: number, max: number, message: string): DiagnosticEvent | undefined =>
    have > max ? diagnosticError(type, "ExceededLimit", message, [BigInt(have), BigInt(max)]) : undefined
  const config = "network config limit"
  const problem =
    over(
      "Budget",
      resources.instructions,
      limits.txInstructionsMax,
      `transaction instructions resources exceed ${config}`
    ) ??
    over(
      "Storage",
      resources.diskReadBytes,
      limits.txDiskReadBytesMax,
      `transaction byte-read resources exceed ${config}`
    ) ??
    over(
      "Storage",
      resources.writeBytes,
      limits.txWriteBytesMax,
      `transaction byte-write resources exceed ${config}`
    ) ??
    over(
      "Storage",
      readOnly.length + readWrite.length,
      limits.txFootprintEntriesMax,
      `the number of entries in transaction footprint exceeds the ${config}`
    ) ??
    over(
      "Storage",
      diskReads(frame),
      limits.txDiskReadEntriesMax,
      `transaction entry-disk-read resources exceed ${config}`
    ) ??
    over("Storage", readWrite.length, limits.txWriteEntriesMax, `transaction entry-write resources exceed ${config}`)
  if (problem !== undefined) return problem
  for (const key of [...readOnly, ...readWrite]) {
    const bad = keyProblem(key, limits.dataKeyBytesMax)
    if (bad !== undefined) return bad
  }
  return (
    over("Budget", frame.innerBytesLength, limits.txSizeBytesMax, `total transaction size exceeds ${config}`) ??
    (ext.v === 1 ? archivedProblem(ext.resourceExt.archivedSorobanEntries, readWrite) : undefined)
  )
}

export const duplicateProblem = (frame: Frame): DiagnosticEvent | undefined => {
  const { readOnly, readWrite } = frame.soroban!.resources.footprint
  const keys = new Set([...readOnly, ...readWrite].map(keyString))
  if (keys.size === readOnly.length + readWrite.length) return undefined
  const message =
    "Found duplicate key in the Soroban footprint; every key across read-only and " +
    "read-write footprints has to be unique."
  return diagnosticError("Storage", "InvalidInput", message)
}
