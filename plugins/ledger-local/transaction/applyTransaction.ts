// A transaction's path through a ledger, in the network's phases. First all fees are charged. Then each transaction is
// prepared (validated again, sequence number consumed, one-time signers removed) and run. After all have run, unused
// fees are refunded. Nothing fails here: every outcome is in the result. Features that the engine does not implement
// throw `Unsupported`, and only `runOrInternalError` catches it.
import { SignerKeyType } from "../engine/xdr/types.ts"
import { NotFetched, type Store } from "../engine/state/Store.ts"
import { type DiagnosticEvent, equalBytes, type PublicKey } from "../engine/xdr/Xdr.ts"
import { withAddedBalance, withSequence } from "./Accounts.ts"
import { ClassicEvents, feeEvent } from "./ClassicEvents.ts"
import { type ApplyContext, type LedgerContext, outer, type SorobanOutcome, succeeded, untouched } from "./Context.ts"
import { accountOf, type Frame, operationSource } from "./Frame.ts"
import { supportedRules } from "./operations/operationRules.ts"
import { RefundableFee } from "./RefundableFee.ts"
import { SignatureChecker } from "./Signatures.ts"
import { withoutSigner } from "./reserves.ts"
import { Sponsorships } from "./Sponsorships.ts"
import { type RestoredEntry, Txn } from "./Txn.ts"
import { commonValid, declaredNonRefundable, operationAuthProblem, operationProblem, resultOf } from "./validate.ts"
import {
  type LedgerEntryChange,
  OpCode,
  type OperationResult,
  type TransactionEvent,
  type TransactionMeta,
  type TransactionResult,
  TxCode,
  type TxErrorCode
} from "./Wire.ts"

/** A transaction on its way; the phases fill it in. */
export interface Applying {
  readonly frame: Frame
  /** Its place in the ledger, from 0. */
  readonly position: number
  readonly feeStroops: bigint
  /** The fee that the inner transaction of a fee bump would have been charged by itself. */
  readonly innerFeeStroops: bigint
  readonly feeChanges: ReadonlyArray<LedgerEntryChange>
  readonly refundable: RefundableFee | undefined
  readonly nonRefundableStroops: bigint
  readonly results: Array<OperationResult>
  code: TxErrorCode | typeof TxCode.success | typeof TxCode.failed
  changesBefore: ReadonlyArray<LedgerEntryChange>
  operations: ReadonlyArray<{
    readonly changes: ReadonlyArray<LedgerEntryChange>
    readonly events: ClassicEvents["events"]
  }>
  outcome: SorobanOutcome
  diagnostics: ReadonlyArray<DiagnosticEvent>
  events: ReadonlyArray<TransactionEvent>
}

export interface Applied {
  readonly result: TransactionResult
  readonly meta: TransactionMeta
  readonly feeChanges: ReadonlyArray<LedgerEntryChange>
  /** Changes of the refund, after all transactions of the ledger. */
  readonly refundChanges: ReadonlyArray<LedgerEntryChange>
  readonly succeeded: boolean
}

/** Since this protocol the result of a fee bump's inner transaction reports a charge of zero. */
const INNER_FEE_ZERO_SINCE = 25

/** The price per operation for a ledger's transactions; undefined means the whole bid. */
type InclusionBaseFee = bigint | undefined

/** Phase 1: takes the fee, at most the payer's balance. */
export const chargeFee = (
  frame: Frame,
  position: number,
  ledger: LedgerContext,
  store: Store,
  baseFee: InclusionBaseFee
): Applying => {
  const txn = new Txn(store, ledger.ledgerSeq)
  const payer = txn.loadAccount(frame.feeSource)
  const asked =
    baseFee === undefined
      ? frame.fullFeeStroops
      : frame.resourceFeeStroops + min(frame.inclusionFeeStroops, baseFee * BigInt(frame.feeOperations))
  const feeStroops = payer === undefined ? 0n : min(asked, payer.balance)
  if (payer !== undefined) txn.putAccount({ ...payer, balance: payer.balance - feeStroops })
  const feeChanges = txn.changes()
  txn.commit()
  const nonRefundableStroops = declaredNonRefundable(frame, ledger)
  return {
    frame,
    position,
    feeStroops,
    innerFeeStroops:
      frame.resourceFeeStroops +
      min(
        frame.innerInclusionFeeStroops,
        (baseFee ?? ledger.settings.baseFeeStroops) * BigInt(frame.tx.operations.length)
      ),
    feeChanges,
    refundable: frame.isSoroban ? new RefundableFee(frame.resourceFeeStroops - nonRefundableStroops) : undefined,
    nonRefundableStroops,
    results: frame.tx.operations.map(({ body }) => untouched(body.type)),
    code: TxCode.success,
    changesBefore: [],
    operations: [],
    outcome: { returnValue: null, events: [], diagnostics: [], instructions: 0 },
    diagnostics: [],
    events: feeEvent(ledger, frame.feeSource, feeStroops, "beforeAll")
  }
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

const failWith = (applying: Applying, code: Applying["code"]): void => {
  applying.code = code
  applying.refundable?.reset()
}

const removeOneTimeSigner = (txn: Txn, id: PublicKey, hash: Uint8Array): void => {
  const account = txn.peekAccount(id)
  const at =
    account?.signers.findIndex(({ key }) => key.type === SignerKeyType.preAuthTx && equalBytes(key.preAuthTx, hash)) ??
    -1
  if (at >= 0) txn.putAccount(withoutSigner(txn, txn.loadAccount(id)!, at))
}

const changesOfFeeSource = (frame: Frame, ledger: LedgerContext, store: Store): Array<LedgerEntryChange> => {
  const txn = new Txn(store, ledger.ledgerSeq)
  txn.loadAccount(frame.feeSource)
  removeOneTimeSigner(txn, frame.feeSource, frame.hash)
  const changes = txn.changes()
  txn.commit()
  return changes
}

/** Phase 2: validates the transaction again, consumes its sequence number and checks the operations' signatures. */
export const prepare = (applying: Applying, ledger: LedgerContext, store: Store): void => {
  const { frame } = applying
  const outerChanges = frame.isFeeBump ? changesOfFeeSource(frame, ledger, store) : []
  const checker = new SignatureChecker(ledger.crypto, frame.innerHash, frame.signatures)
  const options = { applying: true, chargeFee: !frame.isFeeBump, closeTimeOffsetMax: 0n }
  const verdict = commonValid(frame, ledger, store, checker, options)
  applying.diagnostics = verdict.diagnostics
  const txn = new Txn(store, ledger.ledgerSeq)
  if (verdict.reached !== "nothing") {
    txn.putAccount(withSequence(txn.loadAccount(frame.source)!, frame.tx.seqNum, ledger.ledgerSeq, ledger.closeTime))
  }
  if (verdict.code !== undefined) failWith(applying, verdict.code)
  else checkOperationAuth(applying, txn, checker, ledger.waived)
  const sources = [
    frame.source,
    ...frame.tx.operations.map((operation) => accountOf(operationSource(frame, operation)))
  ]
  for (const id of sources) removeOneTimeSigner(txn, id, frame.innerHash)
  applying.changesBefore = [...outerChanges, ...txn.changes()]
  txn.commit()
}

const checkOperationAuth = (
  applying: Applying,
  txn: Txn,
  checker: SignatureChecker,
  waived: PublicKey | undefined
): void => {
  const { frame } = applying
  let signed = true
  for (const [i, operation] of frame.tx.operations.entries()) {
    const problem = operationAuthProblem(frame, operation, txn.store, checker, waived)
    if (problem === undefined) continue
    applying.results[i] = problem
    signed = false
  }
  if (!signed) failWith(applying, TxCode.failed)
  else if (!checker.allUsed) failWith(applying, TxCode.badAuthExtra)
}

/** Phase 3: runs the operations; all of them take effect or none. Throws `Unsupported`. */
export const run = (applying: Applying, ledger: LedgerContext, store: Store): void => {
  if (applying.code !== TxCode.success) return
  const { frame } = applying
  const all = store.child()
  const sponsorships = new Sponsorships()
  let lastOfferId = ledger.offerIds.last
  const operations: Array<{ changes: Array<LedgerEntryChange>; events: ClassicEvents["events"] }> = []
  let ok = true
  for (const [index, operation] of frame.tx.operations.entries()) {
    const muxedSource = operationSource(frame, operation)
    const txn = new Txn(all, ledger.ledgerSeq)
    const events = new ClassicEvents(ledger, frame.tx.memo)
    const restored = new Map<string, RestoredEntry>()
    const context: ApplyContext = {
      ledger,
      frame,
      operation,
      source: accountOf(muxedSource),
      muxedSource,
      index,
      position: applying.position,
      txn,
      sponsorships,
      nextOfferId: () => ++lastOfferId,
      events,
      refundable: applying.refundable,
      soroban: applying.outcome,
      restored
    }
    const result = applyOperation(context)
    applying.results[index] = result.result
    if (!result.ran || !succeeded(result.result)) {
      ok = false
      continue
    }
    operations.push({
      changes: txn.changes(restored),
      events: frame.isSoroban ? [...applying.outcome.events] : events.events
    })
    txn.commit()
  }
  if (!ok) return failWith(applying, TxCode.failed)
  if (sponsorships.any) return failWith(applying, TxCode.badSponsorship)
  applying.operations = operations
  ledger.offerIds.last = lastOfferId
  all.commit()
}

/** The result, and whether the operation ran: a skipped operation may have the same result as one without work. */
const applyOperation = (context: ApplyContext): { readonly result: OperationResult; readonly ran: boolean } => {
  const { operation, source, soroban, txn } = context
  const rules = supportedRules(operation.body, context.ledger)
  if (rules === undefined) return { result: outer(OpCode.notSupported), ran: false }
  if (txn.peekAccount(source) === undefined) return { result: outer(OpCode.noAccount), ran: false }
  const problem = operationProblem(context)
  if (problem === undefined) return { result: rules.apply(operation.body as never, context), ran: true }
  soroban.diagnostics = problem.diagnostics
  return { result: problem.result, ran: false }
}

const sorobanMeta = (applying: Applying, ledger: LedgerContext) => {
  const { outcome, refundable } = applying
  if (refundable === undefined) return null
  const ext = ledger.sorobanMetaFees
    ? {
        v: 1 as const,
        v1: {
          ext: { v: 0 as const },
          totalNonRefundableResourceFeeCharged: applying.nonRefundableStroops,
          totalRefundableResourceFeeCharged: refundable.consumedStroops,
          rentFeeCharged: refundable.rentStroops
        }
      }
    : { v: 0 as const }
  return { ext, returnValue: outcome.returnValue }
}

/** Phase 4: refunds unused fees and completes the result. A payer that no longer exists or is full loses the refund. */
export const refund = (applying: Applying, ledger: LedgerContext, store: Store): Applied => {
  const { frame, refundable } = applying
  const txn = new Txn(store, ledger.ledgerSeq)
  const owed = refundable?.refundStroops ?? 0n
  const payer = owed === 0n ? undefined : txn.loadAccount(frame.feeSource)
  const paid = payer === undefined ? undefined : withAddedBalance(payer, owed, ledger.settings.baseReserveStroops)
  const refunded = paid === undefined ? 0n : owed
  if (paid !== undefined) txn.putAccount(paid)
  const refundChanges = paid === undefined ? [] : txn.changes()
  if (paid !== undefined) txn.commit()
  const events = [...applying.events, ...feeEvent(ledger, frame.feeSource, -refunded, "afterAll")]
  const isSuccess = applying.code === TxCode.success
  const meta: TransactionMeta = {
    v: 4,
    v4: {
      ext: { v: 0 },
      txChangesBefore: [...applying.changesBefore],
      operations: isSuccess
        ? applying.operations.map(({ changes, events }) => ({ ext: { v: 0 as const }, changes: [...changes], events }))
        : [],
      txChangesAfter: [],
      sorobanMeta: isSuccess ? sorobanMeta(applying, ledger) : null,
      events,
      diagnosticEvents: [...applying.diagnostics, ...applying.outcome.diagnostics]
    }
  }
  const innerFee = ledger.settings.protocolVersion < INNER_FEE_ZERO_SINCE ? applying.innerFeeStroops - refunded : 0n
  const result = resultOf(frame, applying.feeStroops - refunded, applying.code, applying.results, innerFee)
  return { result, meta, feeChanges: applying.feeChanges, refundChanges, succeeded: isSuccess }
}

/**
 * An exception while a transaction runs (an unimplemented feature or a defect of the engine) becomes an internal error
 * of that transaction: its fee is charged, nothing else happens. The exception is the result. Only `NotFetched` is
 * rethrown.
 */
export const runOrInternalError = (applying: Applying, ledger: LedgerContext, store: Store): unknown => {
  try {
    return run(applying, ledger, store)
  } catch (error) {
    if (error instanceof NotFetched) throw error
    failWith(applying, TxCode.internalError)
    applying.operations = []
    applying.outcome = { returnValue: null, events: [], diagnostics: [], instructions: 0 }
    return error
  }
}
