// A payer with its seed in this process, from an environment variable or a keystore. The seed is `Redacted` and only
// read to sign.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Redacted } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Payer } from "./Payer.ts"

/** Reads a seed, S…; the error contains the setting's name and never its value. */
export const readSeed = (
  path: string,
  text: Redacted.Redacted
): Effect.Effect<Redacted.Redacted<Uint8Array>, SettingsRefused> =>
  Effect.try({
    try: () => Redacted.make(StrKey.decodeEd25519SecretSeed(Redacted.value(text).trim())),
    catch: () => new SettingsRefused({ path, message: "a secret seed (S…) is required" })
  })

export const seedPayer = (crypto: Crypto["Service"], seed: Redacted.Redacted<Uint8Array>): Payer["Service"] => {
  const publicKey = crypto.ed25519PublicKey(Redacted.value(seed))
  const key = Effect.succeed(StrKey.encodeEd25519PublicKey(publicKey))
  return Payer.of({
    key,
    address: key,
    sign: ({ around, payload }) =>
      Effect.sync(() => around(publicKey, crypto.ed25519Sign(Redacted.value(seed), payload)))
  })
}
