// The payload of an `exact` payment on the wire: `{ transaction }`, base64 XDR of an unsigned envelope around one
// signed contract call. Decoded once into what the checks look at; anything that is not exactly one known form is told
// apart here.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Result } from "effect"
import { type Envelope, type Operation, readEnvelope } from "../../kernel/stellar/Envelope.ts"
import { addressText } from "../../kernel/stellar/Address.ts"

export type AuthEntry = xdr.SorobanAuthorizationEntryWire

/** A decoded payload. The call is what the operation says, whatever its function and arguments turn out to be. */
export interface ExactPayload {
  readonly transactionText: string
  readonly envelope: Envelope
  readonly tx: xdr.TransactionWire
  readonly source: string
  readonly signatures: number
}

const text = new TextDecoder()

/** The bytes of a symbol or string value of the XDR, as text. */
export const symbolText = (value: unknown): string =>
  typeof value === "string"
    ? value
    : text.decode((value as { readonly bytes?: Uint8Array }).bytes ?? (value as Uint8Array))

export const accountText = (account: xdr.MuxedAccountWire): string =>
  StrKey.encodeEd25519PublicKey((account.type === 0 ? account.ed25519 : account.med25519.ed25519) as Uint8Array)

/** Decodes `payload.transaction`; the reason names the fault, never the content. */
export const decodePayload = ({
  transaction
}: Readonly<Record<string, unknown>>): Result.Result<ExactPayload, { readonly reason: string }> => {
  if (typeof transaction !== "string") return Result.fail({ reason: "payload.transaction is not a string" })
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) return Result.fail({ reason: `payload.transaction is ${read.failure.reason}` })
  const envelope = read.success
  if (envelope.type !== 2) return Result.fail({ reason: "payload.transaction is not a plain v1 envelope" })
  const { signatures, tx } = envelope.v1
  return Result.succeed({
    transactionText: transaction,
    envelope,
    tx,
    source: accountText(tx.sourceAccount),
    signatures: signatures.length
  })
}

export interface ContractCall {
  readonly operation: Operation
  readonly contract: string
  readonly functionName: string
  readonly args: ReadonlyArray<xdr.ScValWire>
  readonly auth: ReadonlyArray<AuthEntry>
}

/** The one contract call of a transaction, or undefined when it is anything else. */
export const callOf = (tx: xdr.TransactionWire): ContractCall | undefined => {
  const [operation] = tx.operations
  if (tx.operations.length !== 1 || operation === undefined || operation.body.type !== 24) return undefined
  const { auth, hostFunction } = operation.body.invokeHostFunctionOp
  if (hostFunction.type !== 0) return undefined
  const { args, contractAddress, functionName } = hostFunction.invokeContract
  const contract = addressText(contractAddress)
  return contract === undefined
    ? undefined
    : { operation, contract, functionName: symbolText(functionName), args, auth }
}

/** A token transfer's arguments. `muxed`: an address form that carries an id beside the account. */
export interface TransferArgs {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly amount: bigint | undefined
  readonly muxed: boolean
}

const addressArg = (
  value: xdr.ScValWire | undefined
): { readonly address: string | undefined; readonly muxed: boolean } => {
  if (value === undefined || value.type !== 18) return { address: undefined, muxed: false }
  return { address: addressText(value.address), muxed: value.address.type === 2 }
}

export const transferArgs = (args: ReadonlyArray<xdr.ScValWire>): TransferArgs => {
  const from = addressArg(args[0])
  const to = addressArg(args[1])
  const amount = args[2]
  return {
    from: from.address,
    to: to.address,
    muxed: from.muxed || to.muxed,
    amount:
      amount?.type === 10 ? (BigInt(amount.i128.hi) << 64n) + BigInt.asUintN(64, BigInt(amount.i128.lo)) : undefined
  }
}

/** The address credentials of an entry, for the two kinds that a payment may carry. */
export const credentialsOf = (entry: AuthEntry) => {
  const { credentials } = entry
  switch (credentials.type) {
    case 1:
      return { kind: "address" as const, ...credentials.address }
    case 2:
      return { kind: "address-v2" as const, ...credentials.addressV2 }
    default:
      return undefined
  }
}

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
