// The ledger's order of signer keys: by kind, then by content. An account's signers are kept in it.
import { SignerKeyType } from "../engine/xdr/types.ts"
import { compareBytes } from "../engine/xdr/Xdr.ts"
import type { SignerKey } from "./Wire.ts"

const keyBytes = (key: SignerKey): Uint8Array => {
  switch (key.type) {
    case SignerKeyType.ed25519:
      return key.ed25519
    case SignerKeyType.preAuthTx:
      return key.preAuthTx
    case SignerKeyType.hashX:
      return key.hashX
    case SignerKeyType.signedPayload:
      return new Uint8Array([...key.ed25519SignedPayload.ed25519, ...key.ed25519SignedPayload.payload])
  }
}

/** Negative, 0 or positive. */
export const compareSignerKeys = (a: SignerKey, b: SignerKey): number =>
  a.type - b.type || compareBytes(keyBytes(a), keyBytes(b))
