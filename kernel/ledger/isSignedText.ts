// A text that an account signed, as wallets show it to people (SEP-53): ed25519 over the SHA-256 of "Stellar Signed
// Message:", a newline and the text. So a wallet's signature over a text is never valid for a transaction. Pure.
import { accountKeyOf } from "../stellar/Address.ts"
import type { Crypto } from "../platform/Crypto.ts"
import { verifyEd25519 } from "./Ed25519.ts"

const prefix = "Stellar Signed Message:\n"

/** Also false for a contract (C…), which cannot sign a text without a key. */
export const isSignedText = (
  crypto: Crypto["Service"],
  account: string,
  text: string,
  signature: Uint8Array
): boolean => {
  const key = accountKeyOf(account)
  if (key === undefined) return false
  return verifyEd25519(crypto, key, crypto.sha256(new TextEncoder().encode(prefix + text)), signature)
}
