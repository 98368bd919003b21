// `tollkeeper config`: lists every setting, and checks that a profile can start: well-formed settings, compatible
// plugins, an RPC, the secrets that it requires; for pubnet every condition of its gate, some of them on the ledger.
// Nothing is started or created.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Option, Schema } from "effect"
import { Command } from "effect/cli"
import { hostname } from "node:os"
import { resolve } from "node:path"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network, networksSection } from "../../kernel/config/Network.ts"
import { Server } from "../../kernel/config/Server.ts"
import { gather } from "../../kernel/config/gather.ts"
import { decodeSection, Settings, type SettingsSource } from "../../kernel/config/Settings.ts"
import { select } from "../../kernel/plugin/Loader.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { pubnetGateIssues } from "../../kernel/settlement/PubnetGate.ts"
import { checkSecrets } from "../../kernel/signer/readSeeds.ts"
import { declaredSettings, makeCatalogue } from "../App.ts"
import { namesDatabase, namesNoDatabase } from "../answeredBy.ts"
import * as NodeCrypto from "../platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import type { Profile } from "../profile.ts"
import { sentenceOf } from "../sentence.ts"
import { jsonFlag, placeFlags, profileAt } from "./CommandTarget.ts"

/** The profile would not start. */
class ProfileIncomplete extends Schema.TaggedError<ProfileIncomplete>()("ProfileIncomplete", {
  message: Schema.String
}) {}

/** An empty profile: the declared settings do not depend on it. */
const noSource: SettingsSource = { tree: {}, secret: () => Option.none() }

const schema = Command.make("schema", {}, () =>
  Console.log(
    JSON.stringify(
      Object.fromEntries(
        [...declaredSettings(noSource).sections].map(([name, section]) => [
          name,
          Schema.toJsonSchemaDocument(section.schema).schema
        ])
      ),
      null,
      2
    )
  )
).pipe(Command.withDescription("Print every setting with its type, default and documentation"))

/** Environment variables that the profile names, and thus requires. */
const namedVariables = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, variable: string]> => {
  if (Array.isArray(value)) return value.flatMap((one, index) => namedVariables(one, `${path}[${index}]`))
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, one]) => {
    const at = path === "" ? key : `${path}.${key}`
    return key.endsWith("_env") && typeof one === "string" && one !== ""
      ? [[at, one] as const]
      : namedVariables(one, at)
  })
}

/** The message of a failed effect. */
const errorOf = <E, R>(effect: Effect.Effect<unknown, E, R>): Effect.Effect<ReadonlyArray<string>, never, R> =>
  Effect.map(Effect.exit(effect), (exit) =>
    Exit.isSuccess(exit) ? [] : [sentenceOf(exit.cause) ?? Cause.pretty(exit.cause)]
  )

const here = Layer.succeed(Host, { name: hostname(), stateFolder: resolve(".tollkeeper") })

/** Errors that keep the profile from starting, a sentence each. Fails for a malformed profile. */
const verify = Effect.fnUntraced(function* (profile: Profile) {
  const catalogue = makeCatalogue(profile)
  const declared = gather(catalogue.plugins)
  const settings = Settings.layer(profile, () => declared)
  yield* Effect.scoped(Layer.build(settings))
  for (const section of declared.sections.values()) yield* decodeSection(section, profile.tree)
  const enabled = yield* select(catalogue, profile.plugins)
  const needs = (id: string) => enabled.some((plugin) => plugin.id === id)
  const network = Effect.provide(Effect.service(Network), Network.layer.pipe(Layer.provide(settings)))
  const served = yield* Effect.option(network)
  const gate = Effect.provide(
    pubnetGateIssues,
    Layer.mergeAll(Network.layer, Server.layer, Limits.layer).pipe(
      Layer.provideMerge(settings),
      Layer.provideMerge(Layer.mergeAll(NodeCrypto.layer, NodeHttpCalls.layer, NodeServices.layer, here))
    )
  )
  const isPubnet = Option.exists(served, ({ id }) => id === "ledger:pubnet")
  const secrets = needs("signer") && !isPubnet ? Option.map(served, checkSecrets) : Option.none()
  return [
    ...(needs("network") ? yield* errorOf(network) : []),
    ...(Option.isSome(secrets) ? yield* errorOf(Effect.provide(secrets.value, NodeCrypto.layer)) : []),
    ...(needs("pubnet") && isPubnet ? yield* gate : []),
    ...(needs("database") && !namesDatabase(profile) ? [namesNoDatabase(profile)] : []),
    ...namedVariables(profile.tree).flatMap(([path, variable]) =>
      Option.isSome(profile.secret(variable)) || path.endsWith("sponsor_secret_env")
        ? []
        : /^\w{1,64}$/.test(variable)
          ? [`${path}: the variable ${variable} is not set; set it, or ${variable}_FILE to a file that holds it`]
          : [`${path}: expected the name of a variable; if it is a secret, replace that secret`]
    )
  ]
})

/** Warnings that do not keep the profile from starting. */
const remarksOn = Effect.fnUntraced(function* (profile: Profile) {
  const catalogue = makeCatalogue(profile)
  const enabled = yield* select(catalogue, profile.plugins)
  const hasDatabase = enabled.some(({ id }) => id === "database")
  const networks = Object.entries(
    yield* decodeSection(networksSection(gather(catalogue.plugins).networkKeys), profile.tree)
  )
  const withoutAssets = networks.filter(([, { assets, enabled }]) => enabled && assets.length === 0)
  return [
    ...(hasDatabase && Option.isNone(profile.secret("DATABASE_URL")) && namesDatabase(profile)
      ? ["DATABASE_URL is not set: the embedded database is used, which survives kill -9 but not a loss of power"]
      : []),
    ...(hasDatabase
      ? withoutAssets.map(([id]) => `networks.${id}.assets is empty: nothing can be paid; name the assets to accept`)
      : [])
  ]
})

const { profile, set } = placeFlags()

const check = Command.make(
  "check",
  { profile, set, json: jsonFlag },
  Effect.fn(function* ({ json, ...place }) {
    const profile = yield* profileAt(place)
    const missing = yield* verify(profile)
    const remarks = yield* remarksOn(profile)
    if (json) yield* Console.log(JSON.stringify({ profile: profile.name, plugins: profile.plugins, missing, remarks }))
    else {
      yield* Console.log(`${profile.name}: ${profile.plugins.join(", ")}: every setting is well-formed`)
      for (const remark of remarks) yield* Console.log(`note: ${remark}`)
      for (const sentence of missing) yield* Console.log(`missing: ${sentence}`)
    }
    if (missing.length === 0) return
    const what = missing.length === 1 ? missing[0] : `${missing.length} values are missing; set those named above`
    return yield* new ProfileIncomplete({ message: `${profile.name} would not start: ${what}` })
  })
).pipe(Command.withDescription("Check what a profile needs to start, without starting anything"))

export const config = Command.make("config").pipe(
  Command.withDescription("Settings and profiles"),
  Command.withSubcommands([schema, check])
)
