// A profile is a YAML file that names the plugins to enable and their settings. A shipped one is selected by its name
// (`local`, `hosted`, `self-hosted`), any other by its path. `--set path=value` overrides single settings, the value
// being YAML. The result is a plain tree; the owners of the sections validate it. A secret is the content of the
// environment variable that a setting names, or of its file (`secretOf.ts`).
import { Effect, FileSystem, Option, Path, Redacted, Schema } from "effect"
import { parse } from "yaml"
import { didYouMean } from "../kernel/config/didYouMean.ts"
import { decodeSection, type SettingsSource } from "../kernel/config/Settings.ts"
import { pluginsSection } from "../kernel/config/Server.ts"
import { secretOf } from "./secretOf.ts"

/** A profile cannot be read. */
class ProfileUnreadable extends Schema.TaggedError<ProfileUnreadable>()("ProfileUnreadable", {
  profile: Schema.String,
  message: Schema.String
}) {}

export interface Profile extends SettingsSource {
  readonly name: string
  readonly plugins: ReadonlyArray<string>
}

const shipped = /^[a-z][a-z-]*$/

const names = ["local", "self-hosted", "hosted", "tools", "tools-hosted"]

const shipsOr = (name: string): string => {
  const meant = didYouMean(name, names)
  return meant === undefined
    ? `--profile takes the path of a YAML file, or one of ${names.join(", ")}`
    : `did you mean --profile ${meant}?`
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Sets one dotted path; a network's id may hold a colon but never a dot. */
const override = (tree: Record<string, unknown>, path: string, value: unknown): Record<string, unknown> => {
  const [head = "", ...rest] = path.split(".")
  if (rest.length === 0) return { ...tree, [head]: value }
  const below = tree[head]
  return { ...tree, [head]: override(isTable(below) ? below : {}, rest.join("."), value) }
}

/** Reads a profile and applies overrides of the form `path=value`. */
export const loadProfile = Effect.fn("loadProfile")(function* (
  name: string,
  overrides: ReadonlyArray<string>,
  environment: Readonly<Record<string, string | undefined>>
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const unreadable = (message: string) => new ProfileUnreadable({ profile: name, message })
  const folder = yield* Effect.orDie(path.fromFileUrl(new URL("profiles/", import.meta.url)))
  const file = shipped.test(name) ? path.join(folder, `${name}.yaml`) : name
  const source = yield* Effect.mapError(files.readFileString(file), () =>
    unreadable(`there is no readable file ${file}; ${shipsOr(name)}`)
  )
  const parseYaml = (what: string, source: string) =>
    Effect.try({
      try: () => parse(source, { maxAliasCount: 0 }) as unknown,
      catch: (error) => unreadable(`${what}: ${error instanceof Error ? error.message : String(error)}`)
    })
  const parsed = yield* parseYaml(file, source)
  if (!isTable(parsed)) return yield* unreadable(`${file} is not a table of settings; ${shipsOr(name)}`)
  let tree = parsed
  for (const assignment of overrides) {
    const at = assignment.indexOf("=")
    if (at < 1) return yield* unreadable(`--set needs path=value, not ${assignment}`)
    tree = override(
      tree,
      assignment.slice(0, at),
      yield* parseYaml(`--set ${assignment.slice(0, at)}`, assignment.slice(at + 1))
    )
  }
  const secret = (variable: string) =>
    Option.map(Option.fromUndefinedOr(secretOf(environment, variable)), Redacted.make)
  const profile: Profile = { name, tree, secret, plugins: yield* decodeSection(pluginsSection, tree) }
  return profile
})
