// simulateTransaction: runs a contract operation against the latest ledger and recommends the resources to declare and
// the fee to pay. Source, sequence number, signatures of the envelope, fees and bounds do not matter. The call always
// succeeds; a failure is a text in `error`. Authorization is enforced when entries are given and recorded when not,
// unless `authMode` sets the mode.
import { EntryType, EnvelopeType, MemoType } from "../engine/xdr/types.ts"
import { type BodyOf, type Operation, OperationType } from "../transaction/Wire.ts"
import { entrySizeBytes, rentSizeBytes } from "../engine/state/rentSize.ts"
import { Unsupported } from "../engine/host/HostError.ts"
import { invokeHostFunction } from "../engine/host/Host.ts"
import type { Access } from "../engine/host/HostTypes.ts"
import type { HostSuccess } from "../engine/host/HostResult.ts"
import { hasTtl, keyString, ttlKeyString } from "../engine/state/LedgerKeys.ts"
import { NotFetched } from "../engine/state/Store.ts"
import type { RentChange } from "../engine/state/Fees.ts"
import {
  codec,
  type LedgerEntry,
  type LedgerFootprint,
  type LedgerKey,
  type Transaction,
  type TransactionEnvelope
} from "../engine/xdr/Xdr.ts"
import { fromBase64, toBase64 } from "../node/text.ts"
import { withSequenceAges } from "../transaction/Accounts.ts"
import { accountOf } from "../transaction/Frame.ts"
import { isPersistent } from "../transaction/operations/footprint.ts"
import { hostErrorText } from "./hostErrorText.ts"
import { count, flag, formatProblem, object, type Params, text } from "./params.ts"
import { paddedInstructions, recommendedData } from "./simulationCost.ts"
import type { View } from "./View.ts"

// A transaction envelope from a request: base64, bounded, without trailing bytes.

/** Decoded size of an envelope at most. */
const ENVELOPE_BYTES_MAX = 1 << 20

/** The envelope with its bytes, or nothing when it is not one. */
export const decodeEnvelope = (
  text: string
): { readonly envelope: TransactionEnvelope; readonly bytes: Uint8Array } | undefined => {
  const bytes = fromBase64(text)
  if (bytes === undefined || bytes.length === 0 || bytes.length > ENVELOPE_BYTES_MAX) return undefined
  try {
    return { envelope: codec.TransactionEnvelope.decode(bytes), bytes }
  } catch {
    return undefined
  }
}

const authModes = ["", "enforce", "record", "record_allow_nonroot"] as const
type AuthMode = (typeof authModes)[number]

const failed = ({ latest }: View, error: string, more: object = {}) => ({
  error,
  ...more,
  latestLedger: latest.sequence
})

/**
 * An account as a host function finds it: its transaction's source has had its sequence number moved by then, which
 * makes an entry larger that never was a source. The network's simulation takes every account for one.
 */
const asWhenApplied = (entry: LedgerEntry): LedgerEntry => {
  if (entry.data.type !== EntryType.account) return entry
  const account = withSequenceAges(entry.data.account)
  return account === entry.data.account ? entry : { ...entry, data: { type: EntryType.account, account } }
}

/** 63 random bits. */
const randomNonce = (view: View) => (): bigint =>
  view.randomBytes(8).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n) & 0x7fff_ffff_ffff_ffffn

const stateChanges = (view: View, host: HostSuccess) =>
  host.footprint.readWrite.flatMap((key) => {
    const id = keyString(key)
    const [before, after] = [view.store.get(id), host.changes.get(id)]
    if (before === undefined && after === undefined) return []
    const encode = (entry: typeof before): string | null =>
      entry === undefined ? null : toBase64(codec.LedgerEntry.encode(entry))
    const type = before === undefined ? "created" : after === undefined ? "deleted" : "updated"
    return [{ type, key: toBase64(codec.LedgerKey.encode(key)), before: encode(before), after: encode(after) }]
  })

/** The data and fee of a RestoreFootprint operation that would bring `keys` back. */
const restoreData = (view: View, keys: ReadonlyArray<LedgerKey>) => {
  const { settings } = view.ledger.options
  const ledgerSeq = view.latest.sequence
  const newLiveUntil = ledgerSeq + settings.ttl.minPersistentLedgers - 1
  const rentChanges: Array<RentChange> = []
  let bytes = 0
  for (const key of keys) {
    const id = keyString(key)
    const entry = view.store.get(id)
    const ttl = hasTtl(key) ? view.store.get(ttlKeyString(view.ledger.options.crypto, id)) : undefined
    const liveUntil = ttl?.data.type === EntryType.ttl ? ttl.data.ttl.liveUntilLedgerSeq : 0
    if (entry === undefined || liveUntil >= ledgerSeq) continue
    bytes += entrySizeBytes(entry)
    const newSizeBytes = rentSizeBytes(settings, entry)
    rentChanges.push({
      persistent: true,
      isCode: key.type === EntryType.contractCode,
      oldSizeBytes: 0,
      newSizeBytes,
      oldLiveUntil: 0,
      newLiveUntil
    })
  }
  const footprint: LedgerFootprint = { readOnly: [], readWrite: [...keys] }
  return recommendedData({
    settings,
    ledgerSeq,
    body: { type: 26, restoreFootprintOp: { ext: { v: 0 } } },
    resources: { footprint, instructions: 0, diskReadBytes: bytes, writeBytes: bytes },
    archivedIndices: [],
    rentChanges,
    eventsBytes: 0
  })
}

const encodeData = (data: ReturnType<typeof restoreData>) => ({
  transactionData: toBase64(codec.SorobanTransactionData.encode(data)),
  minResourceFee: data.resourceFee.toString()
})

interface Choices {
  readonly mode: AuthMode
  readonly useUpgradedAuth: boolean
  /** Instructions added to those that the call took. */
  readonly leeway: number
}

const simulateInvoke = (view: View, tx: Transaction, operation: Operation, body: BodyOf<24>, choices: Choices) => {
  const { options } = view.ledger
  const { mode } = choices
  const { auth, hostFunction } = body.invokeHostFunctionOp
  const isEnforced = mode === "enforce" || (mode === "" && auth.length > 0)
  if (!isEnforced && auth.length > 0) return failed(view, `cannot set authMode to '${mode}' with an auth footprint`)
  const access: Access = isEnforced
    ? { mode: "enforce-recording-footprint" }
    : {
        mode: "record",
        randomNonce: randomNonce(view),
        useUpgradedAuth: choices.useUpgradedAuth,
        allowNonRoot: mode === "record_allow_nonroot"
      }
  const host = invokeHostFunction({
    store: view.store.observedAt(asWhenApplied),
    settings: options.settings,
    ledgerSeq: view.latest.sequence,
    closeTime: view.latest.closeTime,
    networkId: options.networkId,
    source: accountOf(operation.sourceAccount ?? tx.sourceAccount),
    hostFunction,
    auth,
    access,
    crypto: options.crypto,
    ...(options.contracts === undefined ? {} : { contracts: options.contracts }),
    instructionsMax: options.settings.limits.txInstructionsMax,
    randomSeed: view.randomBytes(32)
  })
  const events = host.diagnostics.map((event) => toBase64(codec.DiagnosticEvent.encode(event)))
  if (!host.ok) return failed(view, hostErrorText(host.error, host.diagnostics), events.length === 0 ? {} : { events })
  const signed = host.recordedAuth ?? auth
  const data = recommendedData({
    settings: options.settings,
    ledgerSeq: view.latest.sequence,
    body: { type: 24, invokeHostFunctionOp: { hostFunction, auth: [...signed] } },
    resources: {
      footprint: host.footprint,
      instructions: paddedInstructions(host.instructions, choices.leeway),
      diskReadBytes: host.diskReadBytes,
      writeBytes: host.writeBytes
    },
    archivedIndices: host.restoredIndices,
    rentChanges: host.rentChanges,
    eventsBytes: host.eventsBytes
  })
  const archived = host.restoredIndices.map((index) => host.footprint.readWrite[index]!)
  return {
    ...encodeData(data),
    ...(events.length === 0 ? {} : { events }),
    results: [
      {
        auth: signed.map((entry) => toBase64(codec.SorobanAuthorizationEntry.encode(entry))),
        xdr: toBase64(codec.ScVal.encode(host.returnValue))
      }
    ],
    ...(archived.length === 0 ? {} : { restorePreamble: encodeData(restoreData(view, archived)) }),
    stateChanges: stateChanges(view, host),
    latestLedger: view.latest.sequence
  }
}

const simulateExtend = (view: View, body: BodyOf<25>, footprint: LedgerFootprint) => {
  const { settings, crypto } = view.ledger.options
  const ledgerSeq = view.latest.sequence
  const newLiveUntil = ledgerSeq + body.extendFootprintTtlOp.extendTo
  const rentChanges = footprint.readOnly.flatMap((key): Array<RentChange> => {
    const id = keyString(key)
    const entry = view.store.get(id)
    const ttl = hasTtl(key) ? view.store.get(ttlKeyString(crypto, id)) : undefined
    const oldLiveUntil = ttl?.data.type === EntryType.ttl ? ttl.data.ttl.liveUntilLedgerSeq : 0
    if (entry === undefined || oldLiveUntil < ledgerSeq || oldLiveUntil >= newLiveUntil) return []
    const size = rentSizeBytes(settings, entry)
    return [
      {
        persistent: isPersistent(key),
        isCode: key.type === EntryType.contractCode,
        oldSizeBytes: size,
        newSizeBytes: size,
        oldLiveUntil,
        newLiveUntil
      }
    ]
  })
  const resources = {
    footprint: { readOnly: footprint.readOnly, readWrite: [] },
    instructions: 0,
    diskReadBytes: 0,
    writeBytes: 0
  }
  return recommendedData({ settings, ledgerSeq, body, resources, archivedIndices: [], rentChanges, eventsBytes: 0 })
}

export const simulateTransaction = (view: View, params: Params): object => {
  const format = formatProblem(params)
  if (format !== undefined) return failed(view, format)
  const decoded = decodeEnvelope(text(params, "transaction"))
  if (decoded === undefined) return failed(view, "Could not unmarshal transaction")
  const { envelope } = decoded
  if (envelope.type === EnvelopeType.v0) return failed(view, "Could not unmarshal transaction")
  const { tx } = envelope.type === EnvelopeType.feeBump ? envelope.feeBump.tx.innerTx.v1 : envelope.v1
  const [operation, second] = tx.operations
  if (operation === undefined || second !== undefined)
    return failed(view, "Transaction contains more than one operation")
  if (tx.memo.type !== MemoType.none)
    return failed(view, "Transaction contains a memo. Soroban transactions do not support memos.")
  const authMode = text(params, "authMode")
  const mode = authModes.find((known) => known === authMode)
  if (mode === undefined) {
    return failed(view, "optional 'authMode' must be one of enforce,record,record_allow_nonroot when included")
  }
  const choices = {
    mode,
    useUpgradedAuth: flag(params, "useUpgradedAuth"),
    leeway: count(object(params, "resourceConfig"), "instructionLeeway")
  }
  const { body } = operation
  if (tx.ext.v === 1) {
    const { readOnly, readWrite } = tx.ext.sorobanData.resources.footprint
    view.store.require([...readOnly, ...readWrite].filter(({ type }) => type !== EntryType.ttl).map(keyString))
  }
  try {
    if (body.type === OperationType.invokeHostFunction) return simulateInvoke(view, tx, operation, body, choices)
    if (body.type !== OperationType.extendFootprintTtl && body.type !== OperationType.restoreFootprint)
      return failed(view, `transaction contains unsupported operation type: ${body.type}`)
    if (mode !== "") return failed(view, "authMode can only be specified for InvokeHostFunction operations")
    if (tx.ext.v !== 1)
      return failed(
        view,
        "to perform a SimulateTransaction for ExtendFootprintTTL or RestoreFootprint operations, " +
          "SorobanTransactionData must be provided"
      )
    const { footprint } = tx.ext.sorobanData.resources
    const data =
      body.type === OperationType.extendFootprintTtl
        ? simulateExtend(view, body, footprint)
        : restoreData(view, footprint.readWrite)
    return { ...encodeData(data), latestLedger: view.latest.sequence }
  } catch (error) {
    if (error instanceof NotFetched) throw error
    if (error instanceof Unsupported) return failed(view, error.message)
    view.ledger.report("simulating a transaction", error)
    return failed(view, "HostError: Error(Context, InternalError)")
  }
}
