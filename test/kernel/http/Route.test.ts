// One declaration of a route, as used by the router, the document, the reader of its query, the metrics' label and the
// checks of pages.
import { expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { allowOrigins } from "../../../kernel/http/allowOrigins.ts"
import { withinCapacity } from "../../../kernel/http/httpMiddleware.ts"
import { OpenApi } from "../../../kernel/http/OpenApi.ts"
import { inForm, parameter, queryOf, readQuery } from "../../../kernel/http/readQuery.ts"
import { addRoutes, type Documented, errors, mountRoutes, route } from "../../../kernel/http/Route.ts"
import { text, whole } from "../../../kernel/http/wireSchema.ts"
import { type Collected, collectingRouter, RouteClaims } from "../../../kernel/plugin/Routes.ts"

const answer = Effect.succeed(HttpServerResponse.text("answered"))
const digits = { pattern: /^[0-9]+$/u, expected: "digits" }

const list = {
  method: "GET",
  path: "/shelf/v1/books/:shelf",
  id: "books",
  summary: "Books.",
  exposure: "public",
  callers: "public",
  cost: { cpuMillis: 1, bytesOut: 1_024 },
  inPath: Schema.Struct({ shelf: text("Its name.") }),
  query: Schema.Struct({
    after: Schema.optionalKey(parameter(digits, "From this on.")),
    limit: Schema.optionalKey(inForm(whole("At most."), digits)),
    note: Schema.optionalKey(text("Anything."))
  }),
  answers: { 200: { description: "Found.", body: Schema.String }, ...errors({ 400: "Not digits." }) }
} satisfies Documented

const file = {
  method: "GET",
  path: "/shelf/files/*",
  id: "file",
  summary: "A file.",
  callers: "keyed",
  cost: { cpuMillis: 1, bytesOut: 1_024 },
  inPath: Schema.Struct({ name: text("Its path.") }),
  answers: { 200: { description: "The file.", body: Schema.String } }
} satisfies Documented

const priced = { callers: "public", cost: { cpuMillis: 1, bytesOut: 1_024 } } as const
const about = { tag: "shelf", about: "A shelf." }

const declared = Effect.gen(function* () {
  const collected: Array<Collected> = []
  const claims = yield* RouteClaims
  const openApi = yield* OpenApi
  yield* Effect.gen(function* () {
    yield* addRoutes(about, [
      route(list, answer),
      route(file, answer),
      route({ ...list, method: "POST", id: "addBook", exposure: "public" }, answer)
    ])
    // A second group of a tag adds no second tag.
    yield* addRoutes(about, [])
    yield* mountRoutes([
      route({ method: "GET", path: "/shelf", exposure: "page", cors: "own", ...priced }, answer),
      route({ method: "DELETE", path: "/shelf/own", exposure: "guarded", cors: "own", ...priced }, answer),
      route(
        { method: "GET", path: "/alive/now", exposure: "public", label: "/alive/now", isProbe: true, ...priced },
        answer
      )
    ])
  }).pipe(Effect.provideService(HttpRouter.HttpRouter, collectingRouter(collected)))
  yield* claims.claim("library", collected)
  return { rules: claims.rules, document: JSON.parse(openApi.text()) as any as any }
})

const layer = Layer.merge(RouteClaims.layer, OpenApi.layer)
const withRoutes = <A, E>(use: (made: Effect.Success<typeof declared>) => Effect.Effect<A, E>) =>
  declared.pipe(Effect.flatMap(use), Effect.provide(layer), Effect.scoped)

it.effect("a declared route has its rules", () =>
  withRoutes(({ rules }) =>
    Effect.sync(() => {
      expect(rules.of("GET", "/shelf/v1/books/low")).toEqual({
        path: "/shelf/v1/books/:shelf",
        exposure: "public",
        cors: "allowed",
        label: "/shelf",
        isPayment: false,
        isProbe: false,
        ...priced
      })
      for (const method of ["HEAD", "OPTIONS"]) expect(rules.of(method, "/shelf/")?.exposure).toBe("page")
      expect(rules.of("DELETE", "/shelf")).toBe(undefined)
      expect(rules.of("GET", "/%73helf")?.cors).toBe("own")
    })
  )
)

it.effect("a route of the bare router, without a cost, is refused", () =>
  Effect.gen(function* () {
    const collected: Array<Collected> = []
    yield* collectingRouter(collected).add("GET", "/plain/:x", answer)
    const refused = yield* Effect.flip(Effect.sandbox((yield* RouteClaims).claim("plain", collected)))
    expect(Cause.pretty(refused)).toContain("GET /plain/: declares no cost")
  }).pipe(Effect.provide(layer))
)

it.effect("a path is a label only as declared, or by the first segment of declared paths", () =>
  withRoutes(({ rules }) =>
    Effect.sync(() => {
      const labels = ["/shelf", "/shelf/v1/books/low", "/shelf/any/thing", "/alive/now", "/alive/then", "/stranger"]
      expect(labels.map((path) => rules.labelled(path)?.label)).toEqual([
        "/shelf",
        "/shelf",
        "/shelf",
        "/alive/now",
        undefined,
        undefined
      ])
      expect([rules.labelled("/alive/now")?.isProbe, rules.labelled("/shelf")?.isProbe]).toEqual([true, false])
    })
  )
)

it.effect("the document has the declared routes and no page", () =>
  withRoutes(({ document }) =>
    Effect.sync(() => {
      expect(Object.keys(document.paths).toSorted()).toEqual(["/shelf/files/{name}", "/shelf/v1/books/{shelf}"])
      const { get, post } = document.paths["/shelf/v1/books/{shelf}"]
      expect([get.operationId, get.tags, post.operationId]).toEqual(["books", ["shelf"], "addBook"])
      expect(get.parameters.map(({ in: at, name }: any) => `${at} ${name}`)).toEqual([
        "path shelf",
        "query after",
        "query limit",
        "query note"
      ])
      expect(get.parameters[1].schema).toEqual({ type: "string", pattern: "^[0-9]+$" })
      expect(get.parameters[2].schema).toMatchObject({ type: "integer", minimum: 0 })
      expect(document.tags).toEqual([{ name: "shelf", description: "A shelf." }])
      for (const word of ["exposure", "cors", "label", "isProbe", "cost"]) expect(Object.keys(get)).not.toContain(word)
    })
  )
)

it("the query is read by the declared forms, an issue a parameter", () => {
  const read = readQuery(list.query, queryOf({ url: "/shelf?after=x&limit=12&note=%20&other=1#part" }))
  expect([read.given("after"), read.given("limit"), read.given("note"), read.raw("after")]).toEqual([
    undefined,
    "12",
    " ",
    "x"
  ])
  expect(read.issues).toEqual(["after: digits"])
  const absent = readQuery(list.query, queryOf({ url: "http://host/shelf?after=" }))
  expect([absent.given("after"), absent.given("limit"), absent.issues]).toEqual([undefined, undefined, []])
  // @ts-expect-error: a parameter that is not declared
  expect(() => read.given("other")).toThrow()
})

const shop = "https://shop.example"

it.effect("other pages read public routes and link to pages; guarded routes are for those of the settings", () =>
  withRoutes(({ rules }) =>
    Effect.gen(function* () {
      const guard = withinCapacity({ host: "127.0.0.1", allowedHosts: [], allowedOrigins: [shop] }, rules)(answer)
      const statusOf = (method: string, path: string, origin: string) =>
        Effect.map(
          Effect.provide(
            guard,
            Context.make(
              HttpServerRequest.HttpServerRequest,
              HttpServerRequest.fromWeb(
                new Request(`http://127.0.0.1${path}`, { method, headers: { host: "127.0.0.1", origin } })
              )
            )
          ),
          ({ status }) => status
        )
      const foreign = "https://other.example"
      expect(yield* statusOf("GET", "/shelf/v1/books/low?x=1", foreign)).toBe(200)
      expect(yield* statusOf("GET", "/shelf", foreign)).toBe(200)
      for (const [method, path] of [
        ["POST", "/shelf/v1/books/low"],
        ["GET", "/shelf/files/a"],
        ["GET", "/plain/x"],
        ["GET", "/nothing"]
      ] as const) {
        expect([method, path, yield* statusOf(method, path, foreign)]).toEqual([method, path, 403])
        expect([method, path, yield* statusOf(method, path, shop)]).toEqual([method, path, 200])
      }
    })
  )
)

it.effect("pages of allowed origins read what is not declared for this origin alone", () =>
  withRoutes(({ rules }) =>
    Effect.gen(function* () {
      const cors = (method: string, path: string, headers: Record<string, string> = {}) =>
        Effect.map(
          Effect.provideService(
            allowOrigins([shop], rules)(answer),
            HttpServerRequest.HttpServerRequest,
            HttpServerRequest.fromWeb(
              new Request(`http://127.0.0.1${path}`, { method, headers: { origin: shop, ...headers } })
            )
          ),
          ({ headers }) => headers["access-control-allow-origin"]
        )
      for (const path of ["/shelf/files/a", "/shelf/v1/books/low", "/nothing"])
        expect([path, yield* cors("GET", path)]).toEqual([path, shop])
      for (const path of ["/shelf", "/shelf?x=1", "/%73helf"])
        expect([path, yield* cors("GET", path)]).toEqual([path, undefined])
      const asks = { "access-control-request-method": "DELETE" }
      expect(yield* cors("OPTIONS", "/shelf/own", asks)).toBe(undefined)
      expect(yield* cors("OPTIONS", "/shelf/files/a", asks)).toBe(shop)
    })
  )
)

it.effect("a route of the bare router ends the boot", () =>
  Effect.gen(function* () {
    const collected: Array<Collected> = []
    yield* collectingRouter(collected).add("GET", "/shelf", answer)
    const claims = yield* RouteClaims
    const exit = yield* Effect.exit(claims.claim("library", collected))
    expect(String(exit)).toContain("GET /shelf declares no cost")
  }).pipe(Effect.provide(RouteClaims.layer))
)
