// A `G…` address as its 32 bytes; anything else is nothing.
import { StrKey } from "@stellar/stellar-sdk/base"

export const decodeAccount = (address: string): Uint8Array | undefined =>
  StrKey.isValidEd25519PublicKey(address) ? StrKey.decodeEd25519PublicKey(address) : undefined
