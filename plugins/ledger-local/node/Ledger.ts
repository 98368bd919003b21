// The ledger as one synchronous machine: entries, history, queue and the closing of ledgers. The caller passes the
// time. A close is computed on an overlay (`prepareClose`) and takes effect only with `publish`, so that the owner can
// write it to disk in between; transactions that arrive in between are validated against the old ledger, as on a
// network. Close times never decrease, and no two ledgers have the same, unless they would run further ahead of the
// clock than allowed. Over a fork's state its methods may throw `NotFetched`, before anything has changed, and are then
// called again.
import { EnvelopeType } from "../engine/xdr/types.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import type { ContractRuntime } from "../engine/host/HostTypes.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import type { Store } from "../engine/state/Store.ts"
import type { DiagnosticEvent, LedgerEntry, PublicKey, TransactionEnvelope } from "../engine/xdr/Xdr.ts"
import type { KeyString } from "../engine/state/LedgerKeys.ts"
import { availableBalance } from "../transaction/Accounts.ts"
import { type Applying, chargeFee, prepare, refund, runOrInternalError } from "../transaction/applyTransaction.ts"
import type { LedgerContext } from "../transaction/Context.ts"
import { type Frame, frameOf, hashOf } from "../transaction/Frame.ts"
import { accountKeysOf, keysOf } from "../transaction/keysOf.ts"
import { errorResult, readAccount, resultOf, validate } from "../transaction/validate.ts"
import { type TransactionResult, TxCode } from "../transaction/Wire.ts"
import { CloseLimit, type CloseTime, runInOrder, TimeIsUp } from "./CloseLimit.ts"
import { Expiry } from "./Expiry.ts"
import { type Faults, noFaults } from "./Faults.ts"
import { seal, ZERO_HASH } from "./Header.ts"
import { History, type LedgerRecord, type Retention, type TransactionRecord } from "./History.ts"
import { missingIn, Offender, orOffender } from "./Offender.ts"
import { Queue } from "./Queue.ts"
import { recordOf } from "./recordOf.ts"
import { priceOf, selectFrames } from "./selectFrames.ts"
import { toHex } from "./text.ts"
import { type Phase, resultSetBytes, transactionSetBytes } from "./transactionSet.ts"

export interface LedgerOptions {
  readonly crypto: EngineCrypto
  /** SHA-256 of the network's passphrase. */
  readonly networkId: Uint8Array
  readonly settings: NetworkSettings
  readonly retention: Retention
  /** Transactions in one ledger at most; the lowest bids wait. */
  readonly transactionsPerLedgerMax: number
  /** Instructions that the contract transactions of one ledger may declare together. */
  readonly instructionsPerLedgerMax: number
  /** Time limit of its contracts; absent: no limit. */
  readonly closeTime?: CloseTime
  /** Expected seconds between two ledgers, for the time bounds of queued transactions; 0 when closed by hand. */
  readonly closeIntervalSeconds: number
  readonly contracts?: ContractRuntime
  /**
   * Maximum seconds that close times may run ahead of the clock, so that every ledger closes at least a second after
   * the one before, as on the network. Ledgers that would go further share the time of the previous ledger.
   */
  readonly aheadSecondsMax: number
}

/** The state after a restart: the last ledger, with its entries and the history before it. */
export interface LedgerState {
  readonly store: Store
  /** Oldest first, without gaps; at least one. */
  readonly ledgers: ReadonlyArray<LedgerRecord>
}

export interface LedgerImage extends LedgerState {
  readonly networkId: Uint8Array
  readonly past: ReadonlyArray<ClosedLedger>
}

type SendStatus = "PENDING" | "DUPLICATE" | "TRY_AGAIN_LATER" | "ERROR"

interface SendAnswer {
  readonly status: SendStatus
  readonly hash: string
  readonly error?: TransactionResult
  readonly diagnostics?: ReadonlyArray<DiagnosticEvent>
}

export interface ClosedLedger {
  readonly record: LedgerRecord
  /** Changed entries; undefined means deleted. */
  readonly changes: ReadonlyArray<{
    readonly key: KeyString
    readonly before: LedgerEntry | undefined
    readonly after: LedgerEntry | undefined
  }>
  readonly frames: ReadonlyArray<Frame>
  /** Transactions deferred to the next ledger because this one had no time left. */
  readonly deferred: ReadonlyArray<Frame>
  readonly commit: () => void
  /** True for a ledger with a separate purpose (the friendbot's), which leaves the queue unchanged. */
  readonly isAside: boolean
}

/** An unexpected failure in the ledger's code, and the work during which it happened. */
interface Defect {
  readonly during: string
  readonly error: unknown
}

/** Maximum number of defects waiting to be reported. */
const DEFECTS_MAX = 100

/** Ledgers whose state can still be read, to simulate a node that lags. */
const PAST_LEDGERS = 64

export class Ledger {
  readonly options: LedgerOptions
  faults: Faults = noFaults
  #store: Store
  #history: History
  #queue = new Queue()
  #past: ReadonlyArray<ClosedLedger> = []
  readonly #heldUntil = new Map<string, number>()
  readonly #limit: CloseLimit
  #expiry: Expiry
  #defects: Array<Defect> = []

  constructor(options: LedgerOptions, state: LedgerState) {
    this.options = options
    this.#limit = new CloseLimit(options.instructionsPerLedgerMax, options.closeTime)
    this.#store = state.store
    this.#history = new History(options.retention)
    for (const ledger of state.ledgers) this.history.add(ledger)
    this.#expiry = new Expiry(options.crypto, state.store, this.latest.sequence)
  }

  get store(): Store {
    return this.#store
  }

  get history(): History {
    return this.#history
  }

  get queue(): Queue {
    return this.#queue
  }

  /** What `revert` needs to come back to now. Entries and records are shared, never copied. */
  capture(): LedgerImage {
    const { networkId } = this.options
    return { networkId, store: this.#store.copy(), ledgers: [...this.history.from(0)], past: this.#past }
  }

  /** Reverts to a captured image, any number of times; drops the queued transactions. */
  revert({ ledgers, past, store }: LedgerImage): void {
    this.#store = store.copy()
    this.#history = new History(this.options.retention)
    for (const ledger of ledgers) this.history.add(ledger)
    this.#past = past
    this.#queue = new Queue()
    this.#heldUntil.clear()
    this.#expiry = new Expiry(this.options.crypto, this.#store, this.latest.sequence)
  }

  get latest(): LedgerRecord {
    return this.history.latest
  }

  /** Keeps a defect for the owner to report. */
  report(during: string, error: unknown): void {
    if (this.#defects.length < DEFECTS_MAX) this.#defects.push({ during, error })
  }

  /** Defects reported since the last call. */
  takeDefects(): ReadonlyArray<Defect> {
    const taken = this.#defects
    this.#defects = []
    return taken
  }

  /** The ledger that transactions are validated for (the next one) or applied in. */
  context(ledgerSeq: number, closeTime: bigint): LedgerContext {
    const { crypto, networkId, settings, contracts } = this.options
    return {
      crypto,
      networkId,
      settings,
      ledgerSeq,
      closeTime,
      transactionSetHash: ZERO_HASH,
      classicEvents: true,
      sorobanMetaFees: true,
      offerIds: { last: this.latest.lastOfferId },
      ...(contracts === undefined ? {} : { contracts })
    }
  }

  frame(envelope: TransactionEnvelope, bytes?: Uint8Array): Frame | undefined {
    return frameOf(this.options.crypto, this.options.networkId, envelope, bytes)
  }

  /** The state as of a ledger that closed recently; undefined when it is too long ago. */
  storeAsOf(sequence: number): Store | undefined {
    const back = this.latest.sequence - sequence
    if (back <= 0) return this.store
    if (back > this.#past.length) return undefined
    const view = this.store.child()
    for (const { changes } of this.#past.slice(-back).reverse()) {
      for (const { key, before } of changes) {
        if (before === undefined) view.delete(key)
        else view.set(key, before)
      }
    }
    return view
  }

  /** Validates an envelope and queues it for the next ledger. `now` in seconds. */
  send(envelope: TransactionEnvelope, bytes: Uint8Array, now: bigint): SendAnswer {
    const frame = this.frame(envelope, bytes)
    if (frame === undefined) {
      const code = envelope.type === EnvelopeType.v0 ? TxCode.notSupported : TxCode.malformed
      const hash = toHex(hashOf(this.options.crypto, this.options.networkId, envelope))
      return { status: "ERROR", hash, error: errorResult(code) }
    }
    const hash = toHex(frame.hash)
    // Fetch first: a fault injected before it would be injected again with every attempt.
    this.store.require(accountKeysOf(frame))
    const injected = this.faults.onSend(frame)
    if (injected === "TRY_AGAIN_LATER") return { status: injected, hash }
    if (injected !== undefined) return { status: "ERROR", hash, error: errorResult(injected) }
    const admission = this.queue.admit(frame)
    switch (admission.is) {
      case "duplicate":
        return { status: "DUPLICATE", hash }
      case "tryAgainLater":
        return { status: "TRY_AGAIN_LATER", hash }
      case "badSequence":
        return { status: "ERROR", hash, error: resultOf(frame, 0n, TxCode.badSeq, []) }
      case "feeTooLow":
        return { status: "ERROR", hash, error: errorResult(TxCode.insufficientFee, admission.leastFeeStroops) }
      case "open":
        return this.#verify(frame, hash, admission.payerBusyStroops, now)
    }
  }

  #verify(frame: Frame, hash: string, payerBusyStroops: bigint, now: bigint): SendAnswer {
    const { closeTime, sequence } = this.latest
    const drift = now > closeTime ? now - closeTime : 0n
    const ledger = this.context(sequence + 1, closeTime)
    const tolerated = drift + 2n * BigInt(this.options.closeIntervalSeconds)
    const { error, diagnostics } = this.#validate(frame, ledger, tolerated)
    if (error !== undefined) return { status: "ERROR", hash, error, diagnostics }
    const payer = readAccount(this.store, frame.feeSource)!
    if (availableBalance(payer, ledger.settings.baseReserveStroops) - frame.fullFeeStroops < payerBusyStroops) {
      const charged = frame.resourceFeeStroops + ledger.settings.baseFeeStroops * BigInt(frame.feeOperations)
      return { status: "ERROR", hash, error: errorResult(TxCode.insufficientBalance, charged) }
    }
    this.queue.add(frame)
    const delay = this.faults.delayLedgers(frame)
    if (delay > 0) this.#heldUntil.set(frame.fullHash, sequence + delay)
    return { status: "PENDING", hash }
  }

  /** Validates; a defect on the way is an internal error of the transaction. */
  #validate(frame: Frame, ledger: LedgerContext, closeTimeTolerance: bigint): ReturnType<typeof validate> {
    try {
      return validate(frame, ledger, this.store, closeTimeTolerance)
    } catch (error) {
      if (missingIn(error) !== undefined) throw error
      this.report("validating a transaction", error)
      return { error: errorResult(TxCode.internalError), diagnostics: [] }
    }
  }

  /**
   * Computes the next ledger from the queue. Nothing changes before `publish`, except that a transaction with which no
   * ledger can be computed is removed from the queue. With `isCutOff` nothing can be fetched for a fork's state:
   * transactions that need more keep waiting.
   */
  prepareClose(now: bigint, isCutOff = false): ClosedLedger {
    const closeTime = this.#closeTime(now)
    const ledger = this.context(this.latest.sequence + 1, closeTime)
    if (!isCutOff && this.store.isPartial) this.store.require(this.queue.candidates().flatMap(keysOf))
    const isHeld = ({ fullHash }: Frame) => (this.#heldUntil.get(fullHash) ?? 0) >= ledger.ledgerSeq
    const free = this.queue.candidates().filter((frame) => !isHeld(frame))
    const mayGo = (frame: Frame) => this.#mayGo(frame, ledger, isCutOff)
    let { frames: rest, deferred, isFull } = selectFrames(free, this.#limit, this.options, mayGo)
    let limit: CloseLimit | undefined = this.#limit
    for (;;) {
      try {
        const anew = this.context(ledger.ledgerSeq, closeTime)
        return this.#close(anew, rest, priceOf(rest, isFull, this.options), { deferred, isAside: false, limit })
      } catch (error) {
        if (error instanceof TimeIsUp) {
          const turns = rest.filter(({ isSoroban }) => isSoroban)
          const late = new Set(turns.slice(error.ran))
          deferred = [...deferred, ...late]
          rest = rest.filter((frame) => !late.has(frame))
          isFull = true
          limit = undefined
          this.#limit.learn(turns.slice(0, error.ran))
          continue
        }
        const isMissing = missingIn(error) !== undefined
        if (rest.length === 0 || (isMissing && !isCutOff)) throw error
        if (!isMissing) this.report("closing a ledger", error)
        const out = error instanceof Offender ? [error.frame] : rest
        if (!isMissing) for (const frame of out) this.queue.ban(frame)
        rest = rest.filter((frame) => !out.includes(frame))
      }
    }
  }

  /** A ledger of internal transactions, which `waived` need not have signed; the queue is unchanged. */
  prepareAside(now: bigint, frames: ReadonlyArray<Frame>, waived: PublicKey | undefined): ClosedLedger {
    const ledger = this.context(this.latest.sequence + 1, this.#closeTime(now))
    return this.#close({ ...ledger, waived }, frames, this.options.settings.baseFeeStroops, {
      deferred: [],
      isAside: true
    })
  }

  #closeTime(now: bigint): bigint {
    const { closeTime } = this.latest
    const next = closeTime + 1n
    if (now >= next) return now
    return Number(next - now) <= this.options.aheadSecondsMax ? next : closeTime
  }

  /** True if a queued transaction may go into the next ledger; drops it if it became invalid. */
  #mayGo(frame: Frame, ledger: LedgerContext, isCutOff: boolean): boolean {
    if (this.faults.drops(frame) || (isCutOff && keysOf(frame).some((key) => !this.store.knows(key)))) return false
    const isValid = this.#validate(frame, ledger, 0n).error === undefined
    if (!isValid) this.queue.ban(frame)
    return isValid
  }

  #close(
    forLedger: LedgerContext,
    frames: ReadonlyArray<Frame>,
    baseFee: bigint,
    {
      deferred,
      isAside,
      limit
    }: Pick<ClosedLedger, "deferred" | "isAside"> & { readonly limit?: CloseLimit | undefined }
  ): ClosedLedger {
    const store = this.store.child()
    const { sha256 } = this.options.crypto
    const phaseOf = (soroban: boolean): Phase => ({
      envelopes: frames.filter(({ isSoroban }) => isSoroban === soroban).map(({ bytes }) => bytes),
      baseFeeStroops: baseFee
    })
    const transactionSetHash = sha256(transactionSetBytes(this.latest.hash, phaseOf(false), phaseOf(true)))
    const ledger = { ...forLedger, transactionSetHash }
    const applying = frames.map((frame, position) =>
      orOffender(frame, () => chargeFee(frame, position, ledger, store, baseFee))
    )
    const ready = (one: Applying): void => orOffender(one.frame, () => prepare(one, ledger, store))
    const run = (one: Applying): void => {
      const thrown = orOffender(one.frame, () => runOrInternalError(one, ledger, store))
      if (thrown !== undefined) this.report("running a transaction", thrown)
    }
    runInOrder(applying, ready, run, limit)
    let feePool = this.latest.feePoolStroops
    const transactions = applying.map((one, i): TransactionRecord => {
      const applied = orOffender(one.frame, () => refund(one, ledger, store))
      feePool += applied.result.feeCharged
      return recordOf(one.frame, applied, i + 1, ledger, baseFee)
    })
    const evicted = this.#expiry.evict(store, ledger.ledgerSeq)
    const parts = {
      sequence: ledger.ledgerSeq,
      closeTime: ledger.closeTime,
      previousHash: this.latest.hash,
      transactionSetHash,
      resultHash: sha256(resultSetBytes(transactions.map(({ result }, i) => [frames[i]!.hash, result]))),
      feePoolStroops: feePool,
      lastOfferId: ledger.offerIds.last
    }
    const record = seal(this.options.crypto, ledger.settings, parts, transactions, evicted)
    const changes = [...store.changes()].filter(({ before, after }) => before !== after)
    return { record, changes, frames, deferred, commit: () => store.commit(), isAside }
  }

  /** Makes a computed ledger the latest one. It must follow the ledger it was computed on. */
  publish(closed: ClosedLedger): void {
    if (closed.record.sequence !== this.latest.sequence + 1) throw new Error("a ledger was published out of turn")
    closed.commit()
    this.history.add(closed.record)
    this.#expiry.follow(closed.changes, closed.record.sequence)
    this.#past = [...this.#past.slice(1 - PAST_LEDGERS), closed]
    if (closed.isAside) return
    this.queue.ledgerClosed(closed.frames, closed.deferred)
    for (const [hash, until] of this.#heldUntil) if (until < closed.record.sequence) this.#heldUntil.delete(hash)
  }
}
