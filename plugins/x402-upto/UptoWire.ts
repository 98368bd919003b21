// The payload of an `upto` payment on the wire: `{ transaction }`, base64 XDR of an unsigned envelope around one call
// of the settlement contract with the maximum as its amount, authorized by the payer. Decoded once into what the checks
// look at, and made again with the amount that is settled and the facilitator's authorization beside the payer's.
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
import { type Operation, plainIn, readEnvelope, sourceOf, type Transaction } from "../../kernel/stellar/Envelope.ts"
import {
  addressOf,
  bytesOf,
  encodeValue,
  i128Of,
  i128Value,
  isMuxed,
  symbolText,
  u32Of,
  type Value,
  vecValue
} from "../../kernel/stellar/Value.ts"

/** The arguments of `settle`, in the contract's order. Undefined: not of the type that the contract asks for. */
export interface SettleArgs {
  readonly payer: string | undefined
  readonly payTo: string | undefined
  readonly token: string | undefined
  readonly max: bigint | undefined
  readonly validAfter: number | undefined
  readonly deadline: number | undefined
  readonly facilitator: string | undefined
  readonly settlementId: Uint8Array | undefined
  readonly actual: bigint | undefined
  /** An address form that carries an id beside the account. */
  readonly muxed: boolean
}

export interface SettleCall extends Omit<ContractCall, "args"> {
  readonly values: ReadonlyArray<Value>
  readonly args: SettleArgs
}

export interface UptoPayload {
  readonly tx: Transaction
  readonly source: string
  /** Absent when the transaction is not one contract call. */
  readonly call: SettleCall | undefined
}

/** How many arguments `settle` has, the last of which the payer does not sign. */
export const argumentCount = 9
/** Where the facilitator stands among them. */
export const facilitatorPosition = 6

const settleArgs = (values: ReadonlyArray<Value>): SettleArgs => {
  const [payer, payTo, token, max, validAfter, deadline, facilitator, settlementId, actual] = values
  return {
    payer: addressOf(payer),
    payTo: addressOf(payTo),
    token: addressOf(token),
    max: i128Of(max),
    validAfter: u32Of(validAfter),
    deadline: u32Of(deadline),
    facilitator: addressOf(facilitator),
    settlementId: bytesOf(settlementId),
    actual: i128Of(actual),
    muxed: [payer, payTo, token, facilitator].some(isMuxed)
  }
}

const settleCall = (call: ContractCall | undefined): SettleCall | undefined =>
  call === undefined ? undefined : { ...call, values: call.args, args: settleArgs(call.args) }

/** Decodes `payload.transaction`; the reason names the fault, never the content. */
export const decodePayload = ({
  transaction
}: Readonly<Record<string, unknown>>): Result.Result<UptoPayload, { readonly reason: string }> => {
  if (typeof transaction !== "string") return Result.fail({ reason: "payload.transaction is not a string" })
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) return Result.fail({ reason: `payload.transaction is ${read.failure.reason}` })
  const tx = plainIn(read.success)
  if (tx === undefined) return Result.fail({ reason: "payload.transaction is not a plain v1 envelope" })
  return Result.succeed({ tx, source: sourceOf(tx), call: settleCall(callOf(tx)) })
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

/** The same call with the amount that is to be settled, and no source of its own. */
export const callWithAmount = (call: SettleCall, actual: bigint, auth: ReadonlyArray<AuthEntry>): Operation =>
  callOperation({ ...call.invoked, args: [...call.values.slice(0, -1), i128Value(actual)] }, auth)

/** The facilitator's authorization as the source of a simulation gives it: unsigned, and worth nothing elsewhere. */
export const sourceAuthorization = (operation: Operation): AuthEntry => {
  const invoked = invokedBy(operation)
  if (invoked === undefined) throw new Error("the operation is no contract call")
  return sourceEntry(invocationOf(invoked))
}

/** The call of the settlement contract that an operation is; undefined when it is no contract call. */
export const callIn = (operationXdr: Uint8Array): SettleCall | undefined =>
  settleCall(callOfOperation(decodeOperation(operationXdr)))
