// A remote key: its public key, and its signatures. A protocol's client only makes the request; the holder checks that
// the answer is a signature of the requested hash, by the expected key.
import type { Effect } from "effect"
import type { HttpClient } from "effect/http"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import type { LedgerUnavailable } from "../../ledger/LedgerUnavailable.ts"
import type { Crypto } from "../../platform/Crypto.ts"

type Ask<A> = Effect.Effect<A, LedgerUnavailable, HttpClient.HttpClient>

export interface RemoteKey {
  /** 32 bytes. */
  readonly publicKey: Ask<Uint8Array>
  /** 64 bytes over exactly these bytes: the 32 of a hash, or a message of receipts. */
  readonly sign: (bytes: Uint8Array) => Ask<Uint8Array>
}

export type MakeRemoteKey = (values: RemoteSignerValues, crypto: Crypto["Service"]) => RemoteKey
