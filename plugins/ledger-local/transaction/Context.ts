// The context of an operation's check and application, and constructors of its result. Operations are plain functions
// from a body and a context to a result. All their changes go through the context's `Txn`, so a failed operation is
// undone by dropping it.
import type { EngineCrypto } from "../engine/host/Random.ts"
import type { ContractRuntime } from "../engine/host/HostTypes.ts"
import type { KeyString } from "../engine/state/LedgerKeys.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import type { PublicKey, ScVal, ContractEvent, DiagnosticEvent } from "../engine/xdr/Xdr.ts"
import type { ClassicEvents } from "./ClassicEvents.ts"
import type { Frame } from "./Frame.ts"
import type { RefundableFee } from "./RefundableFee.ts"
import type { Threshold } from "./Signatures.ts"
import type { Sponsorships } from "./Sponsorships.ts"
import type { RestoredEntry, Txn } from "./Txn.ts"
import {
  type BodyOf,
  type MuxedAccount,
  type OpErrorCode,
  type Operation,
  type OperationBody,
  type OperationResult,
  OperationType
} from "./Wire.ts"

/** The ledger that a transaction is checked against or applied in. */
export interface LedgerContext {
  readonly crypto: EngineCrypto
  readonly networkId: Uint8Array
  readonly settings: NetworkSettings
  /** Sequence of the ledger being applied; for a check, the next one. */
  readonly ledgerSeq: number
  /** Its close time, in seconds; for a check, the last closed one's. */
  readonly closeTime: bigint
  /** Hash of the transactions that are applied together; all zero for a check. */
  readonly transactionSetHash: Uint8Array
  /** Classic operations and fees emit the events of CAP-67. */
  readonly classicEvents: boolean
  /** Resource fees appear in the meta (extension v1). */
  readonly sorobanMetaFees: boolean
  readonly contracts?: ContractRuntime
  /** An account whose signature is waived: the friendbot's recipient, when its trustline is opened. */
  readonly waived?: PublicKey | undefined
  /** The ledger's counter of offers; a transaction that succeeds moves it on. */
  readonly offerIds: OfferIds
}

/** Numbers for new offers, each used once. */
interface OfferIds {
  last: bigint
}

export interface CheckContext {
  readonly ledger: LedgerContext
  readonly frame: Frame
  readonly operation: Operation
  readonly source: PublicKey
}

/** A contract operation's data for the meta; filled in while it runs. */
export interface SorobanOutcome {
  returnValue: ScVal | null
  events: ReadonlyArray<ContractEvent>
  diagnostics: ReadonlyArray<DiagnosticEvent>
  /** Metered by the host; 0 when it did not run. */
  instructions: number
}

export interface ApplyContext extends CheckContext {
  readonly muxedSource: MuxedAccount
  readonly index: number
  /** The transaction's place in the ledger, from 0. */
  readonly position: number
  readonly txn: Txn
  readonly sponsorships: Sponsorships
  readonly nextOfferId: () => bigint
  readonly events: ClassicEvents
  /** Only of contract transactions. */
  readonly refundable: RefundableFee | undefined
  readonly soroban: SorobanOutcome
  /** Entries brought back from the archive by this operation; the meta marks them so. */
  readonly restored: Map<KeyString, RestoredEntry>
}

/** An invalid contract operation, with the node's diagnostic. */
export interface Flaw {
  /** The operation's (inner) code; absent if the network omits the code of an operation that never ran. */
  readonly code?: number
  readonly diagnostic: DiagnosticEvent
}

export interface OperationRules<Type extends OperationBody["type"]> {
  /** Signature weight the source must show. */
  readonly threshold: Threshold | ((body: BodyOf<Type>) => Threshold)
  /** 0 when well formed, otherwise the operation's own (inner) code, or more about it. */
  readonly check: (body: BodyOf<Type>, context: CheckContext) => number | Flaw
  readonly apply: (body: BodyOf<Type>, context: ApplyContext) => OperationResult
}

const resultFields = [
  "createAccountResult",
  "paymentResult",
  "pathPaymentStrictReceiveResult",
  "manageSellOfferResult",
  "createPassiveSellOfferResult",
  "setOptionsResult",
  "changeTrustResult",
  "allowTrustResult",
  "accountMergeResult",
  "inflationResult",
  "manageDataResult",
  "bumpSeqResult",
  "manageBuyOfferResult",
  "pathPaymentStrictSendResult",
  "createClaimableBalanceResult",
  "claimClaimableBalanceResult",
  "beginSponsoringFutureReservesResult",
  "endSponsoringFutureReservesResult",
  "revokeSponsorshipResult",
  "clawbackResult",
  "clawbackClaimableBalanceResult",
  "setTrustLineFlagsResult",
  "liquidityPoolDepositResult",
  "liquidityPoolWithdrawResult",
  "invokeHostFunctionResult",
  "extendFootprintTtlResult",
  "restoreFootprintResult"
] as const

/**
 * An operation's result: its inner code and, on success of some kinds, additional data. The network answers a passive
 * offer (4) as the ordinary one (3) that it becomes.
 */
export const inner = (
  type: OperationBody["type"],
  code: number,
  rest: Readonly<Record<string, unknown>> = {}
): OperationResult => {
  // A passive offer's result has the form of a sell offer's.
  const shown = type === OperationType.createPassiveSellOffer ? OperationType.manageSellOffer : type
  return { code: 0, tr: { type: shown, [resultFields[shown]]: { code, ...rest } } } as unknown as OperationResult
}

/** A result outside of the operation itself, such as "no account". */
export const outer = (code: OpErrorCode): OperationResult => ({ code })

const EMPTY_HASH = new Uint8Array(32)
const NO_OFFER = { offersClaimed: [], offer: { effect: 2 } }

/** The network's result for an operation that never ran: the success of its kind, without content. */
export const untouched = (type: OperationBody["type"]): OperationResult => {
  switch (type) {
    case OperationType.pathPaymentStrictReceive:
    case OperationType.pathPaymentStrictSend:
      return inner(type, 0, {
        success: { offers: [], last: { destination: { type: 0, ed25519: EMPTY_HASH }, asset: { type: 0 }, amount: 0n } }
      })
    case OperationType.manageSellOffer:
    case OperationType.createPassiveSellOffer:
    case OperationType.manageBuyOffer:
      return inner(type, 0, { success: NO_OFFER })
    case OperationType.accountMerge:
      return inner(type, 0, { sourceAccountBalance: 0n })
    case OperationType.inflation:
      return inner(type, 0, { payouts: [] })
    case OperationType.createClaimableBalance:
      return inner(type, 0, { balanceId: { type: 0, v0: EMPTY_HASH } })
    case OperationType.invokeHostFunction:
      return inner(type, 0, { success: EMPTY_HASH })
    default:
      return inner(type, 0)
  }
}

export const succeeded = (result: OperationResult): boolean => {
  if (result.code !== 0) return false
  const own = (result.tr as unknown as Record<string, { readonly code: number }>)[resultFields[result.tr.type]]
  return own !== undefined && own.code === 0
}
