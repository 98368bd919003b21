// The spine's routes for /openapi.json: bodies and answers of /verify, /settle, /supported, /settlements and health, as
// `Wire.ts` and its neighbours read and write them (specification sections 4 to 8).
import type { Described, JsonSchema } from "../http/OpenApi.ts"

const text = (description: string): JsonSchema => ({ type: "string", description })
const object = (properties: Readonly<Record<string, JsonSchema>>, required: ReadonlyArray<string>): JsonSchema => ({ type: "object", properties, required })
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
const amount: JsonSchema = { type: "string", pattern: "^(0|[1-9][0-9]{0,38})$", description: "Atomic units, as a decimal string." }
const content = (schema: JsonSchema) => ({ "application/json": { schema } })
const secured = [{}, { bearer: [] }]

const operation = (name: "verify" | "settle", summary: string, answer: string, extra: Readonly<Record<string, unknown>>) => ({
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
      ].map(([status, description]) => [status, {
        description,
        content: content(ref(answer)),
        headers: status === "200" ? { "EXTENSION-RESPONSES": { schema: { type: "string" }, description: "Base64 of a JSON object keyed by extension." } } : {}
      }])
    ),
    ...extra
  }
})

const get = (operationId: string, summary: string, schema: JsonSchema, options: Readonly<Record<string, unknown>> = {}) => ({
  get: { operationId, summary, responses: { "200": { description: summary, content: content(schema) } }, ...options }
})

const status = object({ status: { const: "ok" } }, ["status"])

export const spine: Described = {
  paths: {
    "/verify": operation("verify", "Check a signed payment against its terms, with an enforcing simulation.", "VerifyAnswer", {}),
    "/settle": operation("settle", "Verify a payment again and put it on the ledger; waits for the ledger's word.", "SettleAnswer", {}),
    "/supported": get("supported", "What this facilitator serves, and with which accounts it signs.", ref("Supported"), { security: secured }),
    "/settlements": get("settlements", "The durable state of settlements of the calling principal.", object({ items: { type: "array", items: ref("Settlement") } }, ["items"]), {
      security: secured,
      parameters: [
        { name: "identifier", in: "query", schema: { type: "string", pattern: "^[A-Za-z0-9_-]{16,128}$" } },
        { name: "hash", in: "query", schema: { type: "string", pattern: "^[0-9a-f]{64}$" } }
      ]
    }),
    "/health": get("health", "Alias of /health/live.", status),
    "/health/live": get("live", "The process lives.", status),
    "/health/ready": get("ready", "The database answers; the state of search and plugins.", { type: "object" })
  },
  schemas: {
    PaymentOption: object({
      scheme: { enum: ["exact", "upto"] },
      network: text("`ledger:testnet` or `stellar:testnet`."),
      asset: text("Contract address of the token."),
      amount,
      payTo: text("Address of the recipient."),
      maxTimeoutSeconds: { type: "integer", minimum: 1 },
      extra: { type: "object" }
    }, ["scheme", "network", "asset", "amount", "payTo", "maxTimeoutSeconds"]),
    PaymentRequest: object({
      x402Version: { const: 2 },
      paymentPayload: object({
        x402Version: { const: 2 },
        accepted: ref("PaymentOption"),
        payload: object({ transaction: text("Base64 XDR of the signed envelope.") }, ["transaction"]),
        resource: { type: "object" },
        extensions: { type: "object" }
      }, ["x402Version", "accepted", "payload"]),
      paymentRequirements: ref("PaymentOption")
    }, ["x402Version", "paymentPayload", "paymentRequirements"]),
    VerifyAnswer: object({
      isValid: { type: "boolean" },
      payer: text("Address of the payer, whenever it is known."),
      invalidReason: text("Word of the refusal; present when isValid is false."),
      invalidMessage: text("The refusal in a sentence.")
    }, ["isValid"]),
    SettleAnswer: object({
      success: { type: "boolean" },
      payer: text("Address of the payer, whenever it is known."),
      transaction: text("Hash of the transaction; empty when there is none."),
      network: text("As the request spelled it."),
      errorReason: text("Word of the refusal; present when success is false."),
      errorMessage: text("The refusal in a sentence.")
    }, ["success", "transaction", "network"]),
    Supported: object({
      kinds: {
        type: "array",
        items: object({
          x402Version: { const: 2 },
          scheme: text("Payment scheme."),
          network: text("One of the enabled spellings."),
          signer: text("Address of the sponsor."),
          extra: { type: "object" }
        }, ["x402Version", "scheme", "network", "signer", "extra"])
      },
      extensions: { type: "array", items: { type: "string" } },
      signers: { type: "object", additionalProperties: { type: "array", items: { type: "string" } } }
    }, ["kinds", "extensions", "signers"]),
    Settlement: object({
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
      feeStroops: amount,
      errorReason: text("Why it failed.")
    }, ["id", "status", "network", "scheme", "asset", "amount", "payer", "payTo", "transaction", "recordedAt"])
  }
}
