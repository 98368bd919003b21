// The key of an authorization, as text: its signer, its nonce and its last ledger. It is how the ledger itself
// distinguishes authorizations; two that differ in the expiry alone use up one nonce.
import { Result } from "effect"
import { Hex } from "effect/encoding"
import { addressText, decodeAddress, encodeAddress } from "./Address.ts"
import { type AuthEntry, credentialsOf } from "./AuthEntry.ts"

/** Of an entry; undefined when its credentials are not an address's. */
export const authorizationKeyOf = (entry: AuthEntry): string | undefined => {
  const credentials = credentialsOf(entry)
  if (credentials === undefined) return undefined
  const { address, nonce, signatureExpirationLedger } = credentials
  return `${Hex.encode(encodeAddress(address))}:${nonce}:${signatureExpirationLedger}`
}

const withoutExpiry = (key: string): string => key.slice(0, key.lastIndexOf(":"))

/** Whether two keys are of one nonce of one address. */
export const haveOneNonce = (a: string, b: string): boolean => withoutExpiry(a) === withoutExpiry(b)

/** The address and nonce that a key was made of. */
export const readAuthorizationKey = (key: string): { readonly address: string; readonly nonce: bigint } | undefined => {
  const [hex = "", nonce = ""] = key.split(":")
  const bytes = Result.getOrUndefined(Hex.decode(hex))
  const address = bytes === undefined ? undefined : addressText(decodeAddress(bytes))
  return address === undefined ? undefined : { address, nonce: BigInt(nonce) }
}
