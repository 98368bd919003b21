// The settings of this process: one tree from the profile, read section by section. A section has one owner: the first
// plugin that claims it; a second claim by another owner is refused at boot, as is a section that no plugin declares.
// The tree holds no secrets: it names the environment variables that hold them, and `secret` reads those as Redacted
// values.
import { Context, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { contract, CurrentPlugin } from "../contract/Contract.ts"
import { suggestionSuffix } from "./didYouMean.ts"
import type { Declarations } from "./NetworkKeys.ts"
import type { Section } from "./Setting.ts"
import { settingIssues } from "./settingIssues.ts"

/** A value of the profile that this program cannot start with. `path` is the setting's dotted path. */
export class SettingsRefused extends Schema.TaggedError<SettingsRefused>()("SettingsRefused", {
  path: Schema.String,
  message: Schema.String
}) {}

/** Maximum number of further issues in a message, after the first. */
const issuesReportedMax = 4

export interface SettingsSource {
  /** The profile as parsed from YAML, overrides applied. */
  readonly tree: Readonly<Record<string, unknown>>
  /** Reads one environment variable; never listed, never logged. */
  readonly secret: (variable: string) => Option.Option<Redacted.Redacted>
}

export class Settings extends Context.Service<
  Settings,
  {
    /** Decodes a section and claims it for the plugin being built. */
    readonly section: <A>(section: Section<A>) => Effect.Effect<A, SettingsRefused>
    /** Decodes a section that may be another's, without claiming it. */
    readonly poll: <A>(section: Section<A>) => Effect.Effect<A, SettingsRefused>
    /** The declarations of the program's plugins, enabled or not. */
    readonly declared: Declarations
    /** The value of an environment variable, if it is set and not empty. */
    readonly secret: (variable: string) => Option.Option<Redacted.Redacted>
  }
>()("tollkeeper/config/Settings") {
  /**
   * Refuses a tree with a key that no section of the program has: a misspelled section must not pass silently. The
   * program's declarations are read when the Layer is built.
   */
  static readonly layer = (
    source: SettingsSource,
    declared: () => Declarations
  ): Layer.Layer<Settings, SettingsRefused> =>
    Layer.effect(
      Settings,
      Effect.gen(function* () {
        const declarations = declared()
        for (const key of Object.keys(source.tree)) {
          if (declarations.sections.has(key) || declarations.isPartial === true) continue
          const meant = suggestionSuffix(key, declarations.sections.keys())
          return yield* new SettingsRefused({ path: key, message: `no such section${meant}` })
        }
        return makeSettings(source, declarations, (name) => declarations.sections.has(name))
      })
    )

  /** Settings from a plain tree, without secrets unless given: any section, and the given keys of networks. */
  static readonly layerTest = (
    tree: Readonly<Record<string, unknown>> = {},
    secret: SettingsSource["secret"] = () => Option.none(),
    networkKeys: Declarations["networkKeys"] = []
  ): Layer.Layer<Settings> =>
    Layer.sync(Settings, () => makeSettings({ tree, secret }, { sections: new Map(), networkKeys }, () => true))
}

const makeSettings = (
  source: SettingsSource,
  declared: Declarations,
  isDeclared: (name: string) => boolean
): Settings["Service"] => {
  const owners = new Map<string, string>()
  const section = Effect.fnUntraced(function* <A>(section: Section<A>): Effect.fn.Return<A, SettingsRefused> {
    const plugin = yield* CurrentPlugin
    const refuse = (message: string) => new SettingsRefused({ path: section.name, message })
    if (!isDeclared(section.name))
      return yield* refuse(`claimed by ${plugin}, but not declared in any plugin's settings`)
    const owner = owners.get(section.name) ?? plugin
    if (owner !== plugin) return yield* refuse(`belongs to ${owner}, claimed by ${plugin}`)
    owners.set(section.name, plugin)
    return yield* decodeSection(section, source.tree)
  })
  return Settings.of({
    section,
    poll: (section) => decodeSection(section, source.tree),
    declared,
    secret: source.secret
  })
}

/**
 * Decodes one section of a tree; the error names the setting's path and the expected form, never the value of a secret.
 */
export const decodeSection = <A>(
  section: Section<A>,
  tree: Readonly<Record<string, unknown>>
): Effect.Effect<A, SettingsRefused> =>
  Schema.decodeUnknownEffect(Schema.Struct({ [section.name]: section.schema }), {
    onExcessProperty: "error",
    errors: "all"
  })(section.name in tree ? { [section.name]: tree[section.name] } : {}).pipe(
    Effect.map((decoded) => (decoded as Record<string, A>)[section.name] as A),
    Effect.mapError((error) => {
      const [first, ...others] = settingIssues(section.name, section.schema, error.issue)
      const also = others.slice(0, issuesReportedMax).map(({ message, path }) => `; ${path}: ${message}`)
      return new SettingsRefused({
        path: first?.path ?? section.name,
        message: `${first?.message ?? error.message}${also.join("")}`
      })
    })
  )

export const settingsContract = contract("settings", Settings)
