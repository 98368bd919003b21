// What the middleware knows of a route before the router sees a request: who may request it from a page, and its label
// in metrics. The rules are declared with the route (`Route.ts`) and travel with it to the loader's table of routes.
import type { HttpRouter } from "effect/http"

/**
 * Which pages in a browser may request a route with GET. `page`: a page or one of its files, to which every page may
 * link, and no part of the interface. `public`: an answer that every page may read. `guarded`: for this listener's own
 * pages, and those that `server.allowed_origins` names.
 */
export type Exposure = "page" | "public" | "guarded"

export interface RouteRules {
  readonly exposure: Exposure
  /** `own`: pages of other origins never read its answers, whatever the settings allow. */
  readonly cors: "allowed" | "own"
  /** Value of the metrics' label `route`. */
  readonly label: string
  /** A request every few seconds for ever, which the access log has only when it fails. */
  readonly isProbe: boolean
}

/** The rules of every route that is served. */
export interface DeclaredRules {
  /** By a path alone; undefined where nothing was declared below its first segment. */
  readonly labelled: (path: string) => Pick<RouteRules, "label" | "isProbe"> | undefined
  /** The route that answers; of a HEAD or OPTIONS without a route of its own that of the GET. */
  readonly of: (method: string, path: string) => RouteRules | undefined
}

/** The first segment of a path, with its slash. */
export const firstSegment = (path: string): string => /^\/[^/]*/.exec(path)?.[0] ?? path

/** The rules of a path: by default guarded, allowed to the origins of the settings, labeled by the first segment. */
export const rulesOf = (
  path: string,
  { cors = "allowed", exposure = "guarded", isProbe = false, label = firstSegment(path) }: Partial<RouteRules> = {}
): RouteRules => ({ exposure, cors, label, isProbe })

const carried: unique symbol = Symbol("RouteRules")

/** A route of the router that carries its rules. */
export const withRules = <E, R>(route: HttpRouter.Route<E, R>, rules: RouteRules): HttpRouter.Route<E, R> =>
  Object.assign(route, { [carried]: rules })

/** The rules that a route carries, or the default. */
export const rulesOfMounted = (route: { readonly path: string; readonly [carried]?: RouteRules }): RouteRules =>
  route[carried] ?? rulesOf(route.path)
