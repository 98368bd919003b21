// The payer that the settings name. What it needs of the environment is asked for once, when it is built.
import { Effect, Layer, Option } from "effect"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { ToolsConfig } from "../../mcp-tools/contract.ts"
import { externalPayer } from "./externalPayer.ts"
import { openKeystore } from "./keystore.ts"
import { Payer } from "./Payer.ts"
import { readSeed, seedPayer } from "./seedPayer.ts"

/** The content of the variable that a setting names. */
const secretOf = Effect.fnUntraced(function* (path: string, variable: string) {
  const settings = yield* Settings
  return yield* Option.match(settings.secret(variable), {
    onNone: () =>
      Effect.fail(new SettingsRefused({ path, message: `the environment variable ${variable} is not set` })),
    onSome: Effect.succeed
  })
})

const open = Effect.gen(function* () {
  const crypto = yield* Crypto
  const { signer } = yield* ToolsConfig
  switch (signer.mode) {
    case "none":
      return yield* Effect.die(new Error("nobody pays in the mode none"))
    case "env-secret": {
      const seed = yield* secretOf("signer.secret_env", signer.secretEnv)
      return seedPayer(crypto, yield* readSeed(signer.secretEnv, seed))
    }
    case "encrypted-key": {
      const key = yield* secretOf("signer.keystore_key_env", signer.keystoreKeyEnv)
      const seed = yield* openKeystore(crypto, signer.keystoreFile, key)
      return seedPayer(crypto, yield* readSeed("signer.keystore_file", seed))
    }
    case "external":
      return yield* externalPayer
  }
})

export const layer = Layer.effect(Payer, open)
