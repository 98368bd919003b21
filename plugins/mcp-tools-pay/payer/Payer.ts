// The paying account, which authorizes transfers. Every implementation returns the same authorization entry with a
// signature in it, and the entry is verified before use. A key never leaves its payer, and an error only reports that
// the payer did not sign.
import { Context, type Effect } from "effect"
import type { ToolError } from "../../mcp-tools/contract.ts"

interface SignRequest {
  /** XDR of the entry without a signature. */
  readonly entryXdr: Uint8Array
  /** The 32 bytes that the network verifies the signature against. */
  readonly payload: Uint8Array
  readonly around: (publicKey: Uint8Array, signature: Uint8Array) => Uint8Array
}

export class Payer extends Context.Service<
  Payer,
  {
    /** The key that signs, G… */
    readonly key: Effect.Effect<string, ToolError>
    /** The paying account: the key's own, or the spending account of that key (C…). */
    readonly address: Effect.Effect<string, ToolError>
    /** XDR of the entry with its signature. */
    readonly sign: (request: SignRequest) => Effect.Effect<Uint8Array, ToolError>
  }
>()("tollkeeper/mcp-tools-pay/Payer") {}
