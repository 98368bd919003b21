// The payload of an `upto` payment on the wire: `{ transaction }`, base64 XDR of an unsigned envelope around one call
// of the settlement contract with the maximum as its amount, authorized by the payer. Decoded once into what the checks
// look at, and made again with the amount that is settled and the facilitator's authorization beside the payer's.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Result } from "effect"
import { encodeEnvelope, type Envelope, readEnvelope } from "../../kernel/stellar/Envelope.ts"
import { addressText } from "../../kernel/stellar/Address.ts"

export type AuthEntry = xdr.SorobanAuthorizationEntryWire
export type Invocation = xdr.SorobanAuthorizedInvocationWire
export type Value = xdr.ScValWire

/** Discriminants of the ledger's XDR that this scheme meets. */
const envelopeV1 = 2
const invokeHostFunction = 24
const invokeContract = 0
const contractFunction = 0
const credentialsAddress = 1
const credentialsAddressV2 = 2
const scalar = { void: 1, u32: 3, i128: 10, bytes: 13, symbol: 15, vec: 16, map: 17, address: 18 } as const
const muxedAddress = 2

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

export interface SettleCall {
  readonly operation: xdr.OperationWire
  readonly contract: string
  readonly functionName: string
  readonly values: ReadonlyArray<Value>
  readonly args: SettleArgs
  readonly auth: ReadonlyArray<AuthEntry>
}

export interface UptoPayload {
  readonly tx: xdr.TransactionWire
  readonly source: string
  /** Absent when the transaction is not one contract call. */
  readonly call: SettleCall | undefined
}

/** How many arguments `settle` has, the last of which the payer does not sign. */
export const argumentCount = 9
/** Where the facilitator stands among them. */
export const facilitatorPosition = 6

const text = new TextDecoder()

export const symbolText = (value: unknown): string =>
  typeof value === "string"
    ? value
    : text.decode((value as { readonly bytes?: Uint8Array }).bytes ?? (value as Uint8Array))

export const addressOf = (value: Value | undefined): string | undefined =>
  value?.type === scalar.address ? addressText(value.address) : undefined

export const i128Of = (value: Value | undefined): bigint | undefined =>
  value?.type === scalar.i128 ? (BigInt(value.i128.hi) << 64n) + BigInt.asUintN(64, BigInt(value.i128.lo)) : undefined

export const u32Of = (value: Value | undefined): number | undefined =>
  value?.type === scalar.u32 ? value.u32 : undefined

export const symbolOf = (value: Value | undefined): string | undefined =>
  value?.type === scalar.symbol ? symbolText(value.sym) : undefined

export const vecOf = (value: Value | undefined): ReadonlyArray<Value> | undefined =>
  value?.type === scalar.vec ? (value.vec ?? undefined) : undefined

/** The fields of a map with symbols as keys. */
export const fieldsOf = (value: Value | undefined): ReadonlyMap<string, Value> | undefined =>
  value?.type === scalar.map ? new Map((value.map ?? []).map(({ key, val }) => [symbolOf(key) ?? "", val])) : undefined

export const bytesOf = (value: Value | undefined): Uint8Array | undefined =>
  value?.type === scalar.bytes ? (value.bytes as Uint8Array) : undefined

export const isVoid = (value: Value): boolean => value.type === scalar.void

const i128Value = (amount: bigint): Value => ({
  type: scalar.i128,
  i128: { hi: BigInt.asIntN(64, amount >> 64n), lo: BigInt.asUintN(64, amount) }
})

const isMuxed = (value: Value | undefined): boolean =>
  value?.type === scalar.address && (value.address.type as number) === muxedAddress

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

const callOf = (tx: xdr.TransactionWire): SettleCall | undefined => {
  const [operation] = tx.operations
  if (tx.operations.length !== 1 || operation === undefined || operation.body.type !== invokeHostFunction)
    return undefined
  const { auth, hostFunction } = operation.body.invokeHostFunctionOp
  if (hostFunction.type !== invokeContract) return undefined
  const { args, contractAddress, functionName } = hostFunction.invokeContract
  const contract = addressText(contractAddress)
  return contract === undefined
    ? undefined
    : { operation, contract, functionName: symbolText(functionName), values: args, args: settleArgs(args), auth }
}

export const accountText = (account: xdr.MuxedAccountWire): string =>
  StrKey.encodeEd25519PublicKey((account.type === 0 ? account.ed25519 : account.med25519.ed25519) as Uint8Array)

/** Decodes `payload.transaction`; the reason names the fault, never the content. */
export const decodePayload = ({
  transaction
}: Readonly<Record<string, unknown>>): Result.Result<UptoPayload, { readonly reason: string }> => {
  if (typeof transaction !== "string") return Result.fail({ reason: "payload.transaction is not a string" })
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) return Result.fail({ reason: `payload.transaction is ${read.failure.reason}` })
  const envelope: Envelope = read.success
  if (envelope.type !== envelopeV1) return Result.fail({ reason: "payload.transaction is not a plain v1 envelope" })
  const { tx } = envelope.v1
  return Result.succeed({ tx, source: accountText(tx.sourceAccount), call: callOf(tx) })
}

/** The address credentials of an entry, for the two kinds that a payment may carry. */
export const credentialsOf = (entry: AuthEntry) => {
  const { credentials } = entry
  switch (credentials.type) {
    case credentialsAddress:
      return { kind: "address" as const, ...credentials.address }
    case credentialsAddressV2:
      return { kind: "address-v2" as const, ...credentials.addressV2 }
    default:
      return undefined
  }
}

/** The contract call that an invocation authorizes; undefined for any other kind. */
export const contractCallOf = ({ function: fn }: Invocation) =>
  fn.type === contractFunction
    ? {
        contract: addressText(fn.contractFn.contractAddress),
        functionName: symbolText(fn.contractFn.functionName),
        args: fn.contractFn.args
      }
    : undefined

export const encodeValues = (values: ReadonlyArray<Value>): Uint8Array =>
  xdr.ScVal.schema.encode({ type: scalar.vec, vec: [...values] } as never)

/** Every address that stands anywhere in a value, to any depth. */
export const addressesIn = (value: unknown, found: Set<string> = new Set()): Set<string> => {
  const pending: Array<unknown> = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (next instanceof Uint8Array || typeof next !== "object" || next === null) continue
    const record = next as Record<string, unknown>
    if (record["ed25519"] instanceof Uint8Array) found.add(StrKey.encodeEd25519PublicKey(record["ed25519"]))
    if (record["contractId"] instanceof Uint8Array) found.add(StrKey.encodeContract(record["contractId"]))
    pending.push(...Object.values(record))
  }
  return found
}

/** The same call with the amount that is to be settled, and no source of its own. */
export const callWithAmount = (call: SettleCall, actual: bigint, auth: ReadonlyArray<AuthEntry>): xdr.OperationWire => {
  const { body } = call.operation
  if (body.type !== invokeHostFunction || body.invokeHostFunctionOp.hostFunction.type !== invokeContract)
    throw new Error("the operation is no contract call")
  const { hostFunction } = body.invokeHostFunctionOp
  const args = [...call.values.slice(0, -1), i128Value(actual)]
  const invoked = { ...hostFunction, invokeContract: { ...hostFunction.invokeContract, args } }
  return {
    sourceAccount: null,
    body: { ...body, invokeHostFunctionOp: { hostFunction: invoked, auth: [...auth] } }
  } as xdr.OperationWire
}

/** The whole call as the facilitator authorizes it: all arguments, nothing below it. */
export const facilitatorInvocation = (operation: xdr.OperationWire): Invocation => {
  const { body } = operation
  if (body.type !== invokeHostFunction || body.invokeHostFunctionOp.hostFunction.type !== invokeContract)
    throw new Error("the operation is no contract call")
  return {
    function: {
      type: contractFunction,
      contractFn: body.invokeHostFunctionOp.hostFunction.invokeContract
    },
    subInvocations: []
  } as Invocation
}

/** The facilitator's authorization as the source of a simulation gives it: unsigned, and worth nothing elsewhere. */
export const sourceAuthorization = (operation: xdr.OperationWire): AuthEntry =>
  ({ credentials: { type: 0 }, rootInvocation: facilitatorInvocation(operation) }) as AuthEntry

/** The authorizations of an operation; none when it is no contract call. */
export const entriesOf = (operationXdr: Uint8Array): ReadonlyArray<AuthEntry> => {
  const { body } = xdr.Operation.schema.decode(operationXdr)
  return body.type === invokeHostFunction ? body.invokeHostFunctionOp.auth : []
}

/** The contract call that an operation is; undefined when it is anything else. */
export const callIn = (operationXdr: Uint8Array): SettleCall | undefined =>
  callOf({ operations: [xdr.Operation.schema.decode(operationXdr)] } as unknown as xdr.TransactionWire)

/** An envelope around an operation that is only simulated, with the account that stands as its source. */
export const simulationEnvelope = (operationXdr: Uint8Array, source: string): string =>
  encodeEnvelope({
    type: envelopeV1,
    v1: {
      tx: {
        sourceAccount: { type: 0, ed25519: StrKey.decodeEd25519PublicKey(source) },
        fee: 100,
        seqNum: 1n,
        cond: { type: 0 },
        memo: { type: 0 },
        operations: [xdr.Operation.schema.decode(operationXdr)],
        ext: { v: 0 }
      },
      signatures: []
    }
  } as never)
