// A `G…` address as its 32 bytes; anything else is nothing.
import { decodeStrKey } from "../engine/xdr/StrKey.ts"

export const decodeAccount = (address: string): Uint8Array | undefined => decodeStrKey("account", address)
