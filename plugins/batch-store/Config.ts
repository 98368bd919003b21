// Settings of the channel store and its claimer. A seller's own policy, set over HTTP, comes before the defaults here.
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { flag, integer, section } from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"

/** The variable with the secret from which each seller's authorizer key derives. */
const secretVariable = "BATCH_AUTHORIZER_SECRET"
/** Characters of this secret, at least. */
const secretBytesMin = 32

const batchStore = section(
  "batch_store",
  "Payment channels of sellers without state, and their claims, signed if BATCH_AUTHORIZER_SECRET is set.",
  {
    allow_keyless: flag({
      default: false,
      doc: "Serve callers without a key. They share their channels, so use this only on one machine."
    }),
    poll_seconds: integer(
      { default: 5, min: 1, max: 300, unit: "s" },
      "How often due claims are recorded, and recorded ones submitted."
    ),
    watch_seconds: integer(
      { default: 30, min: 1, max: 300, unit: "s" },
      "How often channels with unclaimed charges are read for withdrawals; the shortest delay is 900 s."
    ),
    channels_per_key_max: integer(
      { default: 20_000, min: 1, max: 10_000_000 },
      "Channels of one key that are kept, about 2 KB each; beyond them a new channel replaces some with nothing to " +
        "claim, or is refused."
    ),
    charges_per_key_max: integer(
      { default: 1_000_000, min: 1, max: 1_000_000_000 },
      "Charges of one key that are kept, about 300 bytes each, with the newest of each channel; an hourly sweep " +
        "deletes older ones. A deleted charge is never made again, because its voucher builds on an old total."
    ),
    keep_days: integer(
      { default: 30, min: 1, max: 3_650, unit: "days" },
      "How long charges are kept for repeated requests, claimed channels after their last one, and ended claims."
    )
  }
)

interface ConfigValues {
  /** From which each seller's authorizer key derives; None: the store signs nothing. */
  readonly authorizerSecret: Option.Option<Redacted.Redacted>
  readonly allowKeyless: boolean
  readonly pollSeconds: number
  readonly watchMillis: number
  readonly channelsMax: number
  readonly chargesMax: number
  readonly keepMillis: number
}

export const declared = [batchStore]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/batch-store/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(batchStore)
      const authorizerSecret = settings.secret(secretVariable)
      if (Option.exists(authorizerSecret, (secret) => Redacted.value(secret).length < secretBytesMin))
        return yield* new SettingsRefused({
          path: "batch_store",
          message: `the variable ${secretVariable} has fewer than ${secretBytesMin} characters`
        })
      return Config.of({
        authorizerSecret,
        allowKeyless: values.allow_keyless,
        pollSeconds: values.poll_seconds,
        watchMillis: values.watch_seconds * 1_000,
        channelsMax: values.channels_per_key_max,
        chargesMax: values.charges_per_key_max,
        keepMillis: values.keep_days * 86_400_000
      })
    })
  )
}
