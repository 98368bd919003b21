// Who pays: an account that authorizes a transfer when asked. However it holds its key, it gives back the same
// authorization entry with a signature in it; what comes back is checked before it is used, whoever signed. A key never
// leaves it, and no error says more than that it did not sign.
import { type Effect } from "effect"
import type { ToolFault } from "../ToolFault.ts"

export interface Payer {
  /** The account that pays, G… */
  readonly address: Effect.Effect<string, ToolFault>
  /**
   * XDR of the entry with its signature. `entryXdr` has none; `payload` is the 32 bytes that the network checks one
   * against.
   */
  readonly sign: (request: {
    readonly entryXdr: Uint8Array
    readonly payload: Uint8Array
    /** The entry around a signature of one key. */
    readonly around: (publicKey: Uint8Array, signature: Uint8Array) => Uint8Array
  }) => Effect.Effect<Uint8Array, ToolFault>
}
