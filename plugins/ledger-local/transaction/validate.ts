// Whether a transaction may enter the queue or be applied, checked in the network's own order so that the first failing
// rule gives the same result code. `commonValid` is used for both; when applying, the fee has been charged already, the
// time is the ledger's own, and a failure still reports whether the sequence number was consumed.
import { AccountType, EntryType, MemoType, PreconditionsType, SignerKeyType } from "../engine/xdr/types.ts"
import { minimumInclusionFeeStroops, nonRefundableFeeStroops } from "../engine/state/Fees.ts"
import type { Store } from "../engine/state/Store.ts"
import { accountKey, keyString } from "../engine/state/LedgerKeys.ts"
import { type AccountEntry, type DiagnosticEvent, equalBytes, type PublicKey } from "../engine/xdr/Xdr.ts"
import { availableBalance, sequenceAge } from "./Accounts.ts"
import { diagnosticError, duplicateProblem, resourceProblem } from "./checkResources.ts"
import { type CheckContext, inner, type LedgerContext, outer, untouched } from "./Context.ts"
import { accountOf, type Frame, isSorobanOperation, operationSource } from "./Frame.ts"
import { isFrozenOut, isPayerFrozen } from "./frozenKeys.ts"
import { startingSequence } from "./operations/createAccount.ts"
import { supportedRules, thresholdOf } from "./operations/operationRules.ts"
import { SignatureChecker, Threshold } from "./Signatures.ts"
import {
  codecs,
  OpCode,
  type Operation,
  type OperationResult,
  OperationType,
  type TransactionResult,
  TxCode,
  type TxErrorCode
} from "./Wire.ts"

/** How far a transaction got. From `sequence` on its sequence number is consumed when it is applied. */
type ValidationStage = "nothing" | "sequence" | "auth" | "valid"

interface ValidationResult {
  readonly reached: ValidationStage
  /** The failure; undefined when valid. */
  readonly code: TxErrorCode | undefined
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
}

interface CheckOptions {
  readonly applying: boolean
  /** False for the inner transaction of a fee bump. */
  readonly chargeFee: boolean
  /** Seconds after the last close during which the transaction may still be applied; 0 when applying. */
  readonly closeTimeOffsetMax: bigint
}

export const readAccount = (store: Store, id: PublicKey): AccountEntry | undefined => {
  const entry = store.get(keyString(accountKey(id)))
  return entry?.data.type === EntryType.account ? entry.data.account : undefined
}

/** Contract entries that are read from disk: those to be restored on the way, and all that RestoreFootprint names. */
const archivedReads = (frame: Frame): number => {
  const { ext, resources } = frame.soroban!
  if (frame.tx.operations[0]!.body.type === OperationType.restoreFootprint) return resources.footprint.readWrite.length
  return ext.v === 1 ? ext.resourceExt.archivedSorobanEntries.length : 0
}

/** The part of the declared resource fee that is never given back. */
export const declaredNonRefundable = (frame: Frame, ledger: LedgerContext): bigint =>
  frame.soroban === undefined
    ? 0n
    : nonRefundableFeeStroops(ledger.settings, frame.soroban.resources, frame.innerBytesLength, archivedReads(frame))

const timeBounds = ({ tx: { cond } }: Frame) =>
  cond.type === PreconditionsType.time
    ? cond.timeBounds
    : cond.type === PreconditionsType.v2
      ? cond.v2.timeBounds
      : null

const isTooEarly = (frame: Frame, ledger: LedgerContext): boolean => {
  const bounds = timeBounds(frame)
  if (bounds !== null && bounds.minTime > ledger.closeTime) return true
  const { cond } = frame.tx
  return (
    cond.type === PreconditionsType.v2 &&
    cond.v2.ledgerBounds !== null &&
    cond.v2.ledgerBounds.minLedger > ledger.ledgerSeq
  )
}

const isTooLate = (frame: Frame, ledger: LedgerContext, offset: bigint): boolean => {
  const bounds = timeBounds(frame)
  if (bounds !== null && bounds.maxTime !== 0n && bounds.maxTime < ledger.closeTime + offset) return true
  const { cond } = frame.tx
  const max = cond.type === PreconditionsType.v2 ? (cond.v2.ledgerBounds?.maxLedger ?? 0) : 0
  return max !== 0 && max <= ledger.ledgerSeq
}

const isTooEarlyForAccount = (frame: Frame, ledger: LedgerContext, account: AccountEntry): boolean => {
  const { cond } = frame.tx
  const [minAge, minGap] = cond.type === PreconditionsType.v2 ? [cond.v2.minSeqAge, cond.v2.minSeqLedgerGap] : [0n, 0]
  const age = sequenceAge(account)
  return (
    minAge > ledger.closeTime ||
    ledger.closeTime - minAge < age.time ||
    minGap > ledger.ledgerSeq ||
    ledger.ledgerSeq - minGap < age.ledger
  )
}

const isBadSequence = ({ tx }: Frame, ledger: LedgerContext, current: bigint): boolean => {
  if (tx.seqNum === startingSequence(ledger.ledgerSeq)) return true
  const min = tx.cond.type === PreconditionsType.v2 ? tx.cond.v2.minSeqNum : null
  return min === null ? current + 1n !== tx.seqNum : current < min || current >= tx.seqNum
}

const areExtraSignersMalformed = ({ tx: { cond } }: Frame): boolean => {
  if (cond.type !== PreconditionsType.v2) return false
  const [first, second] = cond.v2.extraSigners
  if (
    first !== undefined &&
    second !== undefined &&
    equalBytes(codecs.SignerKey.encode(first), codecs.SignerKey.encode(second))
  )
    return true
  return cond.v2.extraSigners.some(
    (key) => key.type === SignerKeyType.signedPayload && key.ed25519SignedPayload.payload.length === 0
  )
}

/** A contract operation must be the only one; classic operations carry no contract data. */
const isMixed = ({ tx, isSoroban }: Frame): boolean =>
  tx.operations.some((operation) => isSorobanOperation(operation) !== isSoroban) ||
  (isSoroban && tx.operations.length !== 1)

const isMuxed = (frame: Frame): boolean =>
  frame.tx.sourceAccount.type === AccountType.muxed ||
  frame.tx.operations.some(({ sourceAccount }) => sourceAccount?.type === AccountType.muxed)

/** Since this protocol a call with a memo is not applied either; before, it is only kept out of the queue. */
const MEMO_REFUSED_SINCE = 25

/** Among contract operations only a call may not have a memo: its events and its authorization would contradict it. */
const isMemoRefused = (frame: Frame, { settings }: LedgerContext, { applying }: CheckOptions): boolean =>
  (!applying || settings.protocolVersion >= MEMO_REFUSED_SINCE) &&
  frame.tx.operations[0]!.body.type === OperationType.invokeHostFunction &&
  (frame.tx.memo.type !== MemoType.none || isMuxed(frame))

const feeProblem = (frame: Frame, ledger: LedgerContext): DiagnosticEvent | undefined => {
  const declared = frame.resourceFeeStroops
  const over = (message: string, than: bigint): DiagnosticEvent =>
    diagnosticError("Value", "ExceededLimit", `transaction \`sorobanData.resourceFee\` is ${message}`, [declared, than])
  if (!frame.isFeeBump && declared > frame.fullFeeStroops)
    return over("higher than the full transaction fee", frame.fullFeeStroops)
  const needed = declaredNonRefundable(frame, ledger)
  return declared < needed ? over("lower than the actual Soroban resource fee", needed) : undefined
}

const sorobanProblem = (frame: Frame, ledger: LedgerContext, options: CheckOptions): DiagnosticEvent | undefined => {
  if (isMemoRefused(frame, ledger, options)) {
    const message = "Soroban transactions are not allowed to use memo or muxed source account"
    return diagnosticError("Value", "InvalidInput", message)
  }
  return resourceProblem(frame, ledger) ?? feeProblem(frame, ledger) ?? duplicateProblem(frame)
}

const fail = (
  code: TxErrorCode,
  reached: ValidationStage = "nothing",
  diagnostics: ReadonlyArray<DiagnosticEvent> = []
): ValidationResult => ({ reached, code, diagnostics })

const beforeSequence = (frame: Frame, ledger: LedgerContext, options: CheckOptions): ValidationResult | undefined => {
  if (areExtraSignersMalformed(frame)) return fail(TxCode.malformed)
  if (frame.tx.operations.length === 0) return fail(TxCode.missingOperation)
  if (isMixed(frame)) return fail(TxCode.malformed)
  if (frame.isSoroban) {
    const problem = sorobanProblem(frame, ledger, options)
    if (problem !== undefined) return fail(TxCode.sorobanInvalid, "nothing", [problem])
  }
  if (isTooEarly(frame, ledger)) return fail(TxCode.tooEarly)
  if (isTooLate(frame, ledger, options.closeTimeOffsetMax)) return fail(TxCode.tooLate)
  const least = minimumInclusionFeeStroops(ledger.settings, frame.tx.operations.length, false)
  if (options.chargeFee && frame.innerInclusionFeeStroops < least) return fail(TxCode.insufficientFee)
  return undefined
}

/** The rules of a transaction itself: of its fee only when it pays for itself. */
export const commonValid = (
  frame: Frame,
  ledger: LedgerContext,
  store: Store,
  checker: SignatureChecker,
  options: CheckOptions
): ValidationResult => {
  const early = beforeSequence(frame, ledger, options)
  if (early !== undefined) return early
  const account = readAccount(store, frame.source)
  if (account === undefined) return fail(TxCode.noAccount)
  if (isFrozenOut(frame, ledger.settings)) return fail(TxCode.frozenKeyAccessed)
  if (isBadSequence(frame, ledger, account.seqNum)) return fail(TxCode.badSeq)
  if (isTooEarlyForAccount(frame, ledger, account)) return fail(TxCode.badMinSeqAgeOrGap, "sequence")
  if (!checker.checkAccount(account, account.thresholds[Threshold.low]!)) return fail(TxCode.badAuth, "sequence")
  const { cond } = frame.tx
  if (cond.type === PreconditionsType.v2 && cond.v2.extraSigners.length > 0) {
    const signers = cond.v2.extraSigners.map((key) => ({ key, weight: 1 }))
    if (!checker.check(signers, signers.length)) return fail(TxCode.badAuth, "sequence")
  }
  const toPay = options.applying ? 0n : frame.fullFeeStroops
  if (options.chargeFee && availableBalance(account, ledger.settings.baseReserveStroops) < toPay) {
    return fail(TxCode.insufficientBalance, "auth")
  }
  return { reached: "valid", code: undefined, diagnostics: [] }
}

/** Whether an operation's source has signed for it, or need not have; undefined when so. */
export const operationAuthProblem = (
  frame: Frame,
  operation: Operation,
  store: Store,
  checker: SignatureChecker,
  waived?: PublicKey
): OperationResult | undefined => {
  const source = accountOf(operationSource(frame, operation))
  if (waived !== undefined && equalBytes(waived.ed25519, source.ed25519)) return undefined
  const account = readAccount(store, source)
  if (account !== undefined) {
    return checker.checkAccount(account, account.thresholds[thresholdOf(operation.body)]!)
      ? undefined
      : outer(OpCode.badAuth)
  }
  if (operation.sourceAccount === null) return outer(OpCode.noAccount)
  return checker.checkMissingAccount(source) ? undefined : outer(OpCode.badAuth)
}

/** The refusal of an operation, with the node's diagnostic. */
interface OperationProblem {
  readonly result: OperationResult
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
}

const untold = (result: OperationResult): OperationProblem => ({ result, diagnostics: [] })

/** An operation's own rules; undefined when it is well formed. */
export const operationProblem = (context: CheckContext): OperationProblem | undefined => {
  const { body } = context.operation
  const rules = supportedRules(body, context.ledger)
  if (rules === undefined) return untold(outer(OpCode.notSupported))
  const flaw = rules.check(body as never, context)
  if (flaw === 0) return undefined
  if (typeof flaw === "number") return untold(inner(body.type, flaw))
  const result = flaw.code === undefined ? untouched(body.type) : inner(body.type, flaw.code)
  return { result, diagnostics: [flaw.diagnostic] }
}

interface Verdict {
  /** Undefined when the transaction may enter the queue. */
  readonly error: TransactionResult | undefined
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
}

const plain = (feeCharged: bigint, code: TxErrorCode): TransactionResult => ({
  feeCharged,
  result: { code },
  ext: { v: 0 }
})

/** A result without operations, for an envelope without a frame or refused before its operations were read. */
export const errorResult = (code: TxErrorCode, feeCharged = 0n): TransactionResult => plain(feeCharged, code)

/** The fee that the network reports for a refused transaction: its least price, not a charge. */
const nominalFee = (frame: Frame, ledger: LedgerContext): bigint =>
  frame.resourceFeeStroops + ledger.settings.baseFeeStroops * BigInt(frame.feeOperations)

const feeBumpProblem = (frame: Frame, ledger: LedgerContext, store: Store): TransactionResult | undefined => {
  const fee = nominalFee(frame, ledger)
  const least = ledger.settings.baseFeeStroops * BigInt(frame.feeOperations)
  if (frame.inclusionFeeStroops < least) return plain(fee, TxCode.insufficientFee)
  const innerLeast = ledger.settings.baseFeeStroops * BigInt(Math.max(1, frame.tx.operations.length))
  if (frame.innerInclusionFeeStroops >= 0n) {
    const needed = frame.innerInclusionFeeStroops * least
    if (frame.inclusionFeeStroops * innerLeast < needed)
      return plain((needed + innerLeast - 1n) / innerLeast, TxCode.insufficientFee)
  } else if (!frame.isSoroban) {
    return {
      feeCharged: fee,
      result: {
        code: TxCode.feeBumpInnerFailed,
        innerResultPair: {
          transactionHash: frame.innerHash,
          result: {
            feeCharged: 0n,
            result: { code: TxCode.success, results: frame.tx.operations.map(({ body }) => untouched(body.type)) },
            ext: { v: 0 }
          }
        }
      },
      ext: { v: 0 }
    } as TransactionResult
  }
  const account = readAccount(store, frame.feeSource)
  if (account === undefined) return plain(fee, TxCode.noAccount)
  const checker = new SignatureChecker(ledger.crypto, frame.hash, frame.feeBumpSignatures)
  if (!checker.checkAccount(account, account.thresholds[Threshold.low]!)) return plain(fee, TxCode.badAuth)
  if (availableBalance(account, ledger.settings.baseReserveStroops) < frame.fullFeeStroops)
    return plain(fee, TxCode.insufficientBalance)
  if (isPayerFrozen(frame, ledger.settings)) return plain(fee, TxCode.frozenKeyAccessed)
  return checker.allUsed ? undefined : plain(fee, TxCode.badAuthExtra)
}

/** Wraps the inner code or results as the envelope's kind asks. */
export const resultOf = (
  frame: Frame,
  feeCharged: bigint,
  code: TxErrorCode | typeof TxCode.success | typeof TxCode.failed,
  results: ReadonlyArray<OperationResult>,
  innerFeeCharged = 0n
): TransactionResult => {
  const own = code === TxCode.success || code === TxCode.failed ? { code, results } : { code }
  const result = frame.isFeeBump
    ? {
        code: code === TxCode.success ? TxCode.feeBumpInnerSuccess : TxCode.feeBumpInnerFailed,
        innerResultPair: {
          transactionHash: frame.innerHash,
          result: { feeCharged: innerFeeCharged, result: own, ext: { v: 0 } }
        }
      }
    : own
  return { feeCharged, result, ext: { v: 0 } } as TransactionResult
}

/** Everything that is checked before a transaction may wait in the queue. `ledger.ledgerSeq` is the next ledger. */
export const validate = (frame: Frame, ledger: LedgerContext, store: Store, closeTimeOffsetMax: bigint): Verdict => {
  if (frame.isFeeBump) {
    const problem = feeBumpProblem(frame, ledger, store)
    if (problem !== undefined) return { error: problem, diagnostics: [] }
  }
  const fee = nominalFee(frame, ledger)
  const checker = new SignatureChecker(ledger.crypto, frame.innerHash, frame.signatures)
  const options = { applying: false, chargeFee: !frame.isFeeBump, closeTimeOffsetMax }
  const { code, diagnostics } = commonValid(frame, ledger, store, checker, options)
  if (code !== undefined) return { error: resultOf(frame, fee, code, []), diagnostics }
  const results = frame.tx.operations.map(({ body }) => untouched(body.type))
  for (const [i, operation] of frame.tx.operations.entries()) {
    const source = accountOf(operationSource(frame, operation))
    const unsigned =
      supportedRules(operation.body, ledger) === undefined
        ? outer(OpCode.notSupported)
        : operationAuthProblem(frame, operation, store, checker)
    const problem = unsigned === undefined ? operationProblem({ ledger, frame, operation, source }) : untold(unsigned)
    if (problem === undefined) continue
    results[i] = problem.result
    return { error: resultOf(frame, fee, TxCode.failed, results), diagnostics: problem.diagnostics }
  }
  return checker.allUsed
    ? { error: undefined, diagnostics: [] }
    : { error: resultOf(frame, fee, TxCode.badAuthExtra, []), diagnostics: [] }
}
