// Compares the interface description with the facilitator's real requests and answers: every body of this file is
// validated against the schema that the document gives for its route and status.
import { expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Context, Effect } from "effect"
import { RouteClaims } from "../../../kernel/plugin/Routes.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const formats = { "date-time": (text: string) => !Number.isNaN(Date.parse(text)), uri: true }

/** Issues of `value` by the schema of a part of the document, named by its path of keys. */
const verify = (document: any) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: formats as never })
  ajv.addSchema({ ...document, $id: "http://interface/" })
  return (keys: ReadonlyArray<string>, value: unknown): ReadonlyArray<string> => {
    const pointer = keys
      .map((key) => `/${encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"))}`)
      .join("")
    const validate = ajv.compile({ $ref: `http://interface/#${pointer}` })
    return validate(value)
      ? []
      : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}

/**
 * Sets additionalProperties of every object of the document to false, so that an answer with an undescribed field is
 * seen.
 */
const closed = (value: any): any =>
  Array.isArray(value)
    ? value.map(closed)
    : typeof value === "object" && value !== null
      ? {
          ...Object.fromEntries(Object.entries(value).map(([key, item]) => [key, closed(item)])),
          ...(value.type === "object" && value.properties !== undefined && value.additionalProperties === undefined
            ? { additionalProperties: false }
            : {})
        }
      : value

/** All except readiness, to which every driver and plugin adds its own report. */
const closedBut = (document: any): any => {
  const all = closed(document)
  const { Readiness } = document.components.schemas
  return { ...all, components: { ...all.components, schemas: { ...all.components.schemas, Readiness } } }
}

const withFacilitator =
  (options: Parameters<typeof startFacilitator>[0], use: (facilitator: Facilitator) => Effect.Effect<void, unknown>) =>
  () =>
    Effect.scoped(Effect.flatMap(startFacilitator(options), use))

it.live(
  "OpenAPI matches every answer of the payment routes [S2, S306, S307]",
  withFacilitator({}, (facilitator) =>
    Effect.gen(function* () {
      const document = (yield* facilitator.ask("/openapi.json")).json
      const strict = verify(closedBut(document))
      const loose = verify(document)
      const check = (path: string, method: string, answer: Answer) =>
        expect([
          path,
          answer.status,
          strict(
            ["paths", path, method, "responses", String(answer.status), "content", "application/json", "schema"],
            answer.json
          )
        ]).toEqual([path, answer.status, []])
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const honest = yield* facilitator.payment({
        payer,
        payTo,
        amount: 10_000n,
        extensions: { "payment-identifier": { info: { id: "described-0123456789" } } }
      })
      const late = yield* facilitator.payment({ payer, payTo, amount: 10_000n, tamper: { expiryOffset: -100 } })
      for (const { body } of [honest, late]) {
        expect(
          loose(["paths", "/settle", "post", "requestBody", "content", "application/json", "schema"], body)
        ).toEqual([])
        check("/verify", "post", yield* facilitator.verify(body))
        check("/settle", "post", yield* facilitator.settle(body))
      }
      const large = JSON.stringify({ pad: "x".repeat(300_000) })
      for (const body of ["{", large]) {
        check("/verify", "post", yield* facilitator.verify(body))
        check("/settle", "post", yield* facilitator.settle(body))
      }
      const other = yield* facilitator.payment({
        payer,
        payTo,
        amount: 10_001n,
        extensions: { "payment-identifier": { info: { id: "described-0123456789" } } }
      })
      const conflict = yield* facilitator.settle(other.body)
      expect(conflict.status).toBe(409)
      check("/settle", "post", conflict)
      for (const path of ["/supported", "/health", "/health/live", "/health/ready"])
        check(path, "get", yield* facilitator.ask(path))
      for (const [query, status] of [
        ["?identifier=described-0123456789", 200],
        ["", 400],
        [`?hash=${"0".repeat(64)}`, 404]
      ] as const) {
        const answer = yield* facilitator.ask(`/settlements${query}`)
        expect(answer.status).toBe(status)
        check("/settlements", "get", answer)
      }
      for (const wrong of [{}, { x402Version: 1, paymentPayload: {}, paymentRequirements: {} }]) {
        expect(
          loose(["paths", "/verify", "post", "requestBody", "content", "application/json", "schema"], wrong)
        ).not.toEqual([])
      }
    })
  ),
  240_000
)

it.live(
  "OpenAPI lists exactly the served routes with their methods",
  withFacilitator({ channels: 1 }, (facilitator) =>
    Effect.gen(function* () {
      const document = (yield* facilitator.ask("/openapi.json")).json
      const described = Object.entries<any>(document.paths).flatMap(([path, item]) =>
        Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`)
      )
      const served = Context.getUnsafe(facilitator.services, RouteClaims as never) as RouteClaims["Service"]
      const routes = served
        .all()
        // Pages, their files and answers to preflights are not part of the interface.
        .filter(({ method, rules }) => method !== "OPTIONS" && rules.exposure !== "page")
        .map(({ method, path }) => `${method} ${path.replace(/:([^/]+)/g, "{$1}").replace(/\*$/, "{tile}")}`)
      expect(described.toSorted()).toEqual(routes.toSorted())
      const operations: ReadonlyArray<any> = Object.values(document.paths).flatMap((item: any) => Object.values(item))
      const endless = operations.filter(({ responses }) => !Object.keys(responses).some((status) => status < "300"))
      expect(endless.map(({ operationId }) => operationId)).toEqual(["demoWeather"])
      // Each owner has at least one route, because the comparison is of two whole lists.
      for (const one of ["POST /settle", "GET /discovery/search", "GET /analytics/v1/search/missed"])
        expect(routes).toContain(one)
    })
  ),
  180_000
)

it.live(
  "OpenAPI matches the search reports [S168, S172, S177]",
  withFacilitator({ channels: 1 }, (facilitator) =>
    Effect.gen(function* () {
      const document = (yield* facilitator.ask("/openapi.json")).json
      const errorsOf = verify(closed(document))
      // If a busy machine could not answer a search completely, it does not count and is repeated.
      const isMissed = Effect.map(
        facilitator.ask("/analytics/v1/search/missed"),
        ({ json }) => (json.items as ReadonlyArray<unknown>).length > 0
      )
      while (!(yield* isMissed)) {
        yield* facilitator.ask("/discovery/search?query=zebra%20maps")
        yield* Effect.sleep("100 millis")
      }
      for (const [name, query, status] of [
        ["status", "", 200],
        ["generations", "", 200],
        ["generations", "?limit=some", 400],
        ["conversion", "?hours=720", 200],
        ["conversion", "?hours=721", 400],
        ["missed", "?hours=1&limit=200&offset=0", 200],
        ["missed", "?hours=24&offset=5", 200],
        ["missed", "?offset=-1", 400]
      ] as const) {
        const path = `/analytics/v1/search/${name}`
        const answer = yield* facilitator.ask(path + query)
        const schema = ["paths", path, "get", "responses", String(status), "content", "application/json", "schema"]
        expect([name, query, answer.status, errorsOf(schema, answer.json)]).toEqual([name, query, status, []])
      }
      // Beyond the last page the total is still reported.
      const behind = yield* facilitator.ask("/analytics/v1/search/missed?offset=5")
      expect(behind.json).toEqual({ items: [], pagination: { limit: 50, offset: 5, total: 1 } })
    })
  ),
  180_000
)

it.live(
  "describes 401 answers and names each operation once",
  withFacilitator(
    {
      environment: { FACILITATOR_API_KEYS: "a-secret-of-a-caller-1", OPERATOR_API_KEYS: "a-secret-of-an-operator" },
      set: ["server.host=127.0.0.1"]
    },
    (facilitator) =>
      Effect.gen(function* () {
        const document = (yield* facilitator.ask("/openapi.json")).json
        const errorsOf = verify(document)
        for (const [path, method] of [
          ["/verify", "post"],
          ["/settle", "post"],
          ["/settlements", "get"],
          ["/metrics", "get"]
        ] as const) {
          const answer = yield* facilitator.ask(path, { method: method.toUpperCase() })
          expect([path, answer.status]).toEqual([path, 401])
          expect(
            errorsOf(["paths", path, method, "responses", "401", "content", "application/json", "schema"], answer.json)
          ).toEqual([])
        }
        const operations: ReadonlyArray<any> = Object.values(document.paths).flatMap((item: any) => Object.values(item))
        const ids = operations.map(({ operationId }) => operationId)
        expect(new Set(ids).size).toBe(ids.length)
        for (const operation of operations)
          expect([operation.operationId, typeof operation.summary, typeof operation.responses]).toEqual([
            operation.operationId,
            "string",
            "object"
          ])
      })
  ),
  240_000
)
