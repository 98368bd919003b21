// Randomness that is the same in every run: the nonces and seeds that simulations take, from a word. Each reading is
// the HMAC of its number under the word, so that the same requests in the same order get the same answers. Not secret,
// and for nothing but tests.
import type { EngineCrypto } from "../engine/EngineCrypto.ts"

const BLOCK_BYTES = 32

export const seededCrypto = (crypto: EngineCrypto, word: string): EngineCrypto => {
  const utf8 = new TextEncoder()
  const key = crypto.sha256(utf8.encode(`tollkeeper local ledger seed: ${word}`))
  let readings = 0
  const randomBytes = (length: number): Uint8Array => {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += BLOCK_BYTES)
      bytes.set(crypto.hmacSha256(key, utf8.encode(String(readings++))).subarray(0, length - at), at)
    return bytes
  }
  return { ...crypto, randomBytes }
}
