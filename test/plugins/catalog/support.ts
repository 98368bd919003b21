// Shared by the catalog's tests: declarations in the official helpers' form, payments that carry them, and readers of
// the header and of the public routes.
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import type { Answer, Facilitator } from "../../support/facilitator.ts"

export type Json = Record<string, any>

const dialect = "https://json-schema.org/draft/2020-12/schema"

/** A declaration of a query method, in the form of `declareDiscoveryExtension` and the server extension. */
export const queryDeclaration = (options: Json = {}): Json => ({
  info: {
    input: {
      type: "http",
      method: options["method"] ?? "GET",
      queryParams: options["input"] ?? { city: "Riga" },
      ...options["inputMore"]
    },
    output: { type: "json", example: options["example"] ?? { city: "Riga", celsius: 17 } }
  },
  schema: {
    $schema: dialect,
    type: "object",
    properties: {
      input: {
        type: "object",
        properties: {
          type: { type: "string", const: "http" },
          method: { type: "string", enum: [options["method"] ?? "GET"] },
          queryParams: {
            type: "object",
            ...(options["inputSchema"] ?? { properties: { city: { type: "string" } }, required: ["city"] })
          },
          ...(options["routeTemplate"] === undefined ? {} : { pathParams: { type: "object" } })
        },
        required: ["type", "method"],
        additionalProperties: false
      },
      output: {
        type: "object",
        properties: { type: { type: "string" }, example: { type: "object" } },
        required: ["type"]
      }
    },
    required: ["input"]
  },
  ...(options["routeTemplate"] === undefined ? {} : { routeTemplate: options["routeTemplate"] })
})

export const bodyDeclaration = (method = "POST"): Json => ({
  info: {
    input: { type: "http", method, bodyType: "json", body: { company: "Acme" } },
    output: { type: "json", example: { pages: 3 } }
  },
  schema: {
    $schema: dialect,
    type: "object",
    properties: {
      input: {
        type: "object",
        properties: {
          type: { const: "http" },
          method: { enum: [method] },
          bodyType: { enum: ["json", "form-data", "text"] },
          body: { properties: { company: { type: "string" } } }
        },
        required: ["type", "method", "bodyType", "body"],
        additionalProperties: false
      }
    },
    required: ["input"]
  }
})

export const mcpDeclaration = (toolName: string, more: Json = {}): Json => ({
  info: {
    input: {
      type: "mcp",
      toolName,
      description: "Adds two numbers",
      inputSchema: { type: "object", properties: { a: { type: "number" } } },
      example: { a: 1 },
      ...more
    },
    output: { type: "json", example: { sum: 3 } }
  },
  schema: {
    $schema: dialect,
    type: "object",
    properties: {
      input: {
        type: "object",
        properties: {
          type: { const: "mcp" },
          toolName: { type: "string" },
          description: { type: "string" },
          transport: { type: "string" },
          inputSchema: { type: "object" },
          example: { type: "object" }
        },
        required: ["type", "toolName", "inputSchema"],
        additionalProperties: false
      }
    },
    required: ["input"]
  }
})

export interface Declared {
  readonly payer: Keypair
  readonly payTo: string
  readonly url?: unknown
  /** Members of `paymentPayload.resource` in addition to the URL. */
  readonly about?: Json
  readonly extension?: unknown
  /** Default `catalog`. */
  readonly key?: string
  /** Further extensions. */
  readonly extensions?: Json
  readonly amount?: bigint
  readonly network?: string
  readonly asset?: string
}

/** A signed payment that carries a declaration: the body of `/verify` and `/settle`. */
export const declaring = (
  facilitator: Facilitator,
  { about, amount, asset, extension, extensions, key, network, payTo, payer, url }: Declared
) =>
  Effect.map(
    facilitator.payment({
      payer,
      payTo,
      amount: amount ?? 1_000n,
      // A test's ledger closes several times a second, and a loaded machine is slow.
      maxTimeoutSeconds: 300,
      ...(network === undefined ? {} : { network }),
      ...(asset === undefined ? {} : { asset }),
      tamper: {
        payload: (payload) => ({
          ...payload,
          resource: { ...(url === undefined ? {} : { url }), ...about },
          extensions: { ...extensions, [key ?? "catalog"]: extension ?? queryDeclaration() }
        })
      }
    }),
    ({ body }) => body
  )

/** The decoded `EXTENSION-RESPONSES` header. */
export const outcomes = (answer: Answer): Json | undefined => {
  const header = answer.headers.get("extension-responses")
  return header === null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8"))
}

/** Verifies until the catalog has answered in time: a loaded machine may answer `processing` first. */
export const verified = Effect.fnUntraced(function* (facilitator: Facilitator, body: unknown, key = "catalog") {
  for (let attempt = 0; ; attempt++) {
    const answer = yield* facilitator.verify(body)
    if (answer.json?.isValid !== true) throw new Error(`not valid: ${answer.text}`)
    const outcome = outcomes(answer)?.[key]
    if (outcome?.status !== "processing" || attempt >= 40) return { answer, outcome: outcome as Json | undefined }
    yield* Effect.sleep("50 millis")
  }
})

/** The key of a seller, for `FACILITATOR_API_KEYS`. */
export const sellerKey = "seller:0123456789abcdef-seller"

/** The same facilitator, called with a key. */
export const withKey = (facilitator: Facilitator, key = sellerKey): Facilitator => {
  const authorization = { authorization: `Bearer ${key.split(":")[1]}` }
  return Object.assign(Object.create(facilitator) as Facilitator, {
    ask: (path: string, init?: RequestInit) =>
      facilitator.ask(path, { ...init, headers: { ...authorization, ...(init?.headers as Record<string, string>) } }),
    verify: (body: unknown, headers?: Record<string, string>) =>
      facilitator.verify(body, { ...authorization, ...headers }),
    settle: (body: unknown, headers?: Record<string, string>) =>
      facilitator.settle(body, { ...authorization, ...headers })
  })
}

/** The key's holder has proven its recipients, as the challenge stores it. */
export const bindRecipients = (facilitator: Facilitator, payTos: ReadonlyArray<string>, principal = "key:seller") =>
  Effect.forEach(
    payTos,
    (payTo) => facilitator.sql`insert into catalog_recipients (principal, pay_to, shown_at)
      values (${principal}, ${payTo}, now()) on conflict do nothing`,
    { discard: true }
  )

export const browse = (facilitator: Facilitator, query = "") =>
  Effect.map(facilitator.ask(`/discovery/resources${query}`), ({ json }) => json as Json)

export const resolve = (facilitator: Facilitator, url: string, toolName?: string) =>
  facilitator.ask(
    `/discovery/resource?url=${encodeURIComponent(url)}&` +
      (toolName === undefined ? "type=http" : `type=mcp&toolName=${encodeURIComponent(toolName)}`)
  )

export const explain = (facilitator: Facilitator, url: string) =>
  Effect.map(facilitator.ask(`/catalog/v1/observations?url=${encodeURIComponent(url)}`), ({ json }) => json as Json)
