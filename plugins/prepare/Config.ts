// The settings of `POST /prepare`: whether it needs a key, and the rate limit of one caller.
import { Context, Effect, Layer } from "effect"
import { flag, integer, section } from "../../kernel/config/Setting.ts"
import { Settings } from "../../kernel/config/Settings.ts"

const prepare = section("prepare", "Prepares the bytes that a payer signs, for clients without an SDK.", {
  public: flag({
    default: false,
    doc: "Whether /prepare answers without a key although keys are configured. Each answer costs one simulation."
  }),
  per_second: integer({
    default: 5,
    min: 0,
    max: 1_000,
    unit: "requests/s",
    doc: "Rate limit of /prepare per principal, with bursts of twice that. 0: no limit."
  })
})

export interface ConfigValues {
  readonly isPublic: boolean
  readonly perSecond: number
}

export const declared = [prepare]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/prepare/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(prepare)
      return Config.of({ isPublic: values.public, perSecond: values.per_second })
    })
  )
}
