// The OpenAPI 3.1 document at /openapi.json. Each owner of routes describes them with the Schemas that type their input
// and output; the document omits disabled routes. The document is built on the first request after an owner was added
// or removed. Two owners that give one name to different shapes are a defect.
import { Context, Effect, Layer, Schema, type Scope } from "effect"

/** Version of the interface (S307), not of the program. */
export const interfaceVersion = "0.1.0"

/** A JSON Schema of dialect 2020-12. */
type JsonSchema = Readonly<Record<string, unknown>>

/** Named parameters; an optional key may be omitted. */
export type Parameters = Schema.Struct<any>

export interface AnswerDescription {
  readonly description: string
  readonly body?: Schema.Constraint
  /** Default `application/json`. */
  readonly mediaType?: string
  readonly headers?: Parameters
}

export interface RouteDescription {
  readonly method: "get" | "post" | "delete"
  /** `{name}` is a path parameter. */
  readonly path: string
  /** Unique over all routes. */
  readonly id: string
  readonly summary: string
  /** The route's tag in the document. */
  readonly tag: string
  /** Required principal, if keys are configured. */
  readonly callers: "public" | "keyed" | "operators"
  readonly inPath?: Parameters
  readonly query?: Parameters
  readonly headers?: Parameters
  readonly body?: Schema.Constraint
  readonly answers: Readonly<Record<number, AnswerDescription>>
}

export interface Described {
  readonly tags: Readonly<Record<string, string>>
  readonly routes: ReadonlyArray<RouteDescription>
}

type Definitions = Map<string, unknown>

/** A schema in the document's form: a schema with an identifier becomes a component and is referenced. */
const toOpenApi = (schema: Schema.Constraint, components: Definitions): JsonSchema => {
  const traverse = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(traverse)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        // Unknown fields are ignored at every level, so the document omits this.
        .filter(([key, item]) => !(key === "additionalProperties" && item === true))
        .map(([key, item]) => [
          key,
          key === "$ref" ? String(item).replace("#/$defs/", "#/components/schemas/") : traverse(item)
        ])
    )
  }
  const { definitions, schema: own } = Schema.toJsonSchemaDocument(schema)
  for (const [name, definition] of Object.entries(definitions)) {
    const shape = traverse(definition)
    const known = components.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(shape))
      throw new Error(`two shapes are named ${name}`)
    components.set(name, shape)
  }
  return traverse(own) as JsonSchema
}

const toParameters = (place: "path" | "query" | "header", given: Parameters | undefined, components: Definitions) => {
  if (given === undefined) return []
  const { properties, required } = toOpenApi(given, components) as {
    readonly properties?: Readonly<Record<string, JsonSchema>>
    readonly required?: ReadonlyArray<string>
  }
  return Object.entries(properties ?? {}).map(([name, { description, ...schema }]) => ({
    name,
    in: place,
    required: required?.includes(name) ?? false,
    ...(description === undefined ? {} : { description }),
    schema
  }))
}

const toAnswer = ({ body, description, headers, mediaType }: AnswerDescription, components: Definitions) => ({
  description,
  ...(headers === undefined
    ? {}
    : {
        headers: Object.fromEntries(
          toParameters("header", headers, components).map(({ in: _in, name, ...header }) => [name, header])
        )
      }),
  ...(body === undefined
    ? {}
    : { content: { [mediaType ?? "application/json"]: { schema: toOpenApi(body, components) } } })
})

const security = { public: [{}], keyed: [{}, { bearer: [] }], operators: [{ bearer: [] }] } as const

const toOperation = (route: RouteDescription, components: Definitions) => ({
  operationId: route.id,
  summary: route.summary,
  tags: [route.tag],
  security: security[route.callers],
  parameters: [
    ...toParameters("path", route.inPath, components),
    ...toParameters("query", route.query, components),
    ...toParameters("header", route.headers, components)
  ],
  ...(route.body === undefined
    ? {}
    : {
        requestBody: { required: true, content: { "application/json": { schema: toOpenApi(route.body, components) } } }
      }),
  responses: Object.fromEntries(
    Object.entries(route.answers).map(([status, answer]) => [status, toAnswer(answer, components)])
  )
})

const toDocument = (parts: ReadonlyArray<Described>): JsonSchema => {
  const components: Definitions = new Map()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of parts.flatMap(({ routes }) => routes))
    (paths[route.path] ??= {})[route.method] = toOperation(route, components)
  return {
    openapi: "3.1.0",
    info: {
      title: "Tollkeeper",
      version: interfaceVersion,
      description: "An x402 v2 payment facilitator for the Stellar ledger. Unknown fields are ignored at every level.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" }
    },
    servers: [{ url: "/", description: "This facilitator." }],
    tags: Object.entries(Object.assign({}, ...parts.map(({ tags }) => tags)) as Described["tags"]).map(
      ([name, description]) => ({ name, description })
    ),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "Required only when keys are configured." }
      }
    }
  }
}

export class OpenApi extends Context.Service<
  OpenApi,
  {
    /** Adds an owner's routes while the Scope lives. They are read each time the document is made. */
    readonly describe: (described: () => Described) => Effect.Effect<void, never, Scope.Scope>
    /** The document as JSON. */
    readonly text: () => string
  }
>()("tollkeeper/http/OpenApi") {
  static readonly layer = Layer.sync(OpenApi, () => {
    const parts = new Set<() => Described>()
    let made: string | undefined
    const change = (by: () => void) =>
      Effect.sync(() => {
        by()
        made = undefined
      })
    return OpenApi.of({
      describe: (described) =>
        Effect.asVoid(
          Effect.acquireRelease(
            change(() => parts.add(described)),
            () => change(() => parts.delete(described))
          )
        ),
      text: () => (made ??= JSON.stringify(toDocument([...parts].map((described) => described()))))
    })
  })
}
