// Where the sponsor may stand in a payment: as one argument of one contract call, with an authorization of its own for
// exactly that call. A scheme's plugin names the call and the position when it starts; the signer then signs such an
// authorization and nothing near it. A settlement that carries one is known by the sponsor's own signature in it, so
// that it can be signed again after a restart whether or not the scheme's plugin runs. Pure; nothing here signs.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { verifyEd25519 } from "../ledger/Ed25519.ts"
import { type Operation, sameBytes } from "../stellar/Envelope.ts"
import { addressText } from "../stellar/TransferEvents.ts"
import type { Crypto } from "../platform/Crypto.ts"

/** The one call in which the sponsor may stand, and at which of its arguments, from 0. */
export interface SponsoredCall {
  /** Contract address, C… */
  readonly contract: string
  readonly functionName: string
  readonly position: number
}

type Entry = xdr.SorobanAuthorizationEntryWire
type Call = xdr.InvokeContractArgsWire

const text = new TextDecoder()
const invokeHostFunction = 24
const invokeContract = 0
const credentialsAddress = 1
const addressValue = 18
const bytesOf = (call: Call): Uint8Array => xdr.InvokeContractArgs.schema.encode(call)
const nameOf = (name: unknown): string =>
  typeof name === "string" ? name : text.decode((name as { readonly bytes?: Uint8Array }).bytes ?? (name as Uint8Array))

/** The contract call of an operation, with its authorizations; undefined for any other operation. */
const callOf = ({ body }: Operation): { readonly call: Call; readonly entries: ReadonlyArray<Entry> } | undefined =>
  body.type === invokeHostFunction && body.invokeHostFunctionOp.hostFunction.type === invokeContract
    ? { call: body.invokeHostFunctionOp.hostFunction.invokeContract, entries: body.invokeHostFunctionOp.auth }
    : undefined

const isAddress = (value: xdr.ScValWire | undefined, address: string): boolean =>
  value?.type === addressValue && addressText(value.address) === address

/** The same call with nothing at one of its positions. */
const without = (call: Call, position: number): Call => ({
  ...call,
  args: call.args.map((argument, index) => (index === position ? ({ type: 1 } as xdr.ScValWire) : argument))
})

/** Whether `bytes` hold the 32 bytes of `key` anywhere: coarse on purpose, no structure can hide it. */
const contains = (bytes: Uint8Array, key: Uint8Array): boolean => {
  for (let at = bytes.indexOf(key[0]!); at >= 0 && at + 32 <= bytes.length; at = bytes.indexOf(key[0]!, at + 1)) {
    if (sameBytes(bytes.subarray(at, at + 32), key)) return true
  }
  return false
}

export const holdsAny = (bytes: Uint8Array, keys: ReadonlyArray<Uint8Array>): boolean =>
  keys.some((key) => contains(bytes, key))

/** Another's authorization, without the argument at which the sponsor may stand in the very same function. */
const othersBytes = (entry: Entry, call: Call, position: number): Uint8Array => {
  const { function: fn } = entry.rootInvocation
  const same =
    fn.type === 0 &&
    sameBytes(
      xdr.ScAddress.schema.encode(fn.contractFn.contractAddress),
      xdr.ScAddress.schema.encode(call.contractAddress)
    ) &&
    nameOf(fn.contractFn.functionName) === nameOf(call.functionName)
  return xdr.SorobanAuthorizationEntry.schema.encode(
    same
      ? {
          ...entry,
          rootInvocation: {
            ...entry.rootInvocation,
            function: { ...fn, contractFn: without(fn.contractFn, position) }
          }
        }
      : entry
  )
}

/** What is wrong with the operation as one in which only that argument, and its copies, name an account of ours. */
const namingFault = (
  call: Call,
  others: ReadonlyArray<Entry>,
  position: number,
  ourKeys: ReadonlyArray<Uint8Array>
): string | undefined => {
  const rest = [bytesOf(without(call, position)), ...others.map((entry) => othersBytes(entry, call, position))]
  return rest.some((bytes) => holdsAny(bytes, ourKeys))
    ? "an authorization of a call that names an account of ours elsewhere"
    : undefined
}

/** Which sponsor is to authorize this operation's call, or what is wrong with asking for it. */
export const judgeAuthorization = (
  operation: Operation,
  allowed: ReadonlyArray<SponsoredCall>,
  sponsors: ReadonlyArray<string>,
  ourKeys: ReadonlyArray<Uint8Array>
): { readonly sponsor: string } | { readonly fault: string } => {
  const found = callOf(operation)
  if (operation.sourceAccount != null || found === undefined)
    return { fault: "an authorization of what is no contract call" }
  const { call, entries } = found
  const contract = addressText(call.contractAddress)
  const rule = allowed.find(
    (candidate) => candidate.contract === contract && candidate.functionName === nameOf(call.functionName)
  )
  if (rule === undefined) return { fault: "an authorization of a call that no scheme has named" }
  const sponsor = sponsors.find((one) => isAddress(call.args[rule.position], one))
  if (sponsor === undefined) return { fault: "an authorization of a call in which the sponsor is not" }
  const fault = namingFault(call, entries, rule.position, ourKeys)
  return fault === undefined ? { sponsor } : { fault }
}

/** The invocation that the sponsor authorizes: the whole call, and nothing below it. */
export const ownInvocation = (operation: Operation): xdr.SorobanAuthorizedInvocationWire =>
  ({
    function: { type: 0, contractFn: callOf(operation)!.call },
    subInvocations: []
  }) as unknown as xdr.SorobanAuthorizedInvocationWire

/** What a signature of an authorization signs: 32 bytes. */
export const authorizationHash = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  nonce: bigint,
  signatureExpirationLedger: number,
  invocation: xdr.SorobanAuthorizedInvocationWire
): Uint8Array =>
  crypto.sha256(
    xdr.HashIdPreimage.schema.encode({
      type: 9,
      sorobanAuthorization: { networkId, nonce, signatureExpirationLedger, invocation }
    } as never)
  )

/** The signature value of an account with one key. */
const signatureValue = (publicKey: Uint8Array, signature: Uint8Array): xdr.ScValWire =>
  ({
    type: 16,
    vec: [
      {
        type: 17,
        map: [
          { key: { type: 15, sym: "public_key" }, val: { type: 13, bytes: publicKey } },
          { key: { type: 15, sym: "signature" }, val: { type: 13, bytes: signature } }
        ]
      }
    ]
  }) as unknown as xdr.ScValWire

export interface OwnAuthorization {
  readonly publicKey: Uint8Array
  readonly signature: Uint8Array
  readonly nonce: bigint
  readonly expiresLedger: number
}

/** The operation with the sponsor's authorization after those it has. */
export const withOwnAuthorization = (operation: Operation, own: OwnAuthorization): Operation => {
  if (operation.body.type !== invokeHostFunction) return operation
  const { body } = operation
  const entry = {
    credentials: {
      type: credentialsAddress,
      address: {
        address: { type: 0, accountId: { type: 0, ed25519: own.publicKey } },
        nonce: own.nonce,
        signatureExpirationLedger: own.expiresLedger,
        signature: signatureValue(own.publicKey, own.signature)
      }
    },
    rootInvocation: ownInvocation(operation)
  } as unknown as Entry
  const auth = [...body.invokeHostFunctionOp.auth, entry]
  return { ...operation, body: { ...body, invokeHostFunctionOp: { ...body.invokeHostFunctionOp, auth } } }
}

const signatureOf = (value: xdr.ScValWire): Uint8Array | undefined => {
  const map = value.type === 16 ? value.vec?.[0] : undefined
  const field = map?.type === 17 ? map.map?.[1]?.val : undefined
  return field?.type === 13 ? (field.bytes as Uint8Array) : undefined
}

/** Whether an entry is the sponsor's own: its credentials, its signature, the whole call and nothing below it. */
const isOwn = (
  entry: Entry,
  call: Call,
  sponsor: string,
  crypto: Crypto["Service"],
  networkId: Uint8Array
): boolean => {
  const { credentials, rootInvocation } = entry
  if (credentials.type !== credentialsAddress || rootInvocation.function.type !== 0) return false
  const { address, nonce, signature, signatureExpirationLedger } = credentials.address
  const signed = signatureOf(signature)
  return (
    addressText(address) === sponsor &&
    rootInvocation.subInvocations.length === 0 &&
    sameBytes(bytesOf(rootInvocation.function.contractFn), bytesOf(call)) &&
    signed !== undefined &&
    verifyEd25519(
      crypto,
      StrKey.decodeEd25519PublicKey(sponsor),
      authorizationHash(crypto, networkId, BigInt(nonce), signatureExpirationLedger, rootInvocation),
      signed
    )
  )
}

/** What is wrong with an operation of a settlement in which an account of ours stands, if anything. */
export const settlementNamingFault = (
  operation: Operation,
  sponsors: ReadonlyArray<string>,
  ourKeys: ReadonlyArray<Uint8Array>,
  crypto: Crypto["Service"],
  networkId: Uint8Array
): string | undefined => {
  const named = "a settlement that names an account of ours"
  if (!holdsAny(xdr.Operation.schema.encode(operation), ourKeys)) return undefined
  const found = callOf(operation)
  if (found === undefined) return named
  const { call, entries } = found
  const position = call.args.findIndex((argument) => sponsors.some((sponsor) => isAddress(argument, sponsor)))
  const sponsor = sponsors.find((one) => isAddress(call.args[position], one)) ?? ""
  const own = entries.filter((entry) => isOwn(entry, call, sponsor, crypto, networkId))
  if (own.length !== 1 || position < 0) return named
  const others = entries.filter((entry) => !own.includes(entry))
  return namingFault(call, others, position, ourKeys) === undefined ? undefined : named
}
