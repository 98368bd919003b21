// Replays one stream: for each transaction the state before it, our own execution, and the comparison with what the real
// node wrote: result code, success hash (return value and events), every changed entry with its TTL, and the fee charged.
import { xdr } from "@stellar/stellar-sdk/base"
import { eventsFeeStroops, minimumInclusionFeeStroops, nonRefundableFeeStroops, rentFeeStroops } from "../../plugins/ledger-local/engine/Fees.ts"
import { Unsupported } from "../../plugins/ledger-local/engine/HostError.ts"
import { invokeHostFunction } from "../../plugins/ledger-local/engine/Host.ts"
import type { ContractRuntime, EngineCrypto, HostResult, HostSuccess } from "../../plugins/ledger-local/engine/HostTypes.ts"
import { keyOfEntry, keyString } from "../../plugins/ledger-local/engine/LedgerKeys.ts"
import type { Store } from "../../plugins/ledger-local/engine/Store.ts"
import { codec, equalBytes, latin1, publicKey, type TransactionEnvelope } from "../../plugins/ledger-local/engine/Xdr.ts"
import { type EntryChange, LedgerState } from "./LedgerState.ts"
import type { Report, Verdict } from "./Report.ts"
import { type Ledger, readLedgers, type StreamFile } from "./streams.ts"

export interface ReplayOptions {
  readonly crypto: EngineCrypto
  readonly networkId: Uint8Array
  readonly contracts: ContractRuntime
}

const ACCOUNTED_LIMIT_CODES = new Map([[-3, "a resource limit"], [-4, "an archived entry"], [-5, "the refundable fee"]])

const hashOf = ({ crypto, networkId }: ReplayOptions, envelope: TransactionEnvelope): string =>
  latin1(
    crypto.sha256(
      codec.TransactionSignaturePayload.encode({
        networkId,
        taggedTransaction:
          envelope.type === 5 ? { type: 5, feeBump: envelope.feeBump.tx } : { type: 2, tx: (envelope as Extract<TransactionEnvelope, { type: 2 }>).v1.tx }
      })
    )
  )

/** Real changes by key: the entry's XDR, or null when removed. */
const realChanges = (changes: ReadonlyArray<EntryChange>): Map<string, string | null> => {
  const result = new Map<string, string | null>()
  for (const change of changes) {
    if (change.type === 3) continue
    if (change.type === 2) result.set(keyString(change.removed), null)
    else {
      const entry = change.type === 0 ? change.created : change.type === 1 ? change.updated : change.restored
      result.set(keyString(keyOfEntry(entry)), latin1(codec.LedgerEntry.encode(entry)))
    }
  }
  return result
}

const ownChanges = (store: Store): Map<string, string | null> => {
  const result = new Map<string, string | null>()
  for (const { key, before, after } of store.changes()) {
    if (after !== undefined) result.set(key, latin1(codec.LedgerEntry.encode(after)))
    else if (before !== undefined) result.set(key, null)
  }
  return result
}

const kinds = ["account", "trustline", "offer", "data", "claimable balance", "pool", "contract data", "code", "config", "ttl"]

const compareChanges = (real: Map<string, string | null>, own: Map<string, string | null>): string | undefined => {
  const differences: Array<string> = []
  const kind = (key: string): string => kinds[key.charCodeAt(3)] ?? "?"
  for (const [key, entry] of real) if (own.get(key) !== entry) differences.push(`${own.has(key) ? "other" : "missing"} ${kind(key)}`)
  for (const key of own.keys()) if (!real.has(key)) differences.push(`extra ${kind(key)}`)
  return differences.length === 0 ? undefined : differences.join(", ")
}

interface Job {
  readonly options: ReplayOptions
  readonly state: LedgerState
  readonly ledger: Ledger
  readonly envelope: TransactionEnvelope
  readonly processing: Ledger["processing"][number]
}

const unsupported = (reason: string): Verdict => ({ kind: "unsupported", reason })
const different = (what: string): Verdict => ({ kind: "different", what })

const compareFee = (job: Job, result: HostSuccess): string | undefined => {
  const { envelope, state, ledger, processing } = job
  const inner = envelope.type === 5 ? envelope.feeBump.tx.innerTx.v1 : (envelope as Extract<TransactionEnvelope, { type: 2 }>).v1
  if (inner.tx.ext.v !== 1) return undefined
  const size = codec.TransactionEnvelope.encode({ type: 2, v1: inner }).length
  const fee =
    minimumInclusionFeeStroops(state.settings, inner.tx.operations.length, envelope.type === 5) +
    nonRefundableFeeStroops(state.settings, inner.tx.ext.sorobanData.resources, size) +
    rentFeeStroops(state.settings, result.rentChanges, ledger.header.ledgerSeq) +
    eventsFeeStroops(state.settings, result.eventsBytes)
  const real = processing.result.result.feeCharged
  return fee === real ? undefined : `fee ${fee} instead of ${real}`
}

const judge = (job: Job, result: HostResult, real: xdr.InvokeHostFunctionResultWire, changes: ReadonlyArray<EntryChange>): Verdict => {
  if ((real.code === 0) !== result.ok) {
    const limit = ACCOUNTED_LIMIT_CODES.get(real.code)
    if (limit !== undefined && result.ok) return unsupported(`failed by ${limit}, which the host alone does not judge`)
    return different(`result code ${real.code}, ours ${result.ok ? "success" : `${result.error.label} ${result.error.message}`}`)
  }
  if (!result.ok || real.code !== 0) return { kind: "identical", feeCompared: false }
  const preimage = codec.InvokeHostFunctionSuccessPreImage.encode({ returnValue: result.returnValue, events: [...result.events] })
  if (!equalBytes(job.options.crypto.sha256(preimage), real.success)) return different("return value or events")
  const entries = compareChanges(realChanges(changes), ownChanges(result.changes))
  if (entries !== undefined) return different(entries)
  if (!job.state.knowsFees) return { kind: "identical", feeCompared: false }
  const fee = compareFee(job, result)
  return fee === undefined ? { kind: "identical", feeCompared: true } : different(fee)
}

const replayTransaction = (job: Job): Verdict => {
  const { envelope, processing, state, ledger, options } = job
  if (envelope.type === 0) return unsupported("a version 0 envelope")
  const tx = envelope.type === 5 ? envelope.feeBump.tx.innerTx.v1.tx : envelope.v1.tx
  const operation = tx.operations[0]
  if (operation?.body.type !== 24) return unsupported("a classic operation")
  const outcome = processing.result.result.result
  const inner = "innerResultPair" in outcome ? outcome.innerResultPair.result.result : outcome
  const results = "results" in inner ? inner.results : undefined
  const own = results?.[0]
  if (own?.code !== 0 || own.tr.type !== 24) return unsupported("not applied by the real node")
  if (tx.ext.v !== 1) return unsupported("no contract data in the transaction")
  const apply = processing.txApplyProcessing
  if (apply.v !== 4) return unsupported(`meta v${apply.v}`)
  const changes = apply.v4.operations.flatMap((meta) => meta.changes)
  const account = operation.sourceAccount ?? tx.sourceAccount
  const { hostFunction, auth } = operation.body.invokeHostFunctionOp
  try {
    const result = invokeHostFunction({
      store: state.store,
      settings: state.settings,
      ledgerSeq: ledger.header.ledgerSeq,
      closeTime: ledger.header.scpValue.closeTime,
      networkId: options.networkId,
      source: publicKey(account.type === 0 ? account.ed25519 : account.med25519.ed25519),
      hostFunction,
      auth,
      access: { mode: "enforce", footprint: tx.ext.sorobanData.resources.footprint },
      crypto: options.crypto,
      contracts: options.contracts
    })
    return judge(job, result, own.tr.invokeHostFunctionResult, changes)
  } catch (error) {
    if (error instanceof Unsupported) return unsupported(error.what)
    throw error
  }
}

const operationChanges = (processing: Ledger["processing"][number]): ReadonlyArray<EntryChange> => {
  const meta = processing.txApplyProcessing
  return meta.v === 4 ? meta.v4.operations.flatMap(({ changes }) => changes) : []
}

const isContractTransaction = (envelope: TransactionEnvelope): boolean =>
  envelope.type !== 0 && (envelope.type === 5 ? envelope.feeBump.tx.innerTx.v1 : envelope.v1).tx.ext.v === 1

/** Replays a stream into the report. */
export const replayStream = (file: StreamFile, options: ReplayOptions, report: Report): void => {
  report.stream(file.family)
  const state = new LedgerState()
  for (const ledger of readLedgers(file)) {
    state.follow(ledger.header)
    const envelopes = new Map(ledger.envelopes.map((envelope) => [envelope.type === 0 ? "" : hashOf(options, envelope), envelope]))
    for (const { feeProcessing } of ledger.processing) {
      state.seed(feeProcessing)
      state.apply(feeProcessing)
    }
    let isParallelPhase = false
    for (const [i, processing] of ledger.processing.entries()) {
      const changes = operationChanges(processing)
      const envelope = envelopes.get(latin1(processing.result.transactionHash))
      if (!isParallelPhase) {
        // Classic transactions take their sequence numbers one by one, contract transactions all before the first of them.
        isParallelPhase = envelope !== undefined && isContractTransaction(envelope)
        for (const { txApplyProcessing: meta } of isParallelPhase ? ledger.processing.slice(i) : [processing]) {
          if (meta.v !== 4) continue
          state.seed(meta.v4.txChangesBefore)
          state.apply(meta.v4.txChangesBefore)
        }
      }
      state.seed(changes)
      const where = `${file.suite}/${file.name} ledger ${ledger.header.ledgerSeq}`
      const verdict =
        envelope === undefined ? unsupported("a version 0 envelope") : replayTransaction({ options, state, ledger, envelope, processing })
      report.add(file.family, where, verdict)
      state.apply(changes)
      const meta = processing.txApplyProcessing
      if (meta.v === 4) state.apply(meta.v4.txChangesAfter)
    }
    for (const { postTxApplyFeeProcessing } of ledger.processing) state.apply(postTxApplyFeeProcessing)
    for (const { changes } of ledger.upgrades) {
      state.seed(changes)
      state.apply(changes)
    }
  }
}
