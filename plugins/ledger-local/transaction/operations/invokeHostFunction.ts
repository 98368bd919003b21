// InvokeHostFunction: reads are metered and archived entries brought back before the host runs, writes and events
// metered after it, and rent and events paid last, each with its own result code, in the network's order. What the host
// did is kept only when all of that fits.
import { HostFunctionType, PreimageType } from "../../engine/xdr/types.ts"
import { entrySizeBytes } from "../../engine/state/entrySize.ts"
import { eventsFeeStroops, rentFeeStroops } from "../../engine/state/Fees.ts"
import { invokeHostFunction as invoke } from "../../engine/host/Host.ts"
import type { HostSuccess } from "../../engine/host/HostResult.ts"
import { hasTtl, keyOfEntry } from "../../engine/state/LedgerKeys.ts"
import { codec, type LedgerKey } from "../../engine/xdr/Xdr.ts"
import { isAssetValid } from "../assetRules.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { archivedAccess, exceeded, hostFunctionFailed, ofFailure } from "./operationDiagnostics.ts"
import { isSizeAllowed, lifeOf, restore } from "./footprint.ts"

const Code = {
  success: 0,
  malformed: -1,
  trapped: -2,
  resourceLimitExceeded: -3,
  entryArchived: -4,
  insufficientRefundableFee: -5
} as const
const result = (code: number) => inner(OperationType.invokeHostFunction, code)

/** The seed of the contract's random numbers: the hash of the ledger's transactions and the transaction's place. */
export const operationSeed = ({ ledger, place }: ApplyContext): Uint8Array => {
  const seed = new Uint8Array(40)
  seed.set(ledger.transactionSetHash)
  new DataView(seed.buffer).setUint32(36, place)
  return ledger.crypto.sha256(seed)
}

/** Meters reads and restores what is marked; a code other than 0 fails the operation. */
const read = (context: ApplyContext): number => {
  const data = context.frame.soroban!
  const { footprint, diskReadBytes } = data.resources
  const marked = new Set(data.ext.v === 1 ? data.ext.resourceExt.archivedSorobanEntries : [])
  let bytes = 0
  const readKey = (key: LedgerKey, mayRestore: boolean): number => {
    const { life, entry } = lifeOf(context, key)
    if (entry === undefined || life === "expired") return 0
    if (life === "archived" && !mayRestore) {
      context.soroban.diagnostics = [archivedAccess(key)]
      return Code.entryArchived
    }
    if (!isSizeAllowed(context.ledger, key, entry)) return Code.resourceLimitExceeded
    if (life === "archived") restore(context, key, entry, true)
    if (life === "archived" || !hasTtl(key)) bytes += entrySizeBytes(entry)
    if (bytes <= diskReadBytes) return 0
    const message = "operation byte-read resources exceeds amount specified"
    context.soroban.diagnostics = [exceeded(message, BigInt(bytes), BigInt(diskReadBytes))]
    return Code.resourceLimitExceeded
  }
  for (const key of footprint.readOnly) {
    const code = readKey(key, false)
    if (code !== 0) return code
  }
  for (const [i, key] of footprint.readWrite.entries()) {
    const code = readKey(key, marked.has(i))
    if (code !== 0) return code
  }
  return 0
}

/** Pays rent and events out of the refundable fee. */
const pay = (context: ApplyContext, host: HostSuccess): number => {
  const { ledger, soroban } = context
  const refundable = context.refundable!
  const rent = rentFeeStroops(ledger.settings, host.rentChanges, ledger.ledgerSeq)
  const events = eventsFeeStroops(ledger.settings, host.eventsBytes)
  const [before, maximum] = [refundable.rentStroops, refundable.maximumStroops]
  if (refundable.consume(rent, events)) return 0
  const offered = "refundable resource fee was not sufficient to cover the"
  const [message, due, left] =
    before + rent > maximum
      ? [`${offered} ledger storage rent: {} > {}`, rent, maximum - before]
      : [`${offered} events fee after paying for ledger storage rent: {} > {}`, events, maximum - before - rent]
  soroban.diagnostics = [...host.diagnostics, exceeded(message, due, left)]
  return Code.insufficientRefundableFee
}

/** Meters what the host wrote and emitted, and pays for it. */
const settle = (context: ApplyContext, host: HostSuccess): number => {
  const { ledger, frame, soroban } = context
  const { writeBytes } = frame.soroban!.resources
  soroban.diagnostics = host.diagnostics
  if (host.writeBytes > writeBytes) {
    const message = "operation byte-write resources exceeds amount specified"
    soroban.diagnostics = [...host.diagnostics, exceeded(message, BigInt(host.writeBytes), BigInt(writeBytes))]
    return Code.resourceLimitExceeded
  }
  for (const { after } of host.changes.changes()) {
    if (after !== undefined && !isSizeAllowed(ledger, keyOfEntry(after), after)) return Code.resourceLimitExceeded
  }
  if (host.eventsBytes > ledger.settings.limits.txEventsBytesMax) return Code.resourceLimitExceeded
  return pay(context, host)
}

export const invokeHostFunction: OperationRules<24> = {
  threshold: Threshold.low,
  check: ({ invokeHostFunctionOp: { hostFunction } }, { ledger }) => {
    if (
      hostFunction.type === HostFunctionType.uploadWasm &&
      hostFunction.wasm.length > ledger.settings.limits.contractCodeBytesMax
    )
      return Code.malformed
    const preimage =
      hostFunction.type === HostFunctionType.createContract
        ? hostFunction.createContract.contractIdPreimage
        : hostFunction.type === HostFunctionType.createContractV2
          ? hostFunction.createContractV2.contractIdPreimage
          : undefined
    return preimage?.type === PreimageType.asset && !isAssetValid(preimage.fromAsset) ? Code.malformed : 0
  },
  apply: ({ invokeHostFunctionOp: { hostFunction, auth } }, context) => {
    const { ledger, frame, source, txn, soroban, restored } = context
    const unreadable = read(context)
    if (unreadable !== 0) return result(unreadable)
    const host = invoke({
      store: txn.store,
      settings: ledger.settings,
      ledgerSeq: ledger.ledgerSeq,
      closeTime: ledger.closeTime,
      networkId: ledger.networkId,
      source,
      hostFunction,
      auth,
      access: { mode: "enforce", footprint: frame.soroban!.resources.footprint },
      restored: new Set(restored.keys()),
      crypto: ledger.crypto,
      ...(ledger.contracts === undefined ? {} : { contracts: ledger.contracts }),
      instructionsMax: frame.soroban!.resources.instructions,
      randomSeed: operationSeed(context)
    })
    soroban.instructions = host.instructions
    if (!host.ok) {
      soroban.diagnostics = ofFailure(host.diagnostics, hostFunctionFailed(host.error.scError))
      return result(host.error.is("Budget", "ExceededLimit") ? Code.resourceLimitExceeded : Code.trapped)
    }
    const unpaid = settle(context, host)
    if (unpaid !== 0) return result(unpaid)
    host.changes.commit()
    const { returnValue, events } = host
    soroban.returnValue = returnValue
    soroban.events = events
    const success = ledger.crypto.sha256(
      codec.InvokeHostFunctionSuccessPreImage.encode({ returnValue, events: [...events] })
    )
    return inner(OperationType.invokeHostFunction, Code.success, { success })
  }
}
