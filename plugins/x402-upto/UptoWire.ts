// The payload of an `upto` payment on the wire: `{ transaction }`, base64 XDR of an unsigned envelope around one call
// of the settlement contract with the maximum as its amount, authorized by the payer; or the fields of the stateless
// draft (`statelessFields.ts`). Decodes it once into the subject of the checks. Encodes it again with the settled
// amount and with the facilitator's authorization added to the payer's.
import { Result } from "effect"
import { addressText } from "../../kernel/stellar/Address.ts"
import {
  type AuthEntry,
  authorizedCall,
  type Invocation,
  invocationOf,
  sourceEntry
} from "../../kernel/stellar/AuthEntry.ts"
import {
  callOf,
  callOfOperation,
  callOperation,
  type ContractCall,
  decodeOperation,
  invokedBy
} from "../../kernel/stellar/ContractCall.ts"
import { type Operation, plainIn, readEnvelope, sourceOf } from "../../kernel/stellar/Envelope.ts"
import {
  addressOf,
  boolOf,
  bytesOf,
  encodeValue,
  i128Of,
  i128Value,
  isMuxed,
  symbolText,
  u32Of,
  u64Of,
  type Value,
  vecValue
} from "../../kernel/stellar/Value.ts"
import { type ArgumentName, positionIn, type Profile } from "./profiles.ts"
import { envelopeOfFields } from "./statelessFields.ts"

/** The arguments of a settlement call by name. Undefined: absent, or of another type. */
export interface SettleArgs {
  readonly payer: string | undefined
  readonly payTo: string | undefined
  readonly token: string | undefined
  readonly max: bigint | undefined
  readonly validAfter: number | undefined
  readonly deadline: number | undefined
  readonly beginsAt: bigint | undefined
  readonly endsAt: bigint | undefined
  readonly facilitator: string | undefined
  readonly settlementId: Uint8Array | undefined
  readonly autoRevoke: boolean | undefined
  readonly actual: bigint | undefined
  /** An address form that carries an id in addition to the account. */
  readonly muxed: boolean
}

export interface SettleCall extends Omit<ContractCall, "args"> {
  readonly profile: Profile
  readonly values: ReadonlyArray<Value>
  readonly args: SettleArgs
}

export interface UptoPayload {
  readonly source: string
  /** Absent when the transaction is not one contract call. */
  readonly call: SettleCall | undefined
}

/** The profile of a contract's calls. */
export type ProfileOf = (contract: string) => Profile

const addressArguments = ["payer", "payTo", "token", "facilitator"] as const

const settleArgs = (profile: Profile, values: ReadonlyArray<Value>): SettleArgs => {
  const at = (name: ArgumentName): Value | undefined => values[positionIn(profile, name)]
  return {
    payer: addressOf(at("payer")),
    payTo: addressOf(at("payTo")),
    token: addressOf(at("token")),
    max: i128Of(at("max")),
    validAfter: u32Of(at("validAfter")),
    deadline: u32Of(at("deadline")),
    beginsAt: u64Of(at("beginsAt")),
    endsAt: u64Of(at("endsAt")),
    facilitator: addressOf(at("facilitator")),
    settlementId: bytesOf(at("settlementId")),
    autoRevoke: boolOf(at("autoRevoke")),
    actual: i128Of(at("actual")),
    muxed: addressArguments.some((name) => isMuxed(at(name)))
  }
}

const settleCall = (profileOf: ProfileOf, call: ContractCall | undefined): SettleCall | undefined => {
  if (call === undefined) return undefined
  const profile = profileOf(call.contract)
  return { ...call, profile, values: call.args, args: settleArgs(profile, call.args) }
}

/**
 * Decodes `payload.transaction`, or the fields of the stateless draft if its contract is offered. The reason names the
 * problem, never the content.
 */
export const decodePayload = (
  payload: Readonly<Record<string, unknown>>,
  profileOf: ProfileOf,
  statelessContract?: string
): Result.Result<UptoPayload, { readonly reason: string }> => {
  const { authEntries, transaction } = payload
  if (transaction === undefined && authEntries !== undefined && statelessContract !== undefined)
    return Result.flatMap(envelopeOfFields(payload, statelessContract), (transaction) =>
      decodePayload({ transaction }, profileOf)
    )
  if (typeof transaction !== "string") return Result.fail({ reason: "payload.transaction is not a string" })
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) return Result.fail({ reason: `payload.transaction is ${read.failure.reason}` })
  const tx = plainIn(read.success)
  if (tx === undefined) return Result.fail({ reason: "payload.transaction is not a plain v1 envelope" })
  return Result.succeed({ source: sourceOf(tx), call: settleCall(profileOf, callOf(tx)) })
}

/** The contract call that an invocation authorizes; undefined for any other kind. */
export const contractCallOf = (invocation: Invocation) => {
  const call = authorizedCall(invocation)
  return call === undefined
    ? undefined
    : {
        contract: addressText(call.contractAddress),
        functionName: symbolText(call.functionName),
        args: call.args
      }
}

export const encodeValues = (values: ReadonlyArray<Value>): Uint8Array => encodeValue(vecValue(values))

/** The arguments that the payer signs, in the order signed. */
export const signedValues = ({ profile, values }: SettleCall): ReadonlyArray<Value> =>
  profile.signed.map((name) => values[positionIn(profile, name)]!)

/** The same call with the settled amount and without a source. */
export const callWithAmount = (call: SettleCall, actual: bigint, auth: ReadonlyArray<AuthEntry>): Operation => {
  const position = positionIn(call.profile, "actual")
  return callOperation({ ...call.invoked, args: call.values.with(position, i128Value(actual)) }, auth)
}

/** The facilitator's authorization as the source of a simulation: unsigned, and worth nothing elsewhere. */
export const sourceAuthorization = (operation: Operation): AuthEntry => {
  const invoked = invokedBy(operation)
  if (invoked === undefined) throw new Error("the operation is not a contract call")
  return sourceEntry(invocationOf(invoked))
}

/** An operation as a call of the settlement contract; undefined if it is not a contract call. */
export const callIn = (operationXdr: Uint8Array, profileOf: ProfileOf): SettleCall | undefined =>
  settleCall(profileOf, callOfOperation(decodeOperation(operationXdr)))
