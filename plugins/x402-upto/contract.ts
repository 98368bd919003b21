// What `upto` gives to other plugins: its settlement contract as bytes, for deployment to a ledger.
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { wasmBase64, wasmHash } from "./contract/settleWasm.ts"

/** sha256 of the module, hex: the name of its code on every ledger. */
export const settlementWasmHash: string = wasmHash

/** The module. It has not been audited. */
export const settlementWasm = (): Uint8Array => Result.getOrThrow(Base64.decode(wasmBase64))
