import { expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { contract } from "../../../kernel/contract/Contract.ts"
import { mountRoutes, route } from "../../../kernel/http/Route.ts"
import * as Loader from "../../../kernel/plugin/Loader.ts"
import * as Plugin from "../../../kernel/plugin/Plugin.ts"
import { PluginStates } from "../../../kernel/plugin/PluginStates.ts"
import { RouteClaims } from "../../../kernel/plugin/Routes.ts"

class Store extends Context.Service<Store, { readonly log: Array<string> }>()("test/Store") {}
const storeContract = contract("store", Store)
const registryContract = contract("registry", Store)

const setup = () => {
  const log: Array<string> = []
  const base = { summary: "", boot: "required", migrations: "none" } as const
  const noted = (id: string) =>
    Effect.acquireRelease(
      Effect.sync(() => log.push(`+${id}`)),
      () => Effect.sync(() => log.push(`-${id}`))
    )
  const store = Plugin.define({
    ...base,
    id: "store",
    needs: [],
    migrations: "folder",
    layer: Layer.effect(Store, Effect.as(noted("store"), { log }))
  })
  const plain = Plugin.define({
    ...base,
    id: "plain",
    needs: [],
    layer: Layer.effectDiscard(noted("plain"))
  })
  const routed = (id: string, path: "/a" | "/b", boot: "required" | "optional", failure?: string) =>
    Plugin.define({
      ...base,
      id,
      boot,
      needs: [storeContract],
      layer: Layer.effectDiscard(
        Effect.gen(function* () {
          yield* Store
          yield* noted(id)
          const declared = { method: "GET", path, callers: "public", cost: { cpuMillis: 1, bytesOut: 9 } } as const
          yield* mountRoutes([route(declared, Effect.succeed(HttpServerResponse.text(id)))])
          if (failure !== undefined) return yield* Effect.fail(failure)
        })
      )
    })
  const catalogue = (plugins: ReadonlyArray<Plugin.AnyPlugin>): Loader.Catalogue => ({
    plugins,
    drivers: new Set(["store"]),
    migrate: (owner) => Effect.sync(() => log.push(`migrate ${owner}`))
  })
  return { log, store, plain, routed, catalogue }
}

const ambient = Layer.mergeAll(PluginStates.layer, RouteClaims.layer, HttpServer.layerServices)

const boot = (catalogue: Loader.Catalogue, profile: ReadonlyArray<string>) =>
  Layer.build(
    Loader.layer(catalogue, profile).pipe(
      Layer.provideMerge(HttpRouter.layer),
      Layer.provideMerge(ambient)
    ) as Layer.Layer<any, any>
  )

it.effect("builds only the profile's plugins and required drivers, migrating first [S342]", () =>
  Effect.gen(function* () {
    const { catalogue, log, plain, routed, store } = setup()
    const all = catalogue([store, plain, routed("a", "/a", "required"), routed("b", "/b", "required")])
    yield* Effect.scoped(boot(all, ["plain"]))
    expect(log).toEqual(["+plain", "-plain"])
    log.length = 0
    yield* Effect.scoped(boot(all, ["a"]))
    expect(log).toEqual(["migrate store", "+store", "+a", "-a", "-store"])
  })
)

it.effect("refuses unknown plugins, drivers in the profile and missing needs", () =>
  Effect.gen(function* () {
    const { catalogue, log, store } = setup()
    const base = { summary: "", boot: "required", migrations: "none" } as const
    const registry = Plugin.define({ ...base, id: "registry", needs: [], layer: Layer.succeed(Store, { log }) })
    const user = Plugin.define({ ...base, id: "user", needs: [registryContract], layer: Layer.effectDiscard(Store) })
    const all = catalogue([store, registry, user])
    const refused = (profile: ReadonlyArray<string>) => Effect.flip(Loader.select(all, profile))
    expect(yield* refused(["nope"])).toMatchObject({ plugin: "nope", message: "no such plugin" })
    expect(yield* refused(["store"])).toMatchObject({ plugin: "store" })
    expect(yield* refused(["user"])).toMatchObject({
      plugin: "user",
      message: "needs registry, which the profile does not enable"
    })
  })
)

it.effect("releases a failing optional plugin, without routes, reported degraded", () =>
  Effect.gen(function* () {
    const { catalogue, log, routed, store } = setup()
    const all = catalogue([store, routed("bad", "/b", "optional", "no model"), routed("a", "/a", "required")])
    const app = Loader.layer(all, ["bad", "a"])
    const states = yield* Effect.scoped(
      Effect.map(
        Layer.build(
          app.pipe(Layer.provideMerge(HttpRouter.layer), Layer.provideMerge(ambient)) as Layer.Layer<PluginStates, any>
        ),
        (context) => Context.get(context, PluginStates).all()
      )
    )
    expect(states).toEqual([
      { id: "bad", state: "degraded", detail: "no model" },
      { id: "a", state: "running" }
    ])
    expect(log.slice(0, 5)).toEqual(["migrate store", "+store", "+bad", "-bad", "+a"])
    const web = HttpRouter.toWebHandler(app.pipe(Layer.provide(ambient)) as Layer.Layer<never, any>, {
      disableLogger: true
    })
    expect((yield* Effect.promise(() => web.handler(new Request("http://x/b")))).status).toBe(404)
    expect(yield* Effect.promise(() => web.handler(new Request("http://x/a")).then((r) => r.text()))).toBe("a")
    yield* Effect.promise(() => web.dispose())
  })
)

it.effect("a failing required plugin ends the boot and releases earlier plugins", () =>
  Effect.gen(function* () {
    const { catalogue, log, routed, store } = setup()
    const exit = yield* Effect.exit(
      Effect.scoped(boot(catalogue([store, routed("bad", "/b", "required", "broken")]), ["bad"]))
    )
    expect(Exit.isFailure(exit)).toBe(true)
    expect(log).toEqual(["migrate store", "+store", "+bad", "-bad", "-store"])
  })
)

it.effect("a path claimed by two plugins stops the boot, even if optional", () =>
  Effect.gen(function* () {
    const { catalogue, routed, store } = setup()
    const all = catalogue([store, routed("one", "/a", "optional", "broken"), routed("two", "/a", "required")])
    const failure = yield* Effect.flip(Effect.scoped(boot(all, ["one", "two"])))
    expect(failure).toMatchObject({ _tag: "RouteClaimedTwice", route: "GET /a", owner: "two", claimedBy: "one" })
  })
)
