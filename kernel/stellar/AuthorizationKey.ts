// The key of an authorization, as text: its signer, its nonce and its last ledger. The ledger itself distinguishes
// authorizations by it; two that differ only in the expiry use up one nonce.
import { Result } from "effect"
import { Hex } from "effect/encoding"
import { addressText, decodeAddress, encodeAddress } from "./Address.ts"
import { type AuthEntry, credentialsOf } from "./AuthEntry.ts"

/** The key of an entry; undefined if its credentials are not an address's. */
export const authorizationKeyOf = (entry: AuthEntry): string | undefined => {
  const credentials = credentialsOf(entry)
  if (credentials === undefined) return undefined
  const { address, nonce, signatureExpirationLedger } = credentials
  return `${Hex.encode(encodeAddress(address))}:${nonce}:${signatureExpirationLedger}`
}

const withoutExpiry = (key: string): string => key.slice(0, key.lastIndexOf(":"))

/** Whether two keys belong to one nonce of one address. */
export const haveOneNonce = (a: string, b: string): boolean => withoutExpiry(a) === withoutExpiry(b)

export const readAuthorizationKey = (key: string): { readonly address: string; readonly nonce: bigint } | undefined => {
  const [hex = "", nonce = ""] = key.split(":")
  const bytes = Result.getOrUndefined(Hex.decode(hex))
  const address = bytes === undefined ? undefined : addressText(decodeAddress(bytes))
  return address === undefined ? undefined : { address, nonce: BigInt(nonce) }
}
