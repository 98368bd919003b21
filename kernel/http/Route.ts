// One declaration of a route: its method and path, its input and output, its worst cost, the callers and pages that may
// request it, and its metric label. The router, the document at /openapi.json, the reader of its query
// (`readQuery.ts`), admission control, the rules of the middleware (`RouteRules.ts`) and its metrics come from it.
// Handlers are called without decoding or encoding around them, so that each owner defines its error bodies.
import { Effect, type Schema } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type AnswerDescription, OpenApi, type Parameters, type RouteDescription } from "./OpenApi.ts"
import { type DeclaredPlace, rulesOf, withRules } from "./RouteRules.ts"
import { ErrorBody } from "./wireSchema.ts"

type Place = DeclaredPlace & {
  readonly method: "GET" | "POST" | "DELETE" | "OPTIONS"
  /** In the router's spelling: `:name` is a parameter, `*` the rest. */
  readonly path: HttpRouter.PathInput
}

/** A page, one of its files, the answer to a preflight, or a route of another program than the facilitator. */
type Undocumented = Place & { readonly id?: undefined }

/** A route of the interface, in the document's form. */
export type Documented = Place & Omit<RouteDescription, "method" | "path" | "tag">

/** The beginning of a declaration: method, path and id. */
export const at = <
  const Method extends Place["method"],
  const Path extends HttpRouter.PathInput,
  const Id extends string
>(
  method: Method,
  path: Path,
  id: Id
) => ({ method, path, id })

export interface Route {
  readonly declared: Documented | Undocumented
  readonly mounted: HttpRouter.Route
}

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpRouter.Provided>
/** Answers each request. It may read more of the request than the declaration lists. */
export type Handler = Answer | ((request: HttpServerRequest.HttpServerRequest) => Answer)

export const route = (declared: Documented | Undocumented, handler: Handler): Route => {
  const { method, path } = declared
  return { declared, mounted: withRules(HttpRouter.route(method, path, handler), rulesOf(path, declared)) }
}

export const errors = (
  descriptions: Readonly<Record<number, string>>,
  body: Schema.Constraint = ErrorBody
): Readonly<Record<number, AnswerDescription>> =>
  Object.fromEntries(Object.entries(descriptions).map(([status, description]) => [status, { description, body }]))

/** A route's answer when it succeeds, and its errors. */
export const answers = (
  description: string,
  body: Schema.Constraint,
  failures: Readonly<Record<number, string>>,
  failureBody?: Schema.Constraint
): Readonly<Record<number, AnswerDescription>> => ({ 200: { description, body }, ...errors(failures, failureBody) })

/** The path in the document's spelling; `*` gets the name of the parameter that is missing in the path. */
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

export interface RouteGroup {
  readonly tag: string
  readonly about: string
}

/** The routes of the process itself, for every driver that answers them. */
export const processRoutes: RouteGroup = { tag: "process", about: "The process itself." }

/** Mounts routes without describing them. */
export const mountRoutes = (routes: ReadonlyArray<Route>) =>
  Effect.flatMap(HttpRouter.HttpRouter, (router) => router.addAll(routes.map(({ mounted }) => mounted)))

/** Mounts an owner's routes and describes them, while the Scope lives. */
export const addRoutes = Effect.fnUntraced(function* ({ about, tag }: RouteGroup, routes: ReadonlyArray<Route>) {
  const { describe } = yield* OpenApi
  yield* mountRoutes(routes)
  yield* describe(() => ({ tags: { [tag]: about }, routes: routes.flatMap(describedIn(tag)) }))
})
