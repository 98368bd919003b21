// What is known of a payer's authorization by its key: who signed it, which nonce it uses up on the ledger, and whether
// an operation on the ledger used it for exactly one settlement. Pure.
import { xdr } from "@stellar/stellar-sdk/base"
import { Option, Result } from "effect"
import { Hex } from "effect/encoding"
import { addressText } from "../../kernel/stellar/Address.ts"
import type { Authorization, Promise } from "../../kernel/payment/Scheme.ts"
import type { NonceUse } from "../../kernel/settlement/Authorizations.ts"
import { type AuthEntry, callIn, credentialsOf, entriesOf, type UptoPayload } from "./UptoWire.ts"

/** Payer, nonce and expiry: what the ledger itself keeps an authorization apart by. */
const keyOf = (entry: AuthEntry): string | undefined => {
  const credentials = credentialsOf(entry)
  if (credentials === undefined) return undefined
  const address = Hex.encode(xdr.ScAddress.schema.encode(credentials.address))
  return `${address}:${credentials.nonce}:${credentials.signatureExpirationLedger}`
}

export const authorizationOf = ({ call }: UptoPayload): Option.Option<Authorization> => {
  const [entry] = call?.auth ?? []
  const credentials = entry === undefined ? undefined : credentialsOf(entry)
  const payer = credentials === undefined ? undefined : addressText(credentials.address)
  const key = entry === undefined ? undefined : keyOf(entry)
  return key === undefined || payer === undefined ? Option.none() : Option.some({ key, payer })
}

/** The address and nonce that a key was made of. */
export const readKey = (key: string): { readonly address: string; readonly nonce: bigint } | undefined => {
  const [hex = "", nonce = ""] = key.split(":")
  const bytes = Result.getOrUndefined(Hex.decode(hex))
  const address = bytes === undefined ? undefined : addressText(xdr.ScAddress.schema.decode(bytes))
  return address === undefined ? undefined : { address, nonce: BigInt(nonce) }
}

/** How an operation uses an authorization's nonce: as exactly this settlement, or otherwise. */
export const useIn = (contract: string, key: string, promise: Promise, operationXdr: Uint8Array): NonceUse => {
  const keys = entriesOf(operationXdr).flatMap((entry) => keyOf(entry) ?? [])
  // Address and nonce: what the ledger keeps uses apart by. The expiry is what two signatures may differ in.
  const nonceOf = (text: string) => text.slice(0, text.lastIndexOf(":"))
  if (!keys.some((one) => nonceOf(one) === nonceOf(key))) return "none"
  const call = callIn(operationXdr)
  const isSame =
    keys.includes(key) &&
    call?.contract === contract &&
    call.functionName === "settle" &&
    call.args.payer === promise.payer &&
    call.args.payTo === promise.payTo &&
    call.args.token === promise.asset &&
    call.args.actual === promise.amount
  return isSame ? "same" : "other"
}
