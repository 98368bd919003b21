// The only authorization that agents' payments sign: a single call `transfer(payer, payTo, amount)` of the asset's
// contract, with its own nonce and its own last ledger. To open a payment channel, it is `deposit` of the channel's
// contract with one transfer to that contract as its only subinvocation. The signature thus covers exactly the payment.
// An operator's command also signs the start and the end of a channel's withdrawal, which pays only the payer.
import { Address, buildAuthorizationEntryPreimage, nativeToScVal, StrKey, xdr } from "@stellar/stellar-sdk/base"
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { addressCredentials } from "../../../kernel/stellar/AuthEntry.ts"
import { encodeValue, type Value } from "../../../kernel/stellar/Value.ts"
import { type ChannelConfig, depositArgs, withdrawArgs } from "../../x402-batch/contract.ts"
import type { Authorization } from "../budget/Reservation.ts"

export interface Transfer {
  readonly asset: string
  readonly payTo: string
  /** Atomic units. */
  readonly amount: bigint
  /** Set if `payTo` is the batch contract and the money goes into this channel. */
  readonly channel?: ChannelConfig | undefined
  /** The channel is not paid into, but withdrawn from. */
  readonly withdraw?: "withdraw_start" | "withdraw_end" | undefined
}

const scVal = (value: Value): xdr.ScVal => xdr.ScVal.fromXdr(encodeValue(value))

const transferCall = ({ amount, asset, payTo }: Transfer, payer: string): xdr.InvokeContractArgs =>
  new xdr.InvokeContractArgs({
    contractAddress: new Address(asset).toScAddress(),
    functionName: "transfer",
    args: [new Address(payer).toScVal(), new Address(payTo).toScVal(), nativeToScVal(amount, { type: "i128" })]
  })

/** The contract call of a transfer, of the deposit that makes it, or of a withdrawal's step. */
export const callOf = (transfer: Transfer, payer: string): xdr.InvokeContractArgs =>
  transfer.channel === undefined
    ? transferCall(transfer, payer)
    : new xdr.InvokeContractArgs({
        contractAddress: new Address(transfer.payTo).toScAddress(),
        functionName: transfer.withdraw ?? "deposit",
        args: (transfer.withdraw === undefined
          ? depositArgs(payer, transfer.channel, transfer.amount)
          : withdrawArgs(transfer.channel)
        ).map(scVal)
      })

const invocationOf = (
  call: xdr.InvokeContractArgs,
  subInvocations: Array<xdr.SorobanAuthorizedInvocation> = []
): xdr.SorobanAuthorizedInvocation =>
  new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call),
    subInvocations
  })

/** An authorization in a network's format: the network's protocol determines the version of the credentials. */
interface WrittenAuthorization extends Authorization {
  readonly protocolVersion: number
}

/** The entry with the given signature value; void means none. */
export const entryWith = (
  transfer: Transfer,
  { expirationLedger, nonce, payer, protocolVersion }: WrittenAuthorization,
  signature: xdr.ScVal
): xdr.SorobanAuthorizationEntry =>
  new xdr.SorobanAuthorizationEntry({
    rootInvocation: invocationOf(
      callOf(transfer, payer),
      transfer.channel === undefined || transfer.withdraw !== undefined
        ? []
        : [invocationOf(transferCall(transfer, payer))]
    ),
    credentials: addressCredentials(
      new xdr.SorobanAddressCredentials({
        address: new Address(payer).toScAddress(),
        nonce,
        signatureExpirationLedger: expirationLedger,
        signature
      }),
      protocolVersion
    )
  })

/** The 32 bytes that the network verifies a signature of the entry against. */
export const payloadOf = (
  crypto: Crypto["Service"],
  entry: xdr.SorobanAuthorizationEntry,
  expirationLedger: number,
  passphrase: string
): Uint8Array => crypto.sha256(buildAuthorizationEntryPreimage(entry, expirationLedger, passphrase).toXdr())

/** The signature value of an account with one key, and of a spending account. */
export const signatureValue = (publicKey: Uint8Array, signature: Uint8Array): xdr.ScVal =>
  xdr.ScVal.scvVec([
    xdr.ScVal.scvMap([
      new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("public_key"), val: xdr.ScVal.scvBytes(publicKey) }),
      new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("signature"), val: xdr.ScVal.scvBytes(signature) })
    ])
  ])

/**
 * True if `signedXdr` is the entry of this transfer with a valid signature of the signer's key and nothing else. The
 * signature is located by encoding a probe of the same length, and the whole entry is rebuilt around it.
 */
export const isSignedAs = (
  crypto: Crypto["Service"],
  signer: string,
  transfer: Transfer,
  authorization: WrittenAuthorization,
  payload: Uint8Array,
  signedXdr: Uint8Array
): boolean => {
  const key = StrKey.decodeEd25519PublicKey(signer)
  const withSignature = (signature: Uint8Array) =>
    entryWith(transfer, authorization, signatureValue(key, signature)).toXdr()
  const [low, high] = [withSignature(new Uint8Array(64)), withSignature(new Uint8Array(64).fill(0xff))]
  const at = low.findIndex((byte, i) => byte !== high[i])
  if (signedXdr.length !== low.length) return false
  const signature = signedXdr.slice(at, at + 64)
  return (
    withSignature(signature).every((byte, i) => byte === signedXdr[i]) && verifyEd25519(crypto, key, payload, signature)
  )
}
