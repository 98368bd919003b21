// The middleware's rules for a route, before the router sees a request: the pages that may request it, and its label in
// metrics. The rules are declared with the route (`Route.ts`) and travel with it to the loader's table of routes.
import type { HttpRouter } from "effect/http"
import type { RouteCost } from "./RouteCost.ts"

/**
 * Which pages in a browser may request a route with GET. `page`: a page or one of its files; every page may link to it,
 * and it does not belong to the interface. `public`: an answer that every page may read. `guarded`: for this listener's
 * own pages, and pages in `server.allowed_origins`.
 */
type Exposure = "page" | "public" | "guarded"

export interface RouteRules {
  /** As declared, in the router's spelling. */
  readonly path: string
  readonly exposure: Exposure
  /** `own`: pages of other origins never read its answers, regardless of the settings. */
  readonly cors: "allowed" | "own"
  /** Value of the metrics' label `route`. */
  readonly label: string
  /** A request that repeats every few seconds; the access log has it only when it fails. */
  readonly isProbe: boolean
  /** A payment has its own rate, and admission control never refuses it. */
  readonly isPayment: boolean
  readonly cost: RouteCost
  /** The required principal, if keys are configured. */
  readonly callers: "public" | "keyed" | "operators"
}

/** The rules of every route that is served. */
export interface DeclaredRules {
  /** By the path only; undefined if no route was declared below its first segment. */
  readonly labelled: (path: string) => Pick<RouteRules, "label" | "isProbe"> | undefined
  /** The rules of the route that answers. A HEAD or OPTIONS without its own route has the rules of the GET. */
  readonly of: (method: string, path: string) => RouteRules | undefined
}

/** The first segment of a path, with its slash. */
export const firstSegment = (path: string): string => /^\/[^/]*/.exec(path)?.[0] ?? path

/** What every route declares, and what it may. */
export type DeclaredPlace = Partial<RouteRules> & Pick<RouteRules, "cost" | "callers">

/** The rules of a path: by default guarded, allowed for the origins in the settings, labeled by the first segment. */
export const rulesOf = (path: string, declared: DeclaredPlace): RouteRules => {
  const { callers, cors = "allowed", cost, exposure = "guarded", isPayment = false, isProbe = false } = declared
  return { path, exposure, cors, label: declared.label ?? firstSegment(path), isProbe, isPayment, cost, callers }
}

const carried: unique symbol = Symbol("RouteRules")

/** A route of the router that carries its rules. */
export const withRules = <E, R>(route: HttpRouter.Route<E, R>, rules: RouteRules): HttpRouter.Route<E, R> =>
  Object.assign(route, { [carried]: rules })

/** The rules that a route carries; undefined for a route of the bare router. */
export const rulesOfMounted = (route: { readonly path: string; readonly [carried]?: RouteRules }) => route[carried]
