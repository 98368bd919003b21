// Who pays: an account that authorizes a transfer when asked. However it holds its key, it gives back the same
// authorization entry with a signature in it; what comes back is checked before it is used, whoever signed. A key never
// leaves it, and no error says more than that it did not sign.
import { Context, type Effect } from "effect"
import type { ToolFault } from "../../mcp-tools/contract.ts"

export interface SignRequest {
  /** XDR of the entry without a signature. */
  readonly entryXdr: Uint8Array
  /** The 32 bytes that the network checks a signature against. */
  readonly payload: Uint8Array
  /** The entry around a signature of one key. */
  readonly around: (publicKey: Uint8Array, signature: Uint8Array) => Uint8Array
}

export class Payer extends Context.Service<
  Payer,
  {
    /** The account that pays, G… */
    readonly address: Effect.Effect<string, ToolFault>
    /** XDR of the entry with its signature. */
    readonly sign: (request: SignRequest) => Effect.Effect<Uint8Array, ToolFault>
  }
>()("tollkeeper/mcp-tools-pay/Payer") {}
