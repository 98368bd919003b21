// Settlement ids: random UUIDs of version 4.
import { Hex } from "effect/encoding"
import type { Crypto } from "../../platform/Crypto.ts"

export const newId = (crypto: Crypto["Service"]): string => {
  const hex = Hex.encode(crypto.randomBytes(16))
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
