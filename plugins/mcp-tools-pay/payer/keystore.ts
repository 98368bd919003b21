// A seed in a file, sealed with AES-256-GCM; the key is only in the environment. Format: `{version: 1, cipher:
// "aes-256-gcm", nonce, sealed, tag}`, each in base64; sealed is the seed as text, S… (S251). A file that was altered
// or sealed under another key does not open.
import { Effect, FileSystem, Option, Redacted, Result, Schema } from "effect"
import { Base64, Hex } from "effect/encoding"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

const Keystore = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    cipher: Schema.Literal("aes-256-gcm"),
    nonce: Schema.String,
    sealed: Schema.String,
    tag: Schema.String
  })
)

const decodeKeystore = Schema.decodeUnknownOption(Keystore)

/** 32 bytes in hex or base64. */
export const readKey = (text: string): Uint8Array | undefined =>
  [Result.getOrUndefined(/^[0-9a-fA-F]{64}$/.test(text) ? Hex.decode(text) : Base64.decode(text))].find(
    (bytes) => bytes?.length === 32
  )

export const openKeystore = Effect.fn("Payer.openKeystore")(function* (
  crypto: Crypto["Service"],
  file: string,
  key: Redacted.Redacted
) {
  const refuse = (message: string) => new SettingsRefused({ path: "signer.keystore_file", message })
  const files = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(files.readFileString(file), () => refuse("the keystore cannot be read"))
  const keystore = Option.getOrUndefined(decodeKeystore(text))
  if (keystore === undefined) return yield* refuse("it is not a keystore of this format")
  const bytes = [keystore.nonce, keystore.sealed, keystore.tag].map((part) =>
    Result.getOrElse(Base64.decode(part), () => new Uint8Array())
  )
  const keyBytes = readKey(Redacted.value(key).trim())
  if (keyBytes === undefined)
    return yield* new SettingsRefused({
      path: "signer.keystore_file",
      message: "its key requires 32 bytes in hex or base64"
    })
  const opened = crypto.aes256GcmOpen(keyBytes, bytes[0]!, bytes[1]!, bytes[2]!)
  if (opened === undefined) return yield* refuse("it does not open with this key")
  return Redacted.make(new TextDecoder().decode(opened))
})
