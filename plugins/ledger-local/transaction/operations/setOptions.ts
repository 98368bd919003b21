// SetOptions: flags, weights, thresholds, home domain and one signer at a time. Signers are kept sorted by key.
import { SignerKeyType } from "../../engine/xdr/types.ts"
import { AccountFlag } from "../Accounts.ts"
import { isTextValid } from "../assetRules.ts"
import { type ApplyContext, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { createSigner, reserveFailure, withoutSigner } from "../reserves.ts"
import { compareSignerKeys } from "../signerKeys.ts"
import { type BodyOf, type OperationResult, OperationType, type Signer } from "../Wire.ts"
import { type AccountEntry, equalBytes } from "../../engine/xdr/Xdr.ts"

const Code = {
  success: 0,
  lowReserve: -1,
  tooManySigners: -2,
  badFlags: -3,
  invalidInflation: -4,
  cantChange: -5,
  unknownFlag: -6,
  thresholdOutOfRange: -7,
  badSigner: -8,
  invalidHomeDomain: -9,
  authRevocableRequired: -10
} as const
const result = (code: number): OperationResult => inner(OperationType.setOptions, code)

const ALL_FLAGS =
  AccountFlag.authRequired | AccountFlag.authRevocable | AccountFlag.authImmutable | AccountFlag.clawbackEnabled
const SIGNERS_MAX = 20
const BYTE_MAX = 255

const isSignerBad = ({ key, weight }: Signer, source: Uint8Array): boolean =>
  (key.type === SignerKeyType.ed25519 && equalBytes(key.ed25519, source)) ||
  weight > BYTE_MAX ||
  (key.type === SignerKeyType.signedPayload && key.ed25519SignedPayload.payload.length === 0)

const withThreshold = (account: AccountEntry, at: number, value: number | null): AccountEntry =>
  value === null ? account : { ...account, thresholds: account.thresholds.map((old, i) => (i === at ? value : old)) }

/** Writes `account` with its signer changed; an outcome other than success means nothing was written. */
const applySigner = (context: ApplyContext, account: AccountEntry, signer: Signer): OperationResult => {
  const { txn } = context
  const at = account.signers.findIndex((known) => compareSignerKeys(known.key, signer.key) === 0)
  if (signer.weight === 0) {
    txn.putAccount(at < 0 ? account : withoutSigner(txn, account, at))
    return result(Code.success)
  }
  if (at >= 0) {
    txn.putAccount({ ...account, signers: account.signers.map((known, i) => (i === at ? signer : known)) })
    return result(Code.success)
  }
  if (account.signers.length >= SIGNERS_MAX) return result(Code.tooManySigners)
  const before = account.signers.filter((known) => compareSignerKeys(known.key, signer.key) < 0).length
  const outcome = createSigner(context, account, signer, before)
  return outcome === "ok" ? result(Code.success) : reserveFailure(outcome, result(Code.lowReserve))
}

export const setOptions: OperationRules<5> = {
  threshold: ({ setOptionsOp: op }: BodyOf<5>) =>
    op.masterWeight !== null ||
    op.lowThreshold !== null ||
    op.medThreshold !== null ||
    op.highThreshold !== null ||
    op.signer !== null
      ? Threshold.high
      : Threshold.medium,
  check: ({ setOptionsOp: op }, { source }) => {
    if (((op.setFlags ?? 0) & ~ALL_FLAGS) !== 0 || ((op.clearFlags ?? 0) & ~ALL_FLAGS) !== 0) return Code.unknownFlag
    if (((op.setFlags ?? 0) & (op.clearFlags ?? 0)) !== 0) return Code.badFlags
    for (const value of [op.masterWeight, op.lowThreshold, op.medThreshold, op.highThreshold]) {
      if (value !== null && value > BYTE_MAX) return Code.thresholdOutOfRange
    }
    if (op.signer !== null && isSignerBad(op.signer, source.ed25519)) return Code.badSigner
    return op.homeDomain !== null && !isTextValid(op.homeDomain.bytes) ? Code.invalidHomeDomain : 0
  },
  apply: ({ setOptionsOp: op }, context) => {
    const { txn, source } = context
    let account = txn.loadAccount(source)!
    if (op.inflationDest !== null) {
      if (txn.peekAccount(op.inflationDest) === undefined) return result(Code.invalidInflation)
      account = { ...account, inflationDest: op.inflationDest }
    }
    const isImmutable = (account.flags & AccountFlag.authImmutable) !== 0
    if (isImmutable && ((op.clearFlags ?? 0) !== 0 || (op.setFlags ?? 0) !== 0)) return result(Code.cantChange)
    account = { ...account, flags: (account.flags & ~(op.clearFlags ?? 0)) | (op.setFlags ?? 0) }
    if ((account.flags & AccountFlag.clawbackEnabled) !== 0 && (account.flags & AccountFlag.authRevocable) === 0) {
      return result(Code.authRevocableRequired)
    }
    if (op.homeDomain !== null) account = { ...account, homeDomain: op.homeDomain }
    account = withThreshold(account, 0, op.masterWeight)
    account = withThreshold(account, Threshold.low, op.lowThreshold)
    account = withThreshold(account, Threshold.medium, op.medThreshold)
    account = withThreshold(account, Threshold.high, op.highThreshold)
    if (op.signer !== null) return applySigner(context, account, op.signer)
    txn.putAccount(account)
    return result(Code.success)
  }
}
