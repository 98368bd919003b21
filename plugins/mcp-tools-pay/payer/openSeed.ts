// Reads the payer's seed for a local payer: from an environment variable, or from a keystore.
import { Effect, Option } from "effect"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { signerVariables, ToolsConfig } from "../../mcp-tools/contract.ts"
import { openKeystore } from "./keystore.ts"
import { readSeed } from "./seedPayer.ts"

const secretOf = Effect.fnUntraced(function* (variable: string) {
  const settings = yield* Settings
  return yield* Option.match(settings.secret(variable), {
    onNone: () =>
      Effect.fail(
        new SettingsRefused({ path: "signer.mode", message: `the environment variable ${variable} is not set` })
      ),
    onSome: Effect.succeed
  })
})

/** For the modes `env-secret` and `encrypted-key`. */
export const openSeed = Effect.gen(function* () {
  const { signer } = yield* ToolsConfig
  if (signer.mode === "env-secret") return yield* readSeed(signerVariables.seed, yield* secretOf(signerVariables.seed))
  const key = yield* secretOf(signerVariables.keystoreKey)
  return yield* readSeed("signer.keystore_file", yield* openKeystore(yield* Crypto, signer.keystoreFile, key))
})
