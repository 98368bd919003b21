// One declaration of a route: its method and path, what it takes and gives, which callers and pages may request it, and
// its metric label. The router, the document at /openapi.json, the reader of its query (`readQuery.ts`), the rules of
// the middleware (`RouteRules.ts`) and the label of its metrics come from it. Nothing is decoded or encoded around a
// handler, so that each error body is the owner's.
import { Effect, type Schema } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type AnswerDescription, OpenApi, type Parameters, type RouteDescription } from "./OpenApi.ts"
import { type RouteRules, rulesOf, withRules } from "./RouteRules.ts"
import { ErrorBody } from "./wireSchema.ts"

interface Place extends Partial<RouteRules> {
  readonly method: "GET" | "POST" | "DELETE" | "OPTIONS"
  /** As the router spells it: `:name` is a parameter, `*` the rest. */
  readonly path: HttpRouter.PathInput
}

/** A page, a file of one, the answer to a preflight, or a route of another program than the facilitator. */
export interface Undocumented extends Place {
  readonly id?: undefined
}

/** A route of the interface, as the document has it. */
export interface Documented extends Place, Omit<RouteDescription, "method" | "path" | "tag"> {}

/** A declared route with its handler. */
export interface Route {
  readonly declared: Documented | Undocumented
  readonly mounted: HttpRouter.Route
}

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpRouter.Provided>
/** Answers each request, of which it may read more than its declaration says. */
export type Handler = Answer | ((request: HttpServerRequest.HttpServerRequest) => Answer)

export const route = (declared: Documented | Undocumented, handler: Handler): Route => {
  const { method, path } = declared
  return { declared, mounted: withRules(HttpRouter.route(method, path, handler), rulesOf(path, declared)) }
}

/** Errors of a route by their statuses, each with its description. */
export const errors = (
  descriptions: Readonly<Record<number, string>>,
  body: Schema.Constraint = ErrorBody
): Readonly<Record<number, AnswerDescription>> =>
  Object.fromEntries(Object.entries(descriptions).map(([status, description]) => [status, { description, body }]))

/** The path as the document spells it; the rest of a path has the name of the parameter that is not in it. */
const documentPath = (path: string, inPath: Parameters | undefined): string => {
  const rest = Object.keys(inPath?.fields ?? {}).find((name) => !path.includes(`:${name}`))
  return path.replace(/:([^/]+)/g, "{$1}").replace(/\*$/, `{${rest}}`)
}

const describedIn =
  (tag: string) =>
  ({ declared }: Route): ReadonlyArray<RouteDescription> => {
    if (declared.id === undefined) return []
    const method = declared.method.toLowerCase() as RouteDescription["method"]
    return [{ ...declared, tag, method, path: documentPath(declared.path, declared.inPath) }]
  }

/** Routes of one tag of the document. */
export interface RouteGroup {
  readonly tag: string
  /** What they are about, in a sentence. */
  readonly about: string
}

/** The routes of the process itself, whichever driver answers them. */
export const processRoutes: RouteGroup = { tag: "process", about: "The process itself." }

/** Mounts routes without describing them. */
export const mountRoutes = (routes: ReadonlyArray<Route>) =>
  Effect.flatMap(HttpRouter.HttpRouter, (router) => router.addAll(routes.map(({ mounted }) => mounted)))

/** Mounts an owner's routes and describes them, for as long as the Scope lives. */
export const addRoutes = Effect.fnUntraced(function* ({ about, tag }: RouteGroup, routes: ReadonlyArray<Route>) {
  const { describe } = yield* OpenApi
  yield* mountRoutes(routes)
  yield* describe(() => ({ tags: { [tag]: about }, routes: routes.flatMap(describedIn(tag)) }))
})
