// Replays one stream through the embedded ledger's complete application of a transaction: fee, preparation, operations,
// refund. Each phase of each transaction runs on the real state before it, and its changes are compared with the real
// node's, and so is the whole result: codes, success hash (return value and events) and the fee charged.
import { Unsupported } from "../../plugins/ledger-local/engine/host/HostError.ts"
import type { EngineCrypto } from "../../plugins/ledger-local/engine/host/Random.ts"
import type { ContractRuntime } from "../../plugins/ledger-local/engine/host/HostTypes.ts"
import { keyOfEntry, keyString } from "../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { symbolText } from "../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { valueText } from "../../plugins/ledger-local/rpc/hostErrorText.ts"
import {
  codec,
  type DiagnosticEvent,
  equalBytes,
  latin1,
  type LedgerFootprint
} from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  type Applying,
  chargeFee,
  prepare,
  refund,
  run
} from "../../plugins/ledger-local/transaction/applyTransaction.ts"
import type { LedgerContext } from "../../plugins/ledger-local/transaction/Context.ts"
import { type Frame, frameOf } from "../../plugins/ledger-local/transaction/Frame.ts"
import { resultSetBytes } from "../../plugins/ledger-local/node/transactionSet.ts"
import { TxCode } from "../../plugins/ledger-local/transaction/Wire.ts"
import { type EntryChange, LedgerState } from "./LedgerState.ts"
import { ParallelTtl } from "./ParallelTtl.ts"
import type { Report, Verdict } from "./Report.ts"
import { type Ledger, type Placed, readLedgers, type StreamFile } from "./streams.ts"

export interface ReplayOptions {
  readonly crypto: EngineCrypto
  readonly networkId: Uint8Array
  readonly contracts: ContractRuntime
  /** The report of `contracts` about the host functions of a transaction; emptied before each. */
  readonly hostCalls?: Set<string>
}

/** Protocols that the engine implements: those since contract transactions are applied in parallel. */
const isFollowed = (protocolVersion: number): boolean => protocolVersion >= 23

/**
 * Real or own changes by key: the entry's XDR, or null when removed; and, with a separate mark, the entries before the
 * change.
 */
const byKey = (changes: ReadonlyArray<EntryChange>): Map<string, string | null> => {
  const result = new Map<string, string | null>()
  for (const change of changes) {
    if (change.type === 2) result.set(keyString(change.removed), null)
    else if (change.type === 3) {
      const key = BEFORE + keyString(keyOfEntry(change.state))
      if (!result.has(key)) result.set(key, latin1(codec.LedgerEntry.encode(change.state)))
    } else {
      const entry = change.type === 0 ? change.created : change.type === 1 ? change.updated : change.restored
      result.set(keyString(keyOfEntry(entry)), `${change.type} ${latin1(codec.LedgerEntry.encode(entry))}`)
    }
  }
  return result
}

/** Marks an entry's state before a change; no key's XDR begins like this. */
const BEFORE = "before "

/** A ledger whose set was dropped, by the extension of its value. */
const STELLAR_VALUE_EMPTY_TX_SET = 2

/** Contract calls are metered by the rules of this protocol and later. */
const METERED_SINCE = 26

const kinds = [
  "account",
  "trustline",
  "offer",
  "data",
  "claimable balance",
  "pool",
  "contract data",
  "code",
  "config",
  "ttl"
]

const compareChanges = (
  phase: string,
  real: ReadonlyArray<EntryChange>,
  own: ReadonlyArray<EntryChange>
): Array<string> => {
  const [theirs, ours] = [byKey(real), byKey(own)]
  const kind = (key: string): string =>
    key.startsWith(BEFORE)
      ? `image before of ${kinds[key.charCodeAt(BEFORE.length + 3)] ?? "?"}`
      : (kinds[key.charCodeAt(3)] ?? "?")
  return [
    ...[...theirs]
      .filter(([key, entry]) => ours.get(key) !== entry)
      .map(([key]) => `${phase}: ${ours.has(key) ? "other" : "missing"} ${kind(key)}`),
    ...[...ours.keys()].filter((key) => !theirs.has(key)).map((key) => `${phase}: extra ${kind(key)}`)
  ]
}

/** One transaction while its ledger is replayed. */
interface Item {
  readonly placed: Placed | undefined
  /** Its place in the order of application, from 0. */
  readonly place: number
  readonly frame: Frame | undefined
  readonly processing: Ledger["processing"][number]
  readonly differences: Array<string>
  applying: Applying | undefined
  unsupported: string | undefined
}

/** The real changes around and by the operations, for every version of the meta. */
const metaOf = ({ processing: { txApplyProcessing: meta } }: Item) => {
  switch (meta.v) {
    case 0:
      return { txChangesBefore: [], operations: meta.operations, txChangesAfter: [] }
    case 1:
      return { txChangesBefore: meta.v1.txChanges, operations: meta.v1.operations, txChangesAfter: [] }
    case 2:
      return meta.v2
    case 3:
      return meta.v3
    case 4:
      return meta.v4
  }
}

const operationChanges = (item: Item): ReadonlyArray<EntryChange> =>
  metaOf(item).operations.flatMap(({ changes }) => changes)

const whyUnsupported = (item: Item, protocolVersion: number): string | undefined => {
  if (!isFollowed(protocolVersion)) return `protocol ${protocolVersion}`
  if (item.placed === undefined || item.frame === undefined) return undefined
  if (item.processing.result.result.result.code === TxCode.internalError)
    return "an internal error that the test provoked in the node"
  return undefined
}

/** The node's measurements, which are not effects of a contract. */
const isMeasurement = ({ event }: DiagnosticEvent): boolean => symbolText(event.body.v0.topics[0]) === "core_metrics"

const reported = (events: ReadonlyArray<DiagnosticEvent>): ReadonlyArray<DiagnosticEvent> =>
  events.filter((event) => !isMeasurement(event))

const words = (event: DiagnosticEvent | undefined): string => {
  if (event === undefined) return "nothing"
  const { topics, data } = event.event.body.v0
  return [...topics, data].map(valueText).join(" ").slice(0, 160)
}

/** The first textual difference between the two nodes' diagnostics of a transaction; undefined if there is none. */
const firstOtherWords = ({ processing: { txApplyProcessing: real }, applying }: Item): string | undefined => {
  if (real.v !== 4) return "no diagnostic events"
  const theirs = reported(real.v4.diagnosticEvents)
  const ours = reported([...applying!.diagnostics, ...applying!.outcome.diagnostics])
  const bytes = (event: DiagnosticEvent | undefined): string =>
    event === undefined ? "" : latin1(codec.DiagnosticEvent.encode(event))
  for (let i = 0; i < Math.max(theirs.length, ours.length); i++)
    if (bytes(theirs[i]) !== bytes(ours[i])) return `${words(ours[i])} instead of ${words(theirs[i])}`
  return undefined
}

/** A transaction's id in a result: the hash of its outer envelope. */
const hashOf = (
  { crypto, networkId }: Pick<ReplayOptions, "crypto" | "networkId">,
  { envelope }: Placed
): string | undefined => {
  if (envelope.type === 0) return undefined
  const taggedTransaction =
    envelope.type === 5 ? { type: 5 as const, feeBump: envelope.feeBump.tx } : { type: 2 as const, tx: envelope.v1.tx }
  return latin1(crypto.sha256(codec.TransactionSignaturePayload.encode({ networkId, taggedTransaction })))
}

const sameResult = (item: Item, own: ReturnType<typeof refund>): string | undefined => {
  const real = item.processing.result.result
  if (equalBytes(codec.TransactionResult.encode(real), codec.TransactionResult.encode(own.result))) return undefined
  if (
    real.feeCharged !== own.result.feeCharged &&
    JSON.stringify(real.result, bigints) === JSON.stringify(own.result.result, bigints)
  ) {
    return `fee ${own.result.feeCharged} instead of ${real.feeCharged}`
  }
  return (
    `result ${JSON.stringify(own.result.result, bigints).slice(0, 160)} instead of ` +
    `${JSON.stringify(real.result, bigints).slice(0, 160)}`
  )
}

/** The return value and events of a call, from a meta version that contains them; the success hash also covers both. */
const compareEvents = (
  { processing: { txApplyProcessing: real } }: Item,
  { meta: own }: ReturnType<typeof refund>
): Array<string> => {
  if (real.v !== 4 || own.v !== 4) return []
  const returned = (meta: typeof own): string => JSON.stringify(meta.v4.sorobanMeta?.returnValue ?? null, inFull)
  const emitted = (meta: typeof own): string =>
    JSON.stringify(
      meta.v4.operations.map(({ events }) => events),
      inFull
    )
  return [
    ...(returned(real) === returned(own) ? [] : ["another return value"]),
    ...(emitted(real) === emitted(own) ? [] : ["other events"]),
    ...(JSON.stringify(real.v4.events, inFull) === JSON.stringify(own.v4.events, inFull) ? [] : ["other fee events"])
  ]
}

const inFull = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? String(value) : value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value

const bigints = (_: string, value: unknown): unknown =>
  typeof value === "bigint"
    ? String(value)
    : value instanceof Uint8Array
      ? Buffer.from(value).toString("hex").slice(0, 8)
      : value

class LedgerReplay {
  readonly #state: LedgerState
  readonly #ledger: Ledger
  readonly #context: LedgerContext
  readonly #ttl: ParallelTtl
  readonly #meter: (own: number, real: number) => void
  readonly #hostCalls: Set<string> | undefined
  readonly items: ReadonlyArray<Item>

  constructor(options: ReplayOptions, state: LedgerState, ledger: Ledger, meter: (own: number, real: number) => void) {
    this.#meter = meter
    this.#hostCalls = options.hostCalls
    this.#state = state
    this.#ledger = ledger
    this.#context = {
      ...options,
      settings: state.settings,
      ledgerSeq: ledger.header.ledgerSeq,
      closeTime: ledger.header.scpValue.closeTime,
      transactionSetHash: ledger.header.scpValue.txSetHash,
      classicEvents: state.classicEvents,
      offerIds: state.offerIds,
      sorobanMetaFees: false
    }
    this.#ttl = new ParallelTtl(state.store, options.crypto)
    const known = new Map(ledger.envelopes.map((placed) => [hashOf(options, placed), placed]))
    this.items = ledger.processing.map((processing, place) => {
      const placed = known.get(latin1(processing.result.transactionHash))
      const frame = placed === undefined ? undefined : frameOf(options.crypto, options.networkId, placed.envelope)
      const item: Item = {
        placed,
        place,
        frame,
        processing,
        differences: [],
        applying: undefined,
        unsupported: undefined
      }
      item.unsupported = whyUnsupported(item, state.settings.protocolVersion)
      return item
    })
  }

  /**
   * A result without its envelope, or the other way round, is a difference; a transaction without both is not executed.
   */
  #match(item: Item): void {
    if (item.unsupported !== undefined || item.frame !== undefined) return
    item.differences.push(item.placed === undefined ? "a result without an envelope" : "an envelope without a frame")
  }

  /** Runs one of our phases on a copy of the state, unless the transaction has already been classified. */
  #phase(item: Item, body: (store: LedgerState["store"]) => void): void {
    if (item.unsupported !== undefined || item.frame === undefined) return
    try {
      body(this.#state.store.child())
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error
      item.unsupported = error.what
    }
  }

  #follow(changes: ReadonlyArray<EntryChange>): void {
    this.#state.seed(changes)
    this.#state.apply(changes)
  }

  #charge(item: Item): void {
    const real = item.processing.feeProcessing
    this.#state.seed(real)
    this.#phase(item, (store) => {
      item.applying = chargeFee(item.frame!, item.place, this.#context, store, item.placed!.baseFee)
      item.differences.push(...compareChanges("fee", real, item.applying.feeChanges))
    })
    this.#follow(real)
  }

  #prepare(item: Item): void {
    const real = metaOf(item).txChangesBefore
    this.#state.seed(real)
    this.#phase(item, (store) => {
      prepare(item.applying!, this.#context, store)
      item.differences.push(...compareChanges("before", real, item.applying!.changesBefore))
    })
    this.#follow(real)
  }

  #run(item: Item): void {
    const real = operationChanges(item)
    const footprint: LedgerFootprint | undefined = item.frame?.soroban?.resources.footprint
    this.#state.seed(real)
    if (footprint !== undefined) this.#state.seedReferences(footprint, this.#ledger.header.ledgerSeq)
    this.#ttl.enter(item.placed?.stage, footprint)
    const lastOfferId = this.#state.offerIds.last
    this.#phase(item, (store) => {
      this.#hostCalls?.clear()
      run(item.applying!, this.#context, store)
      this.#compareInstructions(item)
      const own = item.applying!.operations.flatMap(({ changes }) => changes)
      item.differences.push(...compareChanges("operations", real, own))
    })
    this.#state.offerIds.last = lastOfferId
    this.#follow(this.#ttl.visible(real, footprint))
    const after = metaOf(item).txChangesAfter
    if (item.unsupported === undefined && item.frame !== undefined)
      item.differences.push(...compareChanges("after", after, []))
    this.#follow(after)
  }

  /** Compares the instructions of a successful contract call, for the protocols with supported metering. */
  #compareInstructions(item: Item): void {
    const { outcome, code } = item.applying!
    if (this.#context.settings.protocolVersion < METERED_SINCE || code !== TxCode.success || outcome.instructions === 0)
      return
    const diagnostics =
      item.processing.txApplyProcessing.v === 4 ? item.processing.txApplyProcessing.v4.diagnosticEvents : []
    const metric = diagnostics.find(({ event }) => symbolText(event.body.v0.topics[1]) === "cpu_insn")
    const value = metric?.event.body.v0.data
    if (value?.type === 5) this.#meter(outcome.instructions, Number(value.u64))
  }

  #refund(item: Item): void {
    const real = item.processing.postTxApplyFeeProcessing
    this.#phase(item, (store) => {
      const applied = refund(item.applying!, this.#context, store)
      item.differences.push(...compareChanges("refund", real, applied.refundChanges))
      const result = sameResult(item, applied)
      if (result !== undefined) item.differences.unshift(result)
      item.differences.push(...compareEvents(item, applied))
    })
    this.#follow(real)
  }

  replay(): void {
    for (const item of this.items) this.#match(item)
    for (const item of this.items) this.#charge(item)
    // Classic transactions consume their sequence numbers one by one, contract transactions all before the first of
    // them.
    const firstParallel = this.items.findIndex(({ placed }) => placed?.stage !== undefined)
    const classic = firstParallel < 0 ? this.items : this.items.slice(0, firstParallel)
    const parallel = firstParallel < 0 ? [] : this.items.slice(firstParallel)
    for (const item of classic) {
      this.#prepare(item)
      this.#run(item)
    }
    for (const item of parallel) this.#prepare(item)
    for (const item of parallel) this.#run(item)
    this.#ttl.flush()
    for (const item of this.items) this.#refund(item)
    for (const { changes } of this.#ledger.upgrades) this.#follow(changes)
  }
}

/** The zero hash of a set that validators voted to drop, without applying anything of it (CAP-83). */
const DROPPED_SET = new Uint8Array(32)

/** The hash of the transaction set that the header must contain. */
const setHash = (crypto: EngineCrypto, { header, envelopes }: Ledger, setBytes: Uint8Array): Uint8Array =>
  header.scpValue.ext.v === STELLAR_VALUE_EMPTY_TX_SET && envelopes.length === 0 ? DROPPED_SET : crypto.sha256(setBytes)

/** Compares a ledger's own facts that do not follow from its transactions, as far as we can compute them. */
const compareLedger = (
  { crypto, networkId }: ReplayOptions,
  ledger: Ledger,
  state: LedgerState,
  sizeBefore: bigint
): Array<string> => {
  const { header, processing, envelopes, setBytes } = ledger
  const differences: Array<string> = []
  const pairs = processing.map(
    ({ result }) => [result.transactionHash, codec.TransactionResult.encode(result.result)] as const
  )
  if (!equalBytes(crypto.sha256(resultSetBytes(pairs)), header.txSetResultHash)) differences.push("another result hash")
  if (setBytes !== undefined && !equalBytes(setHash(crypto, ledger, setBytes), header.scpValue.txSetHash))
    differences.push("another hash of the transaction set")
  const results = new Set(processing.map(({ result }) => latin1(result.transactionHash)))
  for (const placed of envelopes) {
    const hash = hashOf({ crypto, networkId }, placed)
    if (hash !== undefined && !results.has(hash)) differences.push("an envelope without a result")
  }
  const size = state.averageSize(header.ledgerSeq, sizeBefore)
  if (ledger.stateSizeBytes !== undefined && ledger.stateSizeBytes !== size)
    differences.push(`state of ${ledger.stateSizeBytes} bytes instead of ${size}`)
  return [...differences, ...state.compareEvicted(ledger.evicted, header.ledgerSeq)]
}

const verdictOf = ({ unsupported, differences }: Item): Verdict => {
  if (unsupported !== undefined) return { kind: "unsupported", reason: unsupported }
  return differences.length === 0
    ? { kind: "identical", feeCompared: true }
    : { kind: "different", what: differences.slice(0, 4).join("; ") }
}

/** Replays a stream into the report. */
export const replayStream = (file: StreamFile, options: ReplayOptions, report: Report): void => {
  report.stream(file.family)
  const state = new LedgerState(options.crypto)
  const ledgers = [...readLedgers(file)]
  state.begin(ledgers)
  // Some nodes were configured to emit what classic operations and fees move; it shows in the fees.
  state.classicEvents = ledgers.some(({ processing }) =>
    processing.some(({ txApplyProcessing: meta }) => meta.v === 4 && meta.v4.events.length > 0)
  )
  // Diagnostics are not compared if the node was configured to emit none.
  const reportsDiagnostics = ledgers.some(({ processing }) =>
    processing.some(({ txApplyProcessing: meta }) => meta.v === 4 && meta.v4.diagnosticEvents.length > 0)
  )
  state.follow(ledgers[0]!.header)
  for (const ledger of ledgers) {
    const replay = new LedgerReplay(options, state, ledger, (own, real) =>
      report.meter(file.family, own, real, options.hostCalls)
    )
    const sizeBefore = state.isSampled(ledger.header.ledgerSeq) ? state.contractStateBytes : 0
    replay.replay()
    const where = `${file.suite}/${file.name} ledger ${ledger.header.ledgerSeq}`
    report.addLedger(where, compareLedger(options, ledger, state, BigInt(sizeBefore)))
    state.evict(ledger.evicted)
    // A header shows the network after the ledger's upgrades, which the ledger's own transactions did not see.
    state.follow(ledger.header)
    for (const item of replay.items) {
      if (
        (reportsDiagnostics || item.frame?.isSoroban !== true) &&
        item.unsupported === undefined &&
        item.applying !== undefined
      )
        report.compare(where, firstOtherWords(item))
      report.add(file.family, where, verdictOf(item))
    }
  }
}
