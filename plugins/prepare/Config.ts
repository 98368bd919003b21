// The settings of `POST /prepare`: whether it needs a key.
import { Context, Effect, Layer } from "effect"
import { flag, section } from "../../kernel/config/Setting.ts"
import { Settings } from "../../kernel/config/Settings.ts"

const prepare = section("prepare", "Prepares the bytes that a payer signs, for clients without an SDK.", {
  public: flag({
    default: false,
    doc: "Whether /prepare answers without a key although keys are configured. Each answer costs one simulation."
  })
})

interface ConfigValues {
  readonly isPublic: boolean
}

export const declared = [prepare]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/prepare/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(prepare)
      return Config.of({ isPublic: values.public })
    })
  )
}
