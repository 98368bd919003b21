// `tollkeeper tools --print-config`: the client configuration for the server that the same flags would start, or the
// entry for the MCP registry. Settings that a start would refuse are refused here; nothing is started.
import { Effect, Option } from "effect"
import { resolve } from "node:path"
import process from "node:process"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"
import { readSettings, signerVariables } from "../../plugins/mcp-tools/plugin.ts"
import { declaredSettings } from "../App.ts"
import { type ClientForm, clientConfig, type Reached } from "../clientConfig.ts"
import { entry } from "../layout.ts"
import type { Profile } from "../profile.ts"
import { version } from "../version.ts"
import { type CommandTarget, profileAt } from "./CommandTarget.ts"

type ConfigValues = Effect.Success<typeof readSettings>

/** The arguments that start this server. */
const wordsOf = (place: CommandTarget, overrides: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...("Deno" in globalThis ? ["run", "-A"] : ["--disable-warning=ExperimentalWarning"]),
  entry,
  "tools",
  ...["--profile", /\.ya?ml$/.test(place.profile) ? resolve(place.profile) : place.profile],
  ...["--state", resolve(place.state)],
  ...[...overrides, ...place.set].flatMap((setting) => ["--set", setting])
]

/** The server's secret variables: the required ones, and others that are set here. */
const secretsOf = ({ signer }: ConfigValues, { secret, tree }: Profile): ReadonlyArray<string> => {
  const budget = tree["budget"] as { readonly store?: unknown } | undefined
  const isSet = (name: string) => Option.isSome(secret(name))
  return [
    ...(signer.mode === "env-secret" ? [signerVariables.seed] : []),
    ...(signer.mode === "encrypted-key" ? [signerVariables.keystoreKey] : []),
    ...(signer.mode === "external" && isSet(signerVariables.token) ? [signerVariables.token] : []),
    ...(budget?.store === "postgres" ? ["DATABASE_URL"] : [])
  ]
}

/** The file that a variable is read from here; the client's process reads it too. */
const fileOf = (name: string): string | undefined =>
  process.env[name] ? undefined : process.env[`${name}_FILE`] || undefined

/** A public name of a server behind a TLS proxy. */
const isPublicName = (host: string): boolean => /^([a-z0-9-]+\.)+[a-z][a-z0-9-]*$/.test(host)

/** The server's address for a client: the first allowed name, else the bound address. */
const originOf = ({ allowedHosts, host, port }: ConfigValues["http"]): string => {
  const bound = host === undefined || host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  const name = allowedHosts[0] ?? (bound.includes(":") ? `[${bound}]` : bound)
  return isPublicName(name) ? `https://${name}` : `http://${name}:${port}`
}

const reachedBy = (config: ConfigValues, profile: Profile, words: ReadonlyArray<string>): Reached => {
  const { http, signer, transport } = config
  if (transport === "http") {
    return {
      transport,
      origin: originOf(http),
      asksForKey: signer.mode !== "none" || Option.isSome(profile.secret(http.apiKeysEnv))
    }
  }
  const all = secretsOf(config, profile)
  return {
    transport,
    command: process.execPath,
    args: words,
    secrets: all.filter((name) => fileOf(name) === undefined),
    environment: Object.fromEntries(
      all.flatMap((name) => {
        const file = fileOf(name)
        return file === undefined ? [] : [[`${name}_FILE`, resolve(file)]]
      })
    )
  }
}

/** The client configuration of the server that these flags would start. */
export const printConfig = Effect.fnUntraced(function* (
  form: ClientForm,
  place: CommandTarget,
  overrides: ReadonlyArray<string>
) {
  const profile = yield* profileAt(place, overrides)
  const config = yield* Effect.provide(
    readSettings,
    Settings.layer(profile, () => declaredSettings(profile))
  )
  const text = clientConfig(form, reachedBy(config, profile, wordsOf(place, overrides)), version)
  return text === undefined
    ? yield* new SettingsRefused({
        path: "http.allowed_hosts",
        message:
          "the registry lists servers at a public name: --profile tools-hosted " +
          "--set http.allowed_hosts=[tools.example.com]"
      })
    : text
})
