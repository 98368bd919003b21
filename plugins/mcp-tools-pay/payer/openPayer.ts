// Opens the configured payer. It reads the environment once, when it is built.
import { Effect, Layer } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { ToolsConfig } from "../../mcp-tools/contract.ts"
import { Config } from "../Config.ts"
import { externalPayer } from "./externalPayer.ts"
import { openSeed } from "./openSeed.ts"
import { Payer } from "./Payer.ts"
import { seedPayer } from "./seedPayer.ts"

const open = Effect.gen(function* () {
  const { signer } = yield* ToolsConfig
  switch (signer.mode) {
    case "none":
      return yield* Effect.die(new Error("signer.mode is none: no payer is configured"))
    case "env-secret":
    case "encrypted-key":
      return seedPayer(yield* Crypto, yield* openSeed)
    case "external":
      return yield* externalPayer
  }
})

/** The signer's key pays for its own account, or for the configured spending account. */
const payer = Effect.gen(function* () {
  const { account } = (yield* ToolsConfig).signer
  const signer = yield* open
  if (account === undefined) return signer
  // The account authorizes single transfers only.
  if ((yield* Config).batch !== undefined)
    return yield* new SettingsRefused({
      path: "signer.account",
      message: "a spending account does not open payment channels: remove batch_payments.contract"
    })
  return Payer.of({ ...signer, address: Effect.succeed(account) })
})

export const layer = Layer.effect(Payer, payer)
