// Reads the payer's seed for a local payer: from an environment variable, or from a keystore.
import { Effect, Option } from "effect"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { ToolsConfig } from "../../mcp-tools/contract.ts"
import { openKeystore } from "./keystore.ts"
import { readSeed } from "./seedPayer.ts"

/** The content of the variable that a setting names. */
const secretOf = Effect.fnUntraced(function* (path: string, variable: string) {
  const settings = yield* Settings
  return yield* Option.match(settings.secret(variable), {
    onNone: () =>
      Effect.fail(new SettingsRefused({ path, message: `the environment variable ${variable} is not set` })),
    onSome: Effect.succeed
  })
})

/** For the modes `env-secret` and `encrypted-key`. */
export const openSeed = Effect.gen(function* () {
  const { signer } = yield* ToolsConfig
  if (signer.mode === "env-secret")
    return yield* readSeed(signer.secretEnv, yield* secretOf("signer.secret_env", signer.secretEnv))
  const key = yield* secretOf("signer.keystore_key_env", signer.keystoreKeyEnv)
  return yield* readSeed("signer.keystore_file", yield* openKeystore(yield* Crypto, signer.keystoreFile, key))
})
