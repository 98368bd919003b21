// Settings of the embedded ledger: listening address, closing of ledgers, and injected faults.
import { Context, Effect, Layer } from "effect"
import { choice, flag, integer, list, origins, section, text } from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"
import { Schema } from "effect"
import type { Faults } from "./node/Faults.ts"
import { parseFault } from "./node/parseFault.ts"

const ledger = section("local_ledger", "The embedded ledger.", {
  host: text({ default: "127.0.0.1", doc: "Address to bind; the ledger has no access control." }),
  allowed_origins: origins({
    doc: "Origins of web pages that may ask, such as http://localhost:3000; a request from any other page is refused."
  }),
  port: integer(
    { default: 8_000, min: 0, max: 65_535 },
    "TCP port of RPC, friendbot and ledgers over HTTP; 0 picks a free one."
  ),
  https: flag({ default: true, doc: "Listen with TLS too, with a certificate made in the state folder." }),
  https_port: integer({ default: 8_443, min: 0, max: 65_535 }, "TCP port of the same over HTTPS; 0 picks a free one."),
  close: choice(["interval", "manual"], {
    default: "interval",
    doc: "Close by the clock, or only when asked to by the process."
  }),
  close_interval_ms: integer({ default: 1_000, min: 50, max: 60_000, unit: "ms" }, "Time between two ledgers."),
  contract_time_ms: integer(
    { default: 0, min: 0, max: 60_000, unit: "ms" },
    "Time that the contracts of one ledger may take before the rest waits; 0 is a quarter of the interval."
  ),
  faults: list(Schema.String, {
    default: [],
    doc: "Faults to inject, such as `drop=0.1` or `rpc=getTransaction:503:0.2`."
  })
})

export interface ConfigValues {
  readonly host: string
  /** In lower case. */
  readonly allowedOrigins: ReadonlyArray<string>
  readonly port: number
  readonly httpsPort: number | undefined
  readonly close: number | "manual"
  /** Milliseconds; absent: a quarter of the interval, and no bound for a ledger closed by hand. */
  readonly closeMillisMax: number | undefined
  readonly faults: ReadonlyArray<Partial<Faults>>
}

export const configDefaults: ConfigValues = {
  host: "127.0.0.1",
  allowedOrigins: [],
  port: 8_000,
  httpsPort: 8_443,
  close: 1_000,
  closeMillisMax: undefined,
  faults: []
}

export const declared = [ledger]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/ledger-local/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(ledger)
      const faults: Array<Partial<Faults>> = []
      for (const text of values.faults) {
        const fault = parseFault(text)
        if (typeof fault === "string")
          return yield* new SettingsRefused({ path: "local_ledger.faults", message: `${text}: ${fault}` })
        faults.push(fault)
      }
      return Config.of({
        host: values.host,
        allowedOrigins: values.allowed_origins.map((origin) => origin.toLowerCase()),
        port: values.port,
        httpsPort: values.https ? values.https_port : undefined,
        close: values.close === "manual" ? "manual" : values.close_interval_ms,
        closeMillisMax: values.close === "manual" ? undefined : values.contract_time_ms || undefined,
        faults
      })
    })
  )

  static readonly layerTest = (values: Partial<ConfigValues> = {}): Layer.Layer<Config> =>
    Layer.succeed(Config, Config.of({ ...configDefaults, ...values }))
}
