// Opens the configured payer. It reads the environment once, when it is built.
import { Effect, Layer } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { ToolsConfig } from "../../mcp-tools/contract.ts"
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

export const layer = Layer.effect(Payer, open)
