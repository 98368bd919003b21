// A plugin mounts routes on a separate router that only collects them; the loader passes them to the real router once
// the plugin is complete. So a failed optional plugin leaves no route behind, and a path that two plugins claim stops
// the boot, even if one is optional. Plugins contribute routes, never global middleware.
import { Context, Effect, Layer, Schema } from "effect"
import { FindMyWay, HttpRouter } from "effect/http"
import { type DeclaredRules, firstSegment, type RouteRules, rulesOfMounted } from "../http/RouteRules.ts"

type Routes = Parameters<HttpRouter.HttpRouter["addAll"]>[0]

/** Two owners claim the same method and path. */
class RouteClaimedTwice extends Schema.TaggedError<RouteClaimedTwice>()("RouteClaimedTwice", {
  route: Schema.String,
  owner: Schema.String,
  claimedBy: Schema.String
}) {}

export interface Collected {
  readonly routes: Routes
  /** The context at registration; it carries middleware that the routes were declared under. */
  readonly context: Context.Context<never>
}

/** A router that records routes instead of routing. */
export const collectingRouter = (sink: Array<Collected>): HttpRouter.HttpRouter => {
  const collecting = (move: (routes: Routes) => Routes): HttpRouter.HttpRouter => {
    const addAll = (routes: Routes) =>
      Effect.contextWith((context: Context.Context<never>) =>
        Effect.sync(() => void sink.push({ routes: move(routes), context }))
      )
    return {
      addAll,
      add: (method: any, path: any, handler: any, options: any) =>
        addAll([HttpRouter.route(method, path, handler, options)]),
      prefixed: (prefix: string) => collecting((routes) => move(routes.map(HttpRouter.prefixRoute(prefix)) as any)),
      addGlobalMiddleware: () => Effect.die(new Error("a plugin contributes routes, not global middleware")),
      asHttpEffect: () => Effect.die(new Error("a collecting router serves nothing"))
    } as unknown as HttpRouter.HttpRouter
  }
  return collecting((routes) => routes)
}

/** `GET /a/:x` and `GET /a/:y` are the same claim. */
const claimOf = (method: string, path: string): string =>
  `${method} ${path.replace(/:[^/]+/g, ":").replace(/(.)\/+$/, "$1")}`

/**
 * Labels of metrics by path. Text from others in a path never becomes a label: a label is a declared path, or the first
 * segment of declared paths.
 */
const makeLabels = () => {
  const exact = new Map<string, RouteRules>()
  const families = new Map<string, RouteRules>()
  return {
    add: (path: string, rules: RouteRules) => void (rules.label === path ? exact : families).set(rules.label, rules),
    of: (path: string) => exact.get(path) ?? families.get(firstSegment(path))
  }
}

export interface Claim {
  readonly owner: string
  readonly method: string
  readonly path: string
  readonly rules: RouteRules
}

/** The owner and the rules of each route of one process. The loader claims; the middleware and reports read. */
export class RouteClaims extends Context.Service<
  RouteClaims,
  {
    readonly claim: (owner: string, collected: ReadonlyArray<Collected>) => Effect.Effect<void, RouteClaimedTwice>
    /** Every claim with its owner, as `GET /a/:x`, in the order of claiming. */
    readonly all: () => ReadonlyArray<Claim>
    readonly rules: DeclaredRules
  }
>()("tollkeeper/kernel/RouteClaims") {
  static readonly layer = Layer.sync(RouteClaims, () => {
    const claims = new Map<string, Claim>()
    const labels = makeLabels()
    // Routes in the form that the router itself uses to find them.
    const found = FindMyWay.make<RouteRules>({ caseSensitive: true })
    return RouteClaims.of({
      claim: Effect.fnUntraced(function* (owner, collected) {
        for (const route of collected.flatMap(({ routes }) => routes)) {
          const { method, path } = route
          const claim = claimOf(method, path)
          const before = claims.get(claim)
          if (before !== undefined)
            return yield* new RouteClaimedTwice({ route: claim, owner, claimedBy: before.owner })
          const rules = rulesOfMounted(route)
          if (rules === undefined) return yield* Effect.die(new Error(`${claim} declares no cost: use route()`))
          claims.set(claim, { owner, method, path, rules })
          labels.add(path, rules)
          found.on(method, path, rules)
        }
      }),
      all: () => [...claims.values()],
      rules: {
        labelled: labels.of,
        of: (method, path) =>
          (found.find(method, path) ?? (isReading(method) ? found.find("GET", path) : undefined))?.handler
      }
    })
  })
}

/** Methods that a route for GET answers. */
const isReading = (method: string): boolean => method === "HEAD" || method === "OPTIONS"

export const mount = (router: HttpRouter.HttpRouter, collected: ReadonlyArray<Collected>): Effect.Effect<void> =>
  Effect.forEach(
    collected,
    ({ context, routes }) => Effect.provideContext(router.addAll(routes), context) as Effect.Effect<void>,
    { discard: true }
  )
