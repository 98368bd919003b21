// InvokeHostFunction: meters reads and restores archived entries before the host runs, meters writes and events after
// it, and pays rent and events last, each with a separate result code, in the network's order. The host's changes are
// kept only when all of that fits.
import { HostFunctionType, PreimageType } from "../../engine/xdr/types.ts"
import { entrySizeBytes } from "../../engine/state/rentSize.ts"
import { eventsFeeStroops, rentFeeStroops } from "../../engine/state/Fees.ts"
import { invokeHostFunction as invoke } from "../../engine/host/Host.ts"
import type { HostFailure, HostSuccess } from "../../engine/host/HostResult.ts"
import { hasTtl, keyString } from "../../engine/state/LedgerKeys.ts"
import { codec, type DiagnosticEvent, type LedgerKey } from "../../engine/xdr/Xdr.ts"
import { isAssetValid } from "../assetRules.ts"
import { diagnosticError } from "../checkResources.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { archivedAccess, exceeded, hostFunctionFailed, ofFailure, unpaid } from "./operationDiagnostics.ts"
import { bytesProblem, lifeOf, restore, sizeProblem } from "./footprint.ts"

const Code = {
  success: 0,
  trapped: -2,
  resourceLimitExceeded: -3,
  entryArchived: -4,
  insufficientRefundableFee: -5
} as const
const result = (code: number) => inner(OperationType.invokeHostFunction, code)

/** The seed of the contract's random numbers: the hash of the ledger's transactions and the transaction's place. */
const operationSeed = ({ ledger, position }: ApplyContext): Uint8Array => {
  const seed = new Uint8Array(40)
  seed.set(ledger.transactionSetHash)
  new DataView(seed.buffer).setUint32(36, position)
  return ledger.crypto.sha256(seed)
}

/** Meters reads and restores marked entries; a code other than 0 fails the operation. */
const read = (context: ApplyContext): number => {
  const data = context.frame.soroban!
  const { footprint, diskReadBytes } = data.resources
  const marked = new Set(data.ext.v === 1 ? data.ext.resourceExt.archivedSorobanEntries : [])
  let bytes = 0
  const fail = (problem: DiagnosticEvent): number => {
    context.soroban.diagnostics = [problem]
    return Code.resourceLimitExceeded
  }
  const readKey = (key: LedgerKey, mayRestore: boolean): number => {
    const { life, entry } = lifeOf(context, key)
    if (entry === undefined || life === "expired") return 0
    if (life === "archived" && !mayRestore) {
      context.soroban.diagnostics = [archivedAccess(key)]
      return Code.entryArchived
    }
    const oversized = sizeProblem(context.ledger, key, entry)
    if (oversized !== undefined) return fail(oversized)
    if (life === "archived") restore(context, key, entry, true)
    if (life === "archived" || !hasTtl(key)) bytes += entrySizeBytes(entry)
    const beyond = bytesProblem("read", bytes, diskReadBytes)
    return beyond === undefined ? 0 : fail(beyond)
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

const byId = ([a]: readonly [string, LedgerKey], [b]: readonly [string, LedgerKey]): number => (a < b ? -1 : 1)

/** The node's diagnostic for the first entry that was written beyond a limit. */
const writeProblem = ({ frame, ledger }: ApplyContext, { changes, footprint }: HostSuccess) => {
  const { writeBytes } = frame.soroban!.resources
  let bytes = 0
  for (const [id, key] of footprint.readWrite.map((key) => [keyString(key), key] as const).sort(byId)) {
    const entry = changes.get(id)
    if (entry === undefined) continue
    bytes += entrySizeBytes(entry)
    const problem = sizeProblem(ledger, key, entry) ?? bytesProblem("write", bytes, writeBytes)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** The node's diagnostic for events, or a return value, over the limit. */
const eventsProblem = ({ ledger }: ApplyContext, { events, eventsBytes }: HostSuccess) => {
  const { txEventsBytesMax } = ledger.settings.limits
  if (eventsBytes <= txEventsBytesMax) return undefined
  let bytes = 0
  for (const event of events) {
    bytes += codec.ContractEvent.encode(event).length
    if (bytes > txEventsBytesMax) break
  }
  return bytes > txEventsBytesMax
    ? exceeded("total events size exceeds network config maximum", BigInt(bytes), BigInt(txEventsBytesMax))
    : exceeded(
        "return value pushes events size above network config maximum",
        BigInt(eventsBytes),
        BigInt(txEventsBytesMax)
      )
}

/** Meters the host's writes and events, and pays for them; a code other than 0 fails the operation. */
const settle = (context: ApplyContext, host: HostSuccess): number => {
  const { ledger, soroban, refundable } = context
  soroban.diagnostics = host.diagnostics
  const fail = (code: number, problem: DiagnosticEvent): number => {
    soroban.diagnostics = [...host.diagnostics, problem]
    return code
  }
  const problem = writeProblem(context, host) ?? eventsProblem(context, host)
  if (problem !== undefined) return fail(Code.resourceLimitExceeded, problem)
  const rent = rentFeeStroops(ledger.settings, host.rentChanges, ledger.ledgerSeq)
  const short = unpaid(refundable!, rent, eventsFeeStroops(ledger.settings, host.eventsBytes))
  return short === undefined ? 0 : fail(Code.insufficientRefundableFee, short)
}

/** A node's additional diagnostics when a call used more than it declared, or made more than the network allows. */
const overuse = ({ frame, ledger }: ApplyContext, host: HostFailure): ReadonlyArray<DiagnosticEvent> => {
  const { instructions } = frame.soroban!.resources
  const { txMemoryBytesMax } = ledger.settings.limits
  if (host.instructions > instructions)
    return [
      exceeded("operation instructions exceeds amount specified", BigInt(host.instructions), BigInt(instructions))
    ]
  if (host.memoryBytes <= txMemoryBytesMax) return []
  const message = "operation memory usage exceeds network config limit"
  return [exceeded(message, BigInt(host.memoryBytes), BigInt(txMemoryBytesMax))]
}

export const invokeHostFunction: OperationRules<24> = {
  threshold: Threshold.low,
  check: ({ invokeHostFunctionOp: { hostFunction } }, { ledger }) => {
    const { contractCodeBytesMax } = ledger.settings.limits
    if (hostFunction.type === HostFunctionType.uploadWasm && hostFunction.wasm.length > contractCodeBytesMax) {
      const message = "uploaded Wasm size exceeds network config maximum contract size"
      return { diagnostic: exceeded(message, BigInt(hostFunction.wasm.length), BigInt(contractCodeBytesMax)) }
    }
    // The host itself refuses an invalid asset in the later form.
    const preimage =
      hostFunction.type === HostFunctionType.createContract ? hostFunction.createContract.contractIdPreimage : undefined
    return preimage?.type === PreimageType.asset && !isAssetValid(preimage.fromAsset)
      ? { diagnostic: diagnosticError("Value", "InvalidInput", "invalid asset to create contract from") }
      : 0
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
      soroban.diagnostics = ofFailure(
        host.diagnostics,
        hostFunctionFailed(host.error.scError),
        ...overuse(context, host)
      )
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
