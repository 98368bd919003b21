// The wire types and codecs that only transactions need, in addition to those of `engine/xdr/Xdr.ts`: operations,
// results, meta, ledger headers. Like there, a value is a plain object that is never changed once it is shared.
import * as xdr from "@stellar/stellar-sdk/xdr"
import { codecOf } from "../engine/xdr/reusedWriter.ts"

export type MuxedAccount = xdr.MuxedAccountWire
export type Operation = xdr.OperationWire
export type OperationBody = xdr.OperationBodyWire
export type OperationResult = xdr.OperationResultWire
export type TransactionResult = xdr.TransactionResultWire
export type TransactionMeta = xdr.TransactionMetaWire
export type TransactionEvent = xdr.TransactionEventWire
export type ClaimAtom = xdr.ClaimAtomWire
export type ClaimLiquidityAtom = xdr.ClaimLiquidityAtomWire
export type ClaimPredicate = xdr.ClaimPredicateWire
export type ClaimableBalanceEntry = xdr.ClaimableBalanceEntryWire
export type LiquidityPool = xdr.LiquidityPoolEntryConstantProductWire
export type PoolParameters = xdr.LiquidityPoolConstantProductParametersWire
export type ClaimableBalanceId = xdr.ClaimableBalanceIdWire
export type LedgerEntryChange = xdr.LedgerEntryChangeWire
export type DecoratedSignature = xdr.DecoratedSignatureWire
export type Signer = xdr.SignerWire
export type SignerKey = xdr.SignerKeyWire
export type Memo = xdr.MemoWire
export type LedgerHeader = xdr.LedgerHeaderWire
export type LedgerCloseMeta = xdr.LedgerCloseMetaWire
export type AccountExtV2 = xdr.AccountEntryExtensionV2Wire

export type BodyOf<Type extends OperationBody["type"]> = Extract<OperationBody, { type: Type }>

export const OperationType = {
  createAccount: 0,
  payment: 1,
  pathPaymentStrictReceive: 2,
  manageSellOffer: 3,
  createPassiveSellOffer: 4,
  setOptions: 5,
  changeTrust: 6,
  allowTrust: 7,
  accountMerge: 8,
  inflation: 9,
  manageData: 10,
  bumpSequence: 11,
  manageBuyOffer: 12,
  pathPaymentStrictSend: 13,
  createClaimableBalance: 14,
  claimClaimableBalance: 15,
  beginSponsoring: 16,
  endSponsoring: 17,
  revokeSponsorship: 18,
  clawback: 19,
  clawbackClaimableBalance: 20,
  setTrustLineFlags: 21,
  liquidityPoolDeposit: 22,
  liquidityPoolWithdraw: 23,
  invokeHostFunction: 24,
  extendFootprintTtl: 25,
  restoreFootprint: 26
} as const

/** `TransactionResultCode`. */
export const TxCode = {
  feeBumpInnerSuccess: 1,
  success: 0,
  failed: -1,
  tooEarly: -2,
  tooLate: -3,
  missingOperation: -4,
  badSeq: -5,
  badAuth: -6,
  insufficientBalance: -7,
  noAccount: -8,
  insufficientFee: -9,
  badAuthExtra: -10,
  internalError: -11,
  notSupported: -12,
  feeBumpInnerFailed: -13,
  badSponsorship: -14,
  badMinSeqAgeOrGap: -15,
  malformed: -16,
  sorobanInvalid: -17,
  frozenKeyAccessed: -18
} as const
/** A code that carries no operation results. */
export type TxErrorCode = -2 | -3 | -4 | -5 | -6 | -7 | -8 | -9 | -10 | -11 | -12 | -14 | -15 | -16 | -17 | -18

/** `OperationResultCode` other than the inner one. */
export const OpCode = {
  badAuth: -1,
  noAccount: -2,
  notSupported: -3,
  tooManySubentries: -4,
  exceededWorkLimit: -5,
  tooManySponsoring: -6
} as const
export type OpErrorCode = (typeof OpCode)[keyof typeof OpCode]

export const codecs = {
  Operation: codecOf(xdr.Operation.schema),
  SignerKey: codecOf(xdr.SignerKey.schema),
  SorobanTransactionData: codecOf(xdr.SorobanTransactionData.schema),
  LedgerHeader: codecOf(xdr.LedgerHeader.schema),
  GeneralizedTransactionSet: codecOf(xdr.GeneralizedTransactionSet.schema),
  LedgerCloseMeta: codecOf(xdr.LedgerCloseMeta.schema),
  LedgerEntryExt: codecOf(xdr.LedgerEntryExt.schema),
  LedgerEntryData: codecOf(xdr.LedgerEntryData.schema),
  TransactionResult: codecOf(xdr.TransactionResult.schema),
  TransactionMeta: codecOf(xdr.TransactionMeta.schema),
  TransactionEnvelope: codecOf(xdr.TransactionEnvelope.schema),
  Asset: codecOf(xdr.Asset.schema),
  LiquidityPoolParameters: codecOf(xdr.LiquidityPoolParameters.schema)
} as const
