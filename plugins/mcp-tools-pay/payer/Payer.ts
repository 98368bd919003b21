// The paying account: authorizes a transfer when asked. Wherever its key is held, it returns the same authorization
// entry with a signature in it, which is verified before use. A key never leaves it, and no error says more than that
// it did not sign.
import { Context, type Effect } from "effect"
import type { ToolError } from "../../mcp-tools/contract.ts"

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
    readonly address: Effect.Effect<string, ToolError>
    /** XDR of the entry with its signature. */
    readonly sign: (request: SignRequest) => Effect.Effect<Uint8Array, ToolError>
  }
>()("tollkeeper/mcp-tools-pay/Payer") {}
