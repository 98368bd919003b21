// The catalog's routes for /openapi.json, with the shapes of what they answer (S31–S48, S106–S132, S312, S315).
import type { Described, JsonSchema } from "../../kernel/http/OpenApi.ts"

const text = (description: string): JsonSchema => ({ type: "string", description })
const object = (properties: Readonly<Record<string, JsonSchema>>, required: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties,
  required
})
const list = (items: JsonSchema): JsonSchema => ({ type: "array", items })
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
const content = (schema: JsonSchema) => ({ "application/json": { schema } })
const parameter = (name: string, description: string, schema: JsonSchema, required = false) => ({
  name,
  in: "query",
  required,
  description,
  schema
})
const string: JsonSchema = { type: "string" }

const answers = (ok: string, schema: JsonSchema, more: Readonly<Record<string, string>>) => ({
  "200": { description: ok, content: content(schema) },
  ...Object.fromEntries(
    Object.entries(more).map(([status, description]) => [
      status,
      { description, content: content(ref("DiscoveryError")) }
    ])
  )
})

const filters = [
  parameter("type", "Kind of resource.", { enum: ["http", "mcp"] }),
  parameter("network", "In either spelling.", string),
  parameter("scheme", "Payment scheme.", string),
  parameter("payTo", "Address of a recipient.", string),
  parameter("asset", "Contract address of a token.", string),
  parameter("maxPrice", "In atomic units of `asset`, which is wanted with it.", {
    type: "string",
    pattern: "^(0|[1-9][0-9]{0,38})$"
  }),
  parameter("extensions", "Name of one declared extension.", string)
]

const paging = (limit: string) => [
  parameter("limit", limit, { type: "integer", minimum: 1, default: 20 }),
  parameter("offset", "Entries to skip; a cursor is better.", { type: "integer", minimum: 0, default: 0 }),
  parameter("cursor", "From the page before; with the same filters.", string)
]

export const described: Described = {
  paths: {
    "/discovery/resources": {
      get: {
        operationId: "browse",
        summary: "Listed resources, newest listing first.",
        parameters: [...filters, ...paging("At most 1000; a larger one is taken for that.")],
        responses: answers("A page.", ref("BrowsePage"), {
          400: "`invalid_filter` or `invalid_cursor`.",
          503: "The database is away."
        })
      }
    },
    "/discovery/resource": {
      get: {
        operationId: "resolve",
        summary: "One current resource; a concrete URL of a dynamic route leads to the route's entry.",
        parameters: [
          parameter("type", "Kind of resource.", { enum: ["http", "mcp"] }, true),
          parameter("url", "URL of the resource.", string, true),
          parameter("toolName", "Wanted with type=mcp.", string)
        ],
        responses: answers(
          "The resource.",
          object({ x402Version: { const: 2 }, resource: ref("DiscoveryResource") }, ["x402Version", "resource"]),
          {
            400: "`invalid_filter`.",
            404: "`not_found`.",
            503: "The database is away."
          }
        )
      }
    },
    "/discovery/search": {
      get: {
        operationId: "search",
        summary: "Ranked search, by the search plugins that are enabled.",
        parameters: [
          parameter("query", "What is looked for.", { type: "string", minLength: 1, maxLength: 512 }, true),
          ...filters,
          parameter("mode", "One whose plugin is off falls back to what is on.", {
            enum: ["lexical", "semantic", "hybrid"],
            default: "hybrid"
          }),
          ...paging("1 to 200.")
        ],
        responses: answers("A page.", ref("SearchPage"), {
          400: "`query_required`, `query_too_long`, `invalid_filter` or `invalid_cursor`.",
          503: "`search_disabled`, or the database is away."
        })
      }
    },
    "/catalog/v1/observations": {
      get: {
        operationId: "explainListing",
        summary:
          "Why a URL is or is not listed: what was observed of it, what was decided, and where its listings stand.",
        security: [{}, { bearer: [] }],
        parameters: [parameter("url", "URL of the resource.", string, true), ...paging("At most 200.").slice(0, 2)],
        responses: answers("What is known of the URL.", ref("ListingExplanation"), {
          400: "`invalid_filter`.",
          401: "A listed bearer key is wanted."
        })
      }
    },
    "/catalog/v1/moves": {
      post: {
        operationId: "moveListing",
        summary: "An operator removes, quarantines or restores a listing.",
        security: [{ bearer: [] }],
        requestBody: {
          required: true,
          content: content(
            object(
              {
                type: { enum: ["http", "mcp"], default: "http" },
                url: text("URL of the resource."),
                toolName: text("Wanted with type mcp."),
                move: { enum: ["remove", "quarantine", "restore"] },
                note: text("For other operators; never public.")
              },
              ["url", "move"]
            )
          )
        },
        responses: answers(
          "Moved.",
          object({ resource: string, from: string, to: string }, ["resource", "from", "to"]),
          {
            400: "`invalid_request`.",
            401: "An operator's bearer key is wanted.",
            403: "No operator key is configured.",
            404: "`not_found`."
          }
        )
      }
    }
  },
  schemas: {
    DiscoveryError: object({ error: text("A word."), details: list(text("A fault each.")) }, ["error"]),
    DiscoveryResource: object(
      {
        resource: text(
          "URL that buyers call, without query; for a dynamic route the origin and its template; the endpoint of an MCP tool."
        ),
        type: { enum: ["http", "mcp"] },
        x402Version: { const: 2 },
        accepts: list(ref("PaymentOption")),
        lastUpdated: { type: "string", format: "date-time", description: "When its newest version was declared." },
        description: text("Inert text of the seller, as all words here are."),
        serviceName: text("At most 32 characters."),
        tags: list(string),
        mimeType: text("Of what it answers."),
        iconUrl: text("Never fetched by this service."),
        routeTemplate: text("Of a dynamic route."),
        toolName: text("Of an MCP tool."),
        extensions: { type: "object", description: "What was declared, under the key it was declared with." },
        operations: list(
          object({ method: string, accepts: list(ref("PaymentOption")), info: { type: "object" } }, [
            "method",
            "accepts",
            "info"
          ])
        ),
        status: { enum: ["active", "stale"] },
        verification: {
          enum: ["unverified", "payment_observed"],
          description: "Whether a payment has been observed; says nothing of ownership or quality."
        },
        ownership: {
          enum: ["provisional", "proven"],
          description: "Whether the origin itself has named the recipient."
        },
        versionHash: text(
          "sha256 hex of the canonical JSON (RFC 8785) of this object without lastUpdated, status, verification, ownership and versionHash."
        )
      },
      ["resource", "type", "x402Version", "accepts"]
    ),
    BrowsePage: object(
      {
        x402Version: { const: 2 },
        items: list(ref("DiscoveryResource")),
        pagination: object(
          {
            limit: { type: "integer" },
            offset: { type: "integer" },
            total: { type: "integer", description: "Exact, of the snapshot that the first page fixed." },
            cursor: { type: ["string", "null"], description: "Of the next page; null on the last." }
          },
          ["limit", "offset", "total", "cursor"]
        ),
        partialResults: { const: false }
      },
      ["x402Version", "items", "pagination", "partialResults"]
    ),
    SearchPage: object(
      {
        x402Version: { const: 2 },
        resources: list(ref("DiscoveryResource")),
        partialResults: { type: "boolean", description: "A branch of search was off or did not answer in time." },
        pagination: object({ limit: { type: "integer" }, cursor: { type: ["string", "null"] } }, ["limit", "cursor"])
      },
      ["x402Version", "resources", "partialResults", "pagination"]
    ),
    ListingExplanation: object(
      {
        x402Version: { const: 2 },
        url: text("In the spelling under which it is listed."),
        listings: list({ type: "object", description: "Where each listing of the URL stands, with its moves." }),
        items: list({
          type: "object",
          description: "Observations, newest first: stage, decision, public reason, times, lag."
        }),
        pagination: object({ limit: { type: "integer" }, offset: { type: "integer" }, total: { type: "integer" } }, [
          "limit",
          "offset",
          "total"
        ])
      },
      ["x402Version", "url", "listings", "items", "pagination"]
    )
  }
}
