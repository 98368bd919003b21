// Seals the stored parts of a payment with AES-256-GCM. The key is derived from the seed or from the external signer's
// token, or the operator sets it. Any reader of a signed payment can spend it, so access to the store must not be
// enough to read one. Without seed, token or setting, the process makes its own key: it finishes its payments as long
// as it runs, and another process can only ask the ledger. Altered data, and data sealed for another reservation or
// under another key, do not open.
import { Context, Effect, Layer, Option, Redacted, Result } from "effect"
import { Base64 } from "effect/encoding"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { signerVariables, ToolsConfig } from "../../mcp-tools/contract.ts"
import { readKey } from "./keystore.ts"
import { openSeed } from "./openSeed.ts"

const encoder = new TextEncoder()
const purpose = encoder.encode("tollkeeper agent payments 1")
const prefix = "s1."
const nonceBytes = 12
const tagBytes = 16
/** Scrypt cost; a token may be short. */
const tokenCost = 16_384

interface Seal {
  readonly seal: (id: string, text: string) => string
  /** Undefined if the data was altered, or sealed for another id or under another key. */
  readonly open: (id: string, sealed: string) => string | undefined
  /** A seed of 32 bytes for a purpose, stable for the same key. */
  readonly seedFor: (purpose: string) => Redacted.Redacted<Uint8Array>
}

/** `seal` and `open` under one key. */
export const makeSeal = (crypto: Crypto["Service"], key: Redacted.Redacted<Uint8Array>): Seal => {
  // Each reservation has its own encryption key.
  const keyOf = (id: string) => crypto.hmacSha256(Redacted.value(key), encoder.encode(id))
  return {
    seedFor: (purpose) => Redacted.make(keyOf(`seed ${purpose}`)),
    seal: (id, text) => {
      const nonce = crypto.randomBytes(nonceBytes)
      const { sealed, tag } = crypto.aes256GcmSeal(keyOf(id), nonce, encoder.encode(text))
      return prefix + Base64.encode(Uint8Array.from([...nonce, ...tag])) + "." + Base64.encode(sealed)
    },
    open: (id, sealed) => {
      const [head = "", body = ""] = sealed.startsWith(prefix) ? sealed.slice(prefix.length).split(".") : []
      const [first, bytes] = [Base64.decode(head), Base64.decode(body)].map(Result.getOrUndefined)
      if (first?.length !== nonceBytes + tagBytes || bytes === undefined) return undefined
      const opened = crypto.aes256GcmOpen(keyOf(id), first.slice(0, nonceBytes), bytes, first.slice(nonceBytes))
      return opened === undefined ? undefined : new TextDecoder().decode(opened)
    }
  }
}

const keyVariable = "TOOLS_PAYMENTS_KEY"

const keyFor = Effect.gen(function* () {
  const crypto = yield* Crypto
  const { secret } = yield* Settings
  const { signer } = yield* ToolsConfig
  const named = secret(keyVariable)
  if (Option.isSome(named)) {
    const key = readKey(Redacted.value(named.value).trim())
    return key !== undefined
      ? crypto.hmacSha256(key, purpose)
      : yield* new SettingsRefused({
          path: "budget.store",
          message: `${keyVariable} requires 32 bytes in hex or base64`
        })
  }
  if (signer.mode !== "external") return crypto.hmacSha256(Redacted.value(yield* openSeed), purpose)
  const token = secret(signerVariables.token)
  if (Option.isSome(token)) return crypto.scrypt(encoder.encode(Redacted.value(token.value)), purpose, tokenCost)!
  yield* Effect.logWarning(
    `open payments cannot be finished by another process: set ${keyVariable} or ${signerVariables.token}`
  )
  return crypto.randomBytes(32)
})

export class PaymentSeal extends Context.Service<PaymentSeal, Seal>()("tollkeeper/mcp-tools-pay/PaymentSeal") {
  static readonly layer = Layer.effect(
    PaymentSeal,
    Effect.gen(function* () {
      return PaymentSeal.of(makeSeal(yield* Crypto, Redacted.make(yield* keyFor)))
    })
  )
}
