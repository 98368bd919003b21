// The spine's routes for /openapi.json: bodies and answers of /verify, /settle, /supported, /settlements, health and
// metrics, as `Wire.ts` and its neighbours read and write them (specification sections 4 to 8). A test holds real
// answers to these schemas.
import type { Described, JsonSchema } from "../http/OpenApi.ts"

const text = (description: string): JsonSchema => ({ type: "string", description })
const object = (properties: Readonly<Record<string, JsonSchema>>, required: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties,
  required
})
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
const amount: JsonSchema = {
  type: "string",
  pattern: "^(0|[1-9][0-9]{0,38})$",
  description: "Atomic units, as a decimal string."
}
const content = (schema: JsonSchema) => ({ "application/json": { schema } })
const secured = [{}, { bearer: [] }]

const operation = (
  name: "verify" | "settle",
  summary: string,
  answer: string,
  extra: Readonly<Record<string, unknown>>
) => ({
  post: {
    operationId: name,
    summary,
    security: secured,
    requestBody: { required: true, content: content(ref("PaymentRequest")) },
    responses: Object.fromEntries(
      [
        ["200", "Judged: valid or settled, or refused with a reason."],
        ["400", "The body is no payment request."],
        ["401", "A listed bearer key is wanted."],
        ["409", "The payment identifier or authorization belongs to a payment with other terms."],
        ["413", "The body is too large."],
        ["429", "Too many requests; see Retry-After."],
        ["500", "An internal fault, with a trace id."],
        ["503", "Nothing was decided; try the same payment again after Retry-After."]
      ].map(([status, description]) => [
        status,
        {
          description,
          content: content(ref(answer)),
          headers:
            status === "200"
              ? {
                  "EXTENSION-RESPONSES": {
                    schema: { type: "string" },
                    description: "Base64 of a JSON object keyed by extension."
                  }
                }
              : {}
        }
      ])
    ),
    ...extra
  }
})

const get = (
  operationId: string,
  summary: string,
  schema: JsonSchema,
  options: Readonly<Record<string, unknown>> = {}
) => ({
  get: { operationId, summary, responses: { "200": { description: summary, content: content(schema) } }, ...options }
})

const faults = (descriptions: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => [
      status,
      { description, content: content(ref("Fault")) }
    ])
  )

const status = object({ status: { const: "ok" } }, ["status"])

export const spine: Described = {
  paths: {
    "/verify": operation(
      "verify",
      "Check a signed payment against its terms, with an enforcing simulation.",
      "VerifyAnswer",
      {}
    ),
    "/settle": operation(
      "settle",
      "Verify a payment again and put it on the ledger; waits for the ledger's word.",
      "SettleAnswer",
      {}
    ),
    "/supported": get(
      "supported",
      "What this facilitator serves, and with which accounts it signs.",
      ref("Supported"),
      { security: secured }
    ),
    "/settlements": get(
      "settlements",
      "The durable state of settlements of the calling principal.",
      object({ items: { type: "array", items: ref("Settlement") } }, ["items"]),
      {
        security: secured,
        responses: {
          "200": {
            description: "Newest first.",
            content: content(object({ items: { type: "array", items: ref("Settlement") } }, ["items"]))
          },
          ...faults({
            "400": "Not one of identifier and hash.",
            "401": "A listed bearer key is wanted.",
            "404": "The principal has no such settlement.",
            "503": "The database cannot be asked; nothing is known."
          })
        },
        parameters: [
          { name: "identifier", in: "query", schema: { type: "string", pattern: "^[A-Za-z0-9_-]{16,128}$" } },
          { name: "hash", in: "query", schema: { type: "string", pattern: "^[0-9a-f]{64}$" } }
        ]
      }
    ),
    "/settlements/events": {
      get: {
        operationId: "settlementEvents",
        summary: "The calling principal's settlements as server-sent events, from a cursor on.",
        security: secured,
        parameters: [
          {
            name: "Last-Event-ID",
            in: "header",
            description: "The id of the last event that was read; without one, the stream begins 15 minutes back.",
            schema: { type: "string", pattern: "^[0-9]{1,19}$" }
          },
          {
            name: "after",
            in: "query",
            description: "The same, for clients that cannot set the header.",
            schema: { type: "string", pattern: "^[0-9]{1,19}$" }
          }
        ],
        responses: {
          "200": {
            description:
              "Events named settlement.recorded, settlement.settled, settlement.failed, settlement.expired and settlement.unresolved; their data is a Settlement as JSON, as it is when it is sent.",
            content: { "text/event-stream": { schema: { type: "string" } } }
          },
          ...faults({
            "400": "The cursor is not the id of an event.",
            "401": "A bearer key is required.",
            "429": "As many streams are open as this facilitator allows.",
            "503": "The database cannot be asked; nothing is known."
          })
        }
      }
    },
    "/health": get("health", "Alias of /health/live.", status),
    "/health/live": get("live", "The process lives.", status),
    "/health/ready": {
      get: {
        operationId: "ready",
        summary: "Whether the database answers; the state of search, plugins and drivers.",
        responses: {
          "200": { description: "Ready.", content: content(ref("Readiness")) },
          "503": { description: "The database does not answer.", content: content(ref("Readiness")) }
        }
      }
    },
    "/metrics": {
      get: {
        operationId: "metrics",
        summary:
          "Metrics as Prometheus text: for operators, or for this machine alone when no operator key is configured.",
        security: secured,
        responses: {
          "200": {
            description: "Every metric of the process.",
            content: { "text/plain": { schema: { type: "string" } } }
          },
          "401": { description: "An operator's key is wanted.", content: content(ref("Fault")) }
        }
      }
    },
    "/openapi.json": get("openapi", "This document.", { type: "object" })
  },
  schemas: {
    PaymentOption: object(
      {
        scheme: { enum: ["exact", "upto"] },
        network: text("`ledger:testnet` or `stellar:testnet`."),
        asset: text("Contract address of the token."),
        amount,
        payTo: text("Address of the recipient."),
        maxTimeoutSeconds: { type: "integer", minimum: 1 },
        extra: { type: "object" }
      },
      ["scheme", "network", "asset", "amount", "payTo", "maxTimeoutSeconds"]
    ),
    PaymentRequest: object(
      {
        x402Version: { const: 2 },
        paymentPayload: object(
          {
            x402Version: { const: 2 },
            accepted: ref("PaymentOption"),
            payload: object({ transaction: text("Base64 XDR of the signed envelope.") }, ["transaction"]),
            resource: { type: "object" },
            extensions: { type: "object" }
          },
          ["x402Version", "accepted", "payload"]
        ),
        paymentRequirements: ref("PaymentOption")
      },
      ["x402Version", "paymentPayload", "paymentRequirements"]
    ),
    Fault: object(
      {
        error: text("Word of the fault."),
        message: text("The fault in a sentence."),
        details: { type: "array", items: { type: "string" } }
      },
      ["error"]
    ),
    // Beside these, the report of each driver by its name.
    Readiness: {
      additionalProperties: ref("Report"),
      ...object(
        {
          status: { enum: ["ready", "not_ready"] },
          search: object(
            {
              lexical: ref("State"),
              semantic: ref("State"),
              vectorSupport: { type: "boolean" },
              generation: { type: ["string", "null"] },
              detail: { type: "string", maxLength: 200 }
            },
            ["lexical", "semantic", "vectorSupport"]
          ),
          plugins: {
            type: "object",
            additionalProperties: object({ state: text("Whether the plugin runs."), detail: text("Why not.") }, [
              "state"
            ])
          }
        },
        ["status", "search", "plugins"]
      )
    },
    Report: object({ state: ref("State"), detail: { type: "string", maxLength: 200 } }, ["state"]),
    State: { enum: ["ready", "degraded", "disabled"] },
    VerifyAnswer: object(
      {
        isValid: { type: "boolean" },
        payer: text("Address of the payer, whenever it is known."),
        invalidReason: text("Word of the refusal; present when isValid is false."),
        invalidMessage: text("The refusal in a sentence.")
      },
      ["isValid"]
    ),
    SettleAnswer: object(
      {
        success: { type: "boolean" },
        payer: text("Address of the payer, whenever it is known."),
        transaction: text("Hash of the transaction; empty when there is none."),
        network: text("As the request spelled it."),
        amount: text("What moved, atomic units; present when success is true."),
        errorReason: text("Word of the refusal; present when success is false."),
        errorMessage: text("The refusal in a sentence."),
        retryAfterMs: {
          type: "integer",
          description: "With 503: an estimate of when the same payment may succeed, in milliseconds."
        }
      },
      ["success", "transaction", "network"]
    ),
    Supported: object(
      {
        kinds: {
          type: "array",
          items: object(
            {
              x402Version: { const: 2 },
              scheme: text("Payment scheme."),
              network: text("One of the enabled spellings."),
              signer: text("Address of the sponsor."),
              extra: { type: "object" }
            },
            ["x402Version", "scheme", "network", "signer", "extra"]
          )
        },
        extensions: { type: "array", items: { type: "string" } },
        signers: { type: "object", additionalProperties: { type: "array", items: { type: "string" } } }
      },
      ["kinds", "extensions", "signers"]
    ),
    Settlement: object(
      {
        id: text("Identifier of the record."),
        status: { enum: ["pending", "unknown", "success", "failed"] },
        network: text("In the first configured spelling."),
        scheme: text("Payment scheme."),
        asset: text("Contract address of the token."),
        amount,
        payer: text("Address."),
        payTo: text("Address."),
        transaction: text("Hash of the inner transaction."),
        recordedAt: { type: "string", format: "date-time" },
        resolvedAt: { type: "string", format: "date-time" },
        paymentIdentifier: text("The payment identifier, when one was sent."),
        ledger: { type: "integer", description: "The ledger that included the transaction." },
        feeStroops: amount,
        errorReason: text("Why it failed.")
      },
      ["id", "status", "network", "scheme", "asset", "amount", "payer", "payTo", "transaction", "recordedAt"]
    )
  }
}
