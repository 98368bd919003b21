// Webhook receivers. Each receives the settlements of one key label, and has a signing secret. Secrets are in
// environment variables, never in the profile; `SigningSecrets.ts` reads them.
import { Context, Effect, Layer, Schema } from "effect"
import { entry, flag, integer, list, optionalText, section, text } from "../../kernel/config/Setting.ts"
import { isDialable } from "../../kernel/http/safeFetch.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"

const webhooks = section("webhooks", "Signed messages to sellers about their settlements.", {
  receivers: list(
    entry({
      key: text({ default: "*", doc: "Label of the key whose settlements are sent; `*` for all settlements." }),
      url: text({ default: "", doc: "URL to POST to; https, unless local receivers are allowed." }),
      secret_env: text({
        default: "",
        doc: "Environment variable with the signing secret; several, separated by commas or lines, all sign (rotation)."
      }),
      name: optionalText({ doc: "The receiver's name for operators; by default its key. Unique." })
    }),
    { default: [], doc: "Webhook receivers." }
  ),
  allow_local_receivers: flag({
    default: false,
    doc: "Allow receivers on this machine or a private network, over plain HTTP."
  }),
  timeout_ms: integer({ default: 10_000, min: 100, max: 60_000, unit: "ms" }, "Timeout of a delivery."),
  retry_first_ms: integer(
    { default: 1_000, min: 10, max: 600_000, unit: "ms" },
    "Backoff after the first failure; it doubles with each failure."
  ),
  retry_max_ms: integer({ default: 900_000, min: 10, max: 86_400_000, unit: "ms" }, "Maximum backoff."),
  give_up_after_hours: integer(
    { default: 72, min: 1, max: 8_760, unit: "hours" },
    "Retry period; an event that is not accepted by then is given up."
  ),
  keep_days: integer(
    { default: 30, min: 1, max: 3_650, unit: "days" },
    "How long delivered and given-up events are kept for replay."
  )
})

export interface Receiver {
  readonly name: string
  /** Undefined for all settlements. */
  readonly principal: string | undefined
  readonly url: URL
  /** The variable with its secrets. */
  readonly secretEnv: string
}

/** The settings do not contain a receiver with that name. */
export class NoSuchReceiver extends Schema.TaggedError<NoSuchReceiver>()("NoSuchReceiver", {
  message: Schema.String
}) {}

export const receiverNamed = (
  receivers: ReadonlyArray<Receiver>,
  name: string
): Effect.Effect<Receiver, NoSuchReceiver> => {
  const found = receivers.find((one) => one.name === name)
  return found === undefined
    ? Effect.fail(new NoSuchReceiver({ message: `webhooks.receivers has no receiver named ${name}` }))
    : Effect.succeed(found)
}

const refuse = (path: string, message: string) => new SettingsRefused({ path: `webhooks.receivers.${path}`, message })

interface ConfigValues {
  readonly receivers: ReadonlyArray<Receiver>
  readonly allowLocal: boolean
  readonly timeoutMillis: number
  readonly retryFirstMillis: number
  readonly retryMaxMillis: number
  readonly giveUpAfterMillis: number
  readonly keepMillis: number
}

export const declared = [webhooks]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/webhooks/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(webhooks)
      const receivers: Array<Receiver> = []
      for (const [index, { key, name, secret_env, url }] of values.receivers.entries()) {
        const path = name ?? (key === "*" ? String(index) : key)
        const parsed = URL.canParse(url) ? new URL(url) : undefined
        if (parsed === undefined || !["https:", "http:"].includes(parsed.protocol))
          return yield* refuse(path, "its url is not an https URL")
        if (parsed.protocol === "http:" && !values.allow_local_receivers)
          return yield* refuse(path, "its url must be https; see webhooks.allow_local_receivers")
        if (!isDialable(parsed))
          return yield* refuse(path, "its url has credentials, or a port below 1024 that is neither 80 nor 443")
        if (receivers.some((other) => other.name === (name ?? key)))
          return yield* refuse(path, `two receivers are named ${name ?? key}; give them names`)
        receivers.push({
          name: name ?? key,
          principal: key === "*" ? undefined : `key:${key}`,
          url: parsed,
          secretEnv: secret_env
        })
      }
      return Config.of({
        receivers,
        allowLocal: values.allow_local_receivers,
        timeoutMillis: values.timeout_ms,
        retryFirstMillis: values.retry_first_ms,
        retryMaxMillis: values.retry_max_ms,
        giveUpAfterMillis: values.give_up_after_hours * 3_600_000,
        keepMillis: values.keep_days * 86_400_000
      })
    })
  )
}
