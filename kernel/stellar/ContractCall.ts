// The single contract call of a transaction or an operation, with any function and arguments; undefined if it is
// anything else.
import { xdr } from "@stellar/stellar-sdk/base"
import { addressText, contractAddressOf } from "./Address.ts"
import type { AuthEntry } from "./AuthEntry.ts"
import type { Operation, Transaction } from "./Envelope.ts"
import { hostFunctionKind, operationKind } from "./kinds.ts"
import { bytesRead, readXdr } from "./readXdr.ts"
import { symbolText, type Value } from "./Value.ts"

/** A contract, a function and its arguments, as in the XDR. */
export type InvokeArgs = xdr.InvokeContractArgsWire

export interface ContractCall {
  readonly operation: Operation
  /** Contract address, C… */
  readonly contract: string
  readonly functionName: string
  readonly args: ReadonlyArray<xdr.ScValWire>
  readonly auth: ReadonlyArray<AuthEntry>
  readonly invoked: InvokeArgs
}

/** The authorizations of an operation; empty unless it invokes a host function. */
export const authOf = ({ body }: Operation): ReadonlyArray<AuthEntry> =>
  body.type === operationKind.invokeHostFunction ? body.invokeHostFunctionOp.auth : []

/** The call of an operation, for any kind of contract address. */
export const invokedBy = ({ body }: Operation): InvokeArgs | undefined =>
  body.type === operationKind.invokeHostFunction &&
  body.invokeHostFunctionOp.hostFunction.type === hostFunctionKind.invokeContract
    ? body.invokeHostFunctionOp.hostFunction.invokeContract
    : undefined

export const callOfOperation = (operation: Operation): ContractCall | undefined => {
  const invoked = invokedBy(operation)
  const contract = invoked === undefined ? undefined : addressText(invoked.contractAddress)
  return invoked === undefined || contract === undefined
    ? undefined
    : {
        operation,
        contract,
        functionName: symbolText(invoked.functionName),
        args: invoked.args,
        auth: authOf(operation),
        invoked
      }
}

/** The contract call of a transaction that consists of nothing else. */
export const callOf = ({ operations }: Pick<Transaction, "operations">): ContractCall | undefined => {
  const [operation] = operations
  return operations.length !== 1 || operation === undefined ? undefined : callOfOperation(operation)
}

export const callTo = (contract: string, functionName: string, args: ReadonlyArray<Value>): InvokeArgs =>
  ({ contractAddress: contractAddressOf(contract), functionName, args: [...args] }) as unknown as InvokeArgs

/** An operation without a source that makes this call under these authorizations. */
export const callOperation = (invoked: InvokeArgs, auth: ReadonlyArray<AuthEntry>): Operation =>
  ({
    sourceAccount: null,
    body: {
      type: operationKind.invokeHostFunction,
      invokeHostFunctionOp: {
        hostFunction: { type: hostFunctionKind.invokeContract, invokeContract: invoked },
        auth: [...auth]
      }
    }
  }) as unknown as Operation

/** A value that was read returns its original bytes; only a new value is encoded. */
export const encodeInvoked = (invoked: InvokeArgs): Uint8Array =>
  bytesRead(invoked) ?? xdr.InvokeContractArgs.schema.encode(invoked)
export const encodeOperation = (operation: Operation): Uint8Array =>
  bytesRead(operation) ?? xdr.Operation.schema.encode(operation)
export const decodeOperation = (bytes: Uint8Array): Operation => readXdr(xdr.Operation.schema, bytes)
