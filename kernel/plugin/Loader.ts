// The loader starts a profile's plugins with the drivers they need, in catalogue order, and stops them in reverse.
// Before any port opens it refuses a profile that names an unknown plugin or leaves out a plugin that another needs;
// the error has its name. Drivers start only when an enabled plugin needs them. A required plugin that fails ends the
// boot; an optional one is removed whole (its Scope closes, its routes are never mounted) and reported degraded.
import { Cause, Context, Effect, Exit, Layer, Schema, Scope } from "effect"
import { HttpRouter } from "effect/http"
import { suggestionSuffix } from "../config/didYouMean.ts"
import { CurrentPlugin } from "../contract/Contract.ts"
import { type Ambient, type AnyPlugin } from "./Plugin.ts"
import { PluginStates } from "./PluginStates.ts"
import { type Collected, collectingRouter, mount, RouteClaims } from "./Routes.ts"

/** A profile this program cannot start: an unknown or missing plugin, by name. */
export class ProfileRefused extends Schema.TaggedError<ProfileRefused>()("ProfileRefused", {
  plugin: Schema.String,
  message: Schema.String
}) {}

export interface Catalogue {
  /** Drivers and plugins, in dependency order. */
  readonly plugins: ReadonlyArray<AnyPlugin>
  /** Ids that start only when needed, and are never listed in a profile. */
  readonly drivers: ReadonlySet<string>
  /** Runs the migrations of one owner; called for plugins that have a folder of them. */
  readonly migrate: (owner: string) => Effect.Effect<unknown, unknown, any>
}

/** The enabled plugins and the drivers they need, in start order. Pure. */
export const select = (
  catalogue: Pick<Catalogue, "plugins" | "drivers">,
  profile: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<AnyPlugin>, ProfileRefused> =>
  Effect.gen(function* () {
    const byId = new Map(catalogue.plugins.map((plugin) => [plugin.id, plugin]))
    const selected = new Set<string>()
    const pending: Array<readonly [id: string, neededBy: string | undefined]> = []
    for (const id of profile) {
      if (catalogue.drivers.has(id))
        return yield* new ProfileRefused({ plugin: id, message: "is a driver, not a plugin of a profile" })
      pending.push([id, undefined])
    }
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      const [id, neededBy] = next
      const plugin = byId.get(id)
      if (plugin === undefined)
        return yield* new ProfileRefused({ plugin: id, message: `no such plugin${suggestionSuffix(id, byId.keys())}` })
      if (neededBy !== undefined && !catalogue.drivers.has(id) && !profile.includes(id)) {
        return yield* new ProfileRefused({
          plugin: neededBy,
          message: `needs ${id}, which the profile does not enable`
        })
      }
      if (selected.has(id)) continue
      selected.add(id)
      for (const need of plugin.needs) pending.push([need.id, id])
    }
    return catalogue.plugins.filter((plugin) => selected.has(plugin.id))
  })

/** Builds the selected plugins one after another in the current Scope and returns the services of all of them. */
export const start = Effect.fnUntraced(function* (catalogue: Catalogue, profile: ReadonlyArray<string>) {
  const plugins = yield* select(catalogue, profile)
  const router = yield* HttpRouter.HttpRouter
  const states = yield* PluginStates
  const outer = yield* Effect.scope
  const { claim } = yield* RouteClaims
  const memoMap = yield* Layer.makeMemoMap
  let context: Context.Context<any> = yield* Effect.context<any>()

  for (const plugin of plugins) {
    const scope = yield* Scope.fork(outer)
    const collected: Array<Collected> = []
    const surroundings = context.pipe(
      Context.add(CurrentPlugin, plugin.id),
      Context.add(HttpRouter.HttpRouter, collectingRouter(collected))
    )
    // Built without a span: a plugin keeps the context in which it is built, so a span in it would become the parent of
    // all its later work.
    const built = yield* Effect.gen(function* () {
      if (plugin.migrations === "folder") yield* catalogue.migrate(plugin.id)
      return yield* Layer.buildWithMemoMap(plugin.layer as Layer.Layer<never, unknown, any>, memoMap, scope)
    }).pipe(Effect.provideContext(surroundings), Effect.annotateLogs({ plugin: plugin.id }), Effect.exit)
    // A plugin that failed claims its paths too: a duplicate is an error of the profile, not a runtime condition.
    yield* claim(plugin.id, collected)
    if (Exit.isSuccess(built)) {
      yield* mount(router, collected)
      context = Context.merge(context, built.value)
      if (!catalogue.drivers.has(plugin.id)) states.set({ id: plugin.id, state: "running" })
      continue
    }
    yield* Scope.close(scope, built)
    if (plugin.boot === "required" || Cause.hasInterruptsOnly(built.cause)) return yield* Effect.failCause(built.cause)
    yield* Effect.logWarning(`plugin ${plugin.id} is degraded`, built.cause)
    states.set({ id: plugin.id, state: "degraded", detail: firstLine(Cause.squash(built.cause)) })
  }
  return context
})

export const layer = (catalogue: Catalogue, profile: ReadonlyArray<string>): Layer.Layer<never, unknown, Ambient> =>
  Layer.effectDiscard(start(catalogue, profile)) as Layer.Layer<never, unknown, Ambient>

const firstLine = (error: unknown): string =>
  String(error instanceof Error ? error.message : error).split("\n", 1)[0] ?? ""
