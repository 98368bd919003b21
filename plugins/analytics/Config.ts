// The settings of analytics: whether addresses are shown, how long a page of a list may be, and how long single
// settlements are kept (S138, S297, S298).
import { Context, Effect, Layer } from "effect"
import { flag, integer, section } from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"

const analytics = section("analytics", "Operator analytics.", {
  redact_addresses: flag({
    default: false,
    doc: "Replace each payer's and recipient's address with a pseudonym in responses; hashes and URLs stay."
  }),
  default_page_size: integer({ default: 50, min: 1, max: 1_000 }, "Default number of items of a list."),
  max_page_size: integer(
    { default: 200, min: 1, max: 1_000 },
    "Maximum items of a list; a larger `limit` is reduced to it."
  ),
  keep_days: integer(
    { default: 3_650, min: 30, max: 36_500, unit: "days" },
    "Days that settlements are kept: lists and a resource's all-time figures reach back this far; sums and boards " +
      "are permanent."
  )
})

export interface AnalyticsValues {
  readonly redactAddresses: boolean
  readonly pageDefault: number
  readonly pageMax: number
  readonly keepMillis: number
}

export const declared = [analytics]

export class Config extends Context.Service<Config, AnalyticsValues>()("tollkeeper/analytics/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(analytics)
      if (values.default_page_size > values.max_page_size) {
        return yield* new SettingsRefused({
          path: "analytics.default_page_size",
          message: "it is larger than analytics.max_page_size"
        })
      }
      return Config.of({
        redactAddresses: values.redact_addresses,
        pageDefault: values.default_page_size,
        pageMax: values.max_page_size,
        keepMillis: values.keep_days * 86_400_000
      })
    })
  )
}
