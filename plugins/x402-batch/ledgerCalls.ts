// Maps a payload to one call of the contract: its arguments, its authorizer, the movement and its parties, and its
// identity among the settlements. A deposit and a withdrawal carry a ledger authorization with a nonce, which can be
// used once. A claim, a settle and a refund do not: the contract's state makes them idempotent, so the requested
// content is their identity, within a range of ledgers. After that range the same request counts as a new one. Pure.
import { Option } from "effect"
import { Hex } from "effect/encoding"
import type { Authorization, PromisedMovement } from "../../kernel/payment/Scheme.ts"
import type { Nonce, NonceUse } from "../../kernel/settlement/Authorizations.ts"
import { addressText } from "../../kernel/stellar/Address.ts"
import { type AuthEntry, credentialsOf } from "../../kernel/stellar/AuthEntry.ts"
import { authorizationKeyOf, haveOneNonce, readAuthorizationKey } from "../../kernel/stellar/AuthorizationKey.ts"
import { authOf, callOfOperation, decodeOperation } from "../../kernel/stellar/ContractCall.ts"
import { addressOf, i128Of, type Value } from "../../kernel/stellar/Value.ts"
import {
  batchFunctions,
  claimArgs,
  depositArgs,
  depositTransferArgs,
  refundArgs,
  settleArgs,
  withdrawArgs
} from "./batchCalls.ts"
import { type BatchContract, claimDigest, claimedTotals, configOfValue, refundDigest } from "./batchCodec.ts"
import type { BatchPayload, LedgerPayload, SentCall } from "./BatchWire.ts"
import type { ExpectedCall } from "./checks.ts"
import type { BatchWord } from "./refusals.ts"

/**
 * Length of that range. A request lands or expires within it; after it, the same claim, settle or refund is a new
 * request.
 */
export const stretchLedgers = 60

/** The reason code for each kind's failed simulation. */
export const simulationWords: Readonly<Record<LedgerPayload["_tag"], BatchWord>> = {
  Deposit: "deposit_simulation_failed",
  Claim: "claim_simulation_failed",
  Settle: "settle_simulation_failed",
  Refund: "refund_simulation_failed",
  Withdraw: "withdraw_simulation_failed"
}

/** The address that authorized a sent call, if there is exactly one. */
export const signerOf = ({ call }: SentCall): string | undefined => {
  const [entry] = call?.auth ?? []
  const credentials = entry === undefined ? undefined : credentialsOf(entry)
  return credentials === undefined ? undefined : addressText(credentials.address)
}

/** The call that an authorization must cover; undefined for payloads that need no authorization. */
export const expectedCall = (payload: LedgerPayload, contract: string): ExpectedCall | undefined => {
  switch (payload._tag) {
    case "Deposit": {
      const from = signerOf(payload.sent) ?? payload.config.payer
      return {
        functionName: batchFunctions.deposit,
        args: depositArgs(from, payload.config, payload.amount),
        below: { contract: payload.config.token, args: depositTransferArgs(from, contract, payload.amount) }
      }
    }
    case "Withdraw":
      return { functionName: payload.functionName, args: withdrawArgs(payload.config), below: undefined }
    default:
      return undefined
  }
}

interface LedgerCall {
  readonly functionName: string
  readonly args: ReadonlyArray<Value>
  readonly auth: ReadonlyArray<AuthEntry>
}

export const callOfPayload = (payload: LedgerPayload, contract: string): LedgerCall => {
  switch (payload._tag) {
    case "Deposit":
    case "Withdraw": {
      const { args, functionName } = expectedCall(payload, contract)!
      return { functionName, args, auth: payload.sent.call?.auth ?? [] }
    }
    case "Claim":
      return {
        functionName: batchFunctions.claim,
        args: claimArgs(payload.claims, payload.expiresAt!, payload.signature!),
        auth: []
      }
    case "Settle":
      return { functionName: batchFunctions.settle, args: settleArgs(payload.receiver, payload.token), auth: [] }
    case "Refund":
      return {
        functionName: batchFunctions.refund,
        args: refundArgs({
          config: payload.config,
          amount: payload.amount,
          nonce: payload.nonce,
          expiresAt: payload.expiresAt!,
          signature: payload.signature!,
          claims: payload.claims,
          ...(payload.claimSignature === undefined ? {} : { claimSignature: payload.claimSignature })
        }),
        auth: []
      }
  }
}

/** The parties of a payload's transfer, for its settlement's record; the contract holds deposits. */
export const partiesOf = (
  payload: LedgerPayload,
  contract: string,
  terms: { readonly payTo: string; readonly asset: string }
): Pick<PromisedMovement, "payer" | "payTo" | "asset"> => {
  const { asset, payTo } = terms
  switch (payload._tag) {
    case "Deposit":
      return { payer: signerOf(payload.sent) ?? payload.config.payer, payTo: contract, asset }
    case "Claim":
    case "Settle":
      return { payer: contract, payTo, asset }
    case "Refund":
      return { payer: contract, payTo: payload.config.payer, asset }
    case "Withdraw":
      return { payer: contract, payTo: payload.config.payer, asset }
  }
}

/** A payload's identity at a ledger. Undefined for a sweep, because only the ledger can identify it. */
const keyOf = (at: BatchContract, payload: BatchPayload, sequence: number): string | undefined => {
  const stretch = Math.floor(sequence / stretchLedgers)
  switch (payload._tag) {
    case "Deposit":
    case "Withdraw": {
      const [entry] = payload.sent.call?.auth ?? []
      return entry === undefined ? undefined : authorizationKeyOf(entry)
    }
    case "Claim":
      // The same claim with a new signature for a later expiry has the same identity, because it moves money only once.
      return `claim:${Hex.encode(claimDigest(at, claimedTotals(at, payload.claims), 0))}:${stretch}`
    case "Refund": {
      const { amount, claims, expiresAt = 0, nonce, voucher } = payload
      const claimed = Hex.encode(claimDigest(at, claimedTotals(at, claims), 0))
      const refund = Hex.encode(refundDigest(at, voucher.channelId, amount, nonce, expiresAt))
      return `refund:${refund}:${claimed}:${stretch}`
    }
    case "Voucher":
      return `voucher:${payload.voucher.channelId}:${payload.voucher.maxClaimableAmount}`
    case "Settle":
      return undefined
  }
}

/** The key of a sweep. It contains the swept total, which only the ledger shows. */
export const settleKey = (receiver: string, token: string, totalClaimed: bigint, sequence: number): string =>
  `settle:${receiver}:${token}:${totalClaimed}:${Math.floor(sequence / stretchLedgers)}`

/** A payload's identity, read offline at a ledger. */
export const authorizationOf = (
  at: BatchContract,
  payload: BatchPayload,
  terms: { readonly payTo: string; readonly asset: string },
  sequence: number
): Option.Option<Authorization> => {
  const key = keyOf(at, payload, sequence)
  if (key === undefined) return Option.none()
  if (payload._tag === "Voucher") return Option.some({ key, payer: payload.config.payer })
  const { payer, payTo } = partiesOf(payload, at.address, terms)
  const amount = payload._tag === "Deposit" ? payload.amount : 0n
  return Option.some({ key, payer, moves: { payTo, amount } })
}

/** Keys of a request without an authorization in the previous ledger range. */
export const formerKeysOf = (at: BatchContract, payload: BatchPayload, sequence: number): ReadonlyArray<string> =>
  payload._tag === "Claim" || payload._tag === "Refund" ? [keyOf(at, payload, sequence - stretchLedgers)!] : []

const ownKey = /^(?:claim|refund|settle|voucher):/

/** The nonce of a deposit or withdrawal; "none" for the others. */
export const nonceOf = (key: string): Nonce | "none" | undefined =>
  ownKey.test(key) ? "none" : readAuthorizationKey(key)

/** How an operation uses an authorization's nonce: as exactly this call of the contract, or otherwise. */
export const useIn = (contract: string, key: string, promise: PromisedMovement, operationXdr: Uint8Array): NonceUse => {
  if (ownKey.test(key)) return "none"
  const operation = decodeOperation(operationXdr)
  const keys = authOf(operation).flatMap((entry) => authorizationKeyOf(entry) ?? [])
  if (!keys.some((one) => haveOneNonce(one, key))) return "none"
  const call = callOfOperation(operation)
  if (call?.contract !== contract || keys.length !== 1 || keys[0] !== key) return "other"
  const [first, second, third] = call.args
  switch (call.functionName) {
    case batchFunctions.deposit: {
      const isSame =
        promise.payTo === contract &&
        addressOf(first) === promise.payer &&
        configOfValue(second)?.token === promise.asset &&
        i128Of(third) === promise.amount
      return isSame ? "same" : "other"
    }
    case batchFunctions.withdrawStart:
    case batchFunctions.withdrawEnd: {
      const config = configOfValue(first)
      return config?.payer === promise.payTo && config.token === promise.asset ? "same" : "other"
    }
    default:
      return "other"
  }
}
