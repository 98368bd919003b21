// The promises that the compiler keeps about plugins. Each `@ts-expect-error` is a guard: were it to compile, `npm run
// types` would fail.
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { contract } from "../../../kernel/contract/Contract.ts"
import * as Plugin from "../../../kernel/plugin/Plugin.ts"

class Store extends Context.Service<Store, { readonly read: Effect.Effect<number> }>()("test/Store") {}
class Registry extends Context.Service<Registry, { readonly add: (name: string) => Effect.Effect<void> }>()(
  "test/Registry"
) {}

const storeContract = contract("store", Store)
const registryContract = contract("registry", Registry)
const base = { summary: "", boot: "required", migrations: "none" } as const

const store = Plugin.define({
  ...base,
  id: "store",
  needs: [],
  layer: Layer.succeed(Store, { read: Effect.succeed(1) })
})
const registry = Plugin.define({
  ...base,
  id: "registry",
  needs: [storeContract],
  layer: Layer.effect(
    Registry,
    Effect.as(
      Store.use((store) => store.read),
      { add: () => Effect.void }
    )
  )
})
const user = Plugin.define({
  ...base,
  id: "user",
  boot: "optional",
  needs: [registryContract],
  layer: Layer.effectDiscard(Registry.use((registry) => registry.add("x")))
})

it("accepts a plugin whose needs are exactly what its layer requires [S338]", () => {
  expect(Plugin.catalogue(store, registry, user).map((plugin) => plugin.id)).toEqual(["store", "registry", "user"])
})

it("mismatched plugin needs and wrong order are type errors", () => {
  // @ts-expect-error used but not declared
  Plugin.define({ ...base, id: "a", needs: [], layer: Layer.effectDiscard(Store.use((store) => store.read)) })
  // @ts-expect-error declared but unused
  Plugin.define({ ...base, id: "b", needs: [storeContract], layer: Layer.empty })
  // @ts-expect-error a provider cannot be optional
  Plugin.define({
    ...base,
    id: "c",
    boot: "optional",
    needs: [],
    layer: Layer.succeed(Store, { read: Effect.succeed(1) })
  })
  const perRequest = HttpRouter.use((router) =>
    router.add("GET", "/x", Store.use((store) => store.read).pipe(Effect.as(HttpServerResponse.text("ok"))))
  )
  // @ts-expect-error a handler that takes a service per request
  Plugin.define({ ...base, id: "d", needs: [storeContract], layer: perRequest })
  // @ts-expect-error the required plugin comes later
  Plugin.catalogue(registry, store)
  // @ts-expect-error no plugin provides it
  Plugin.catalogue(user)
  const impostor = Plugin.define({ ...base, id: "store", needs: [], layer: Layer.empty })
  // @ts-expect-error the plugin under the contract's id does not provide its services
  Plugin.catalogue(impostor, registry)
  expect(true).toBe(true)
})
