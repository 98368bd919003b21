// The spine's routes for /openapi.json: /verify, /settle, /supported, /settlements, health and metrics, by the Schemas
// that type their answers. A test holds real answers to the document.
import { Schema } from "effect"
import type { Described, RouteDescription } from "../../http/OpenApi.ts"
import { anything, ErrorBody, text } from "../../http/wireSchema.ts"
import { paymentRequest, SettleBody, SettlementsBody, SupportedBody, VerifyBody } from "./BodyWire.ts"

const tags = { payment: "x402 payments: verified, settled, followed.", process: "The process itself." }

const errors = (descriptions: Readonly<Record<number, string>>) =>
  Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => [status, { description, body: ErrorBody }])
  )

const keyRequired = "A bearer key is required."

const operation = (
  id: "verify" | "settle",
  summary: string,
  body: Schema.Constraint,
  answer: Schema.Constraint
): RouteDescription => ({
  method: "post",
  path: `/${id}`,
  id,
  summary,
  tag: "payment",
  callers: "keyed",
  body,
  answers: {
    200: {
      description: "Decided: valid or settled, or refused with a reason.",
      body: answer,
      headers: Schema.Struct({
        "EXTENSION-RESPONSES": Schema.optionalKey(text("Base64 of a JSON object keyed by extension."))
      })
    },
    ...Object.fromEntries(
      Object.entries({
        400: "The body is not a payment request.",
        401: keyRequired,
        409: "The payment identifier or authorization belongs to a payment with other terms.",
        413: "The body is too large.",
        429: "Too many requests; see Retry-After.",
        500: "An internal error, with a trace id.",
        503: "Nothing was decided; try the same payment again after Retry-After."
      }).map(([status, description]) => [status, { description, body: answer }])
    )
  }
})

const cursor = (description: string) =>
  Schema.optionalKey(
    Schema.String.annotate({ description }).check(Schema.isPattern(/^[0-9]{1,19}(-[0-9a-z]{1,12})?$/u))
  )

const followed: ReadonlyArray<RouteDescription> = [
  {
    method: "get",
    path: "/supported",
    id: "supported",
    summary: "Supported schemes and networks, extensions, and signing accounts.",
    tag: "payment",
    callers: "keyed",
    answers: {
      200: { description: "Kinds, extensions and signers.", body: SupportedBody },
      ...errors({ 401: keyRequired })
    }
  },
  {
    method: "get",
    path: "/settlements",
    id: "settlements",
    summary: "The durable state of settlements of the calling principal.",
    tag: "payment",
    callers: "keyed",
    query: Schema.Struct({
      identifier: Schema.optionalKey(text("Payment identifier.").check(Schema.isPattern(/^[A-Za-z0-9_-]{16,128}$/u))),
      hash: Schema.optionalKey(text("Hash of a transaction.").check(Schema.isPattern(/^[0-9a-f]{64}$/u)))
    }),
    answers: {
      200: { description: "Newest first.", body: SettlementsBody },
      ...errors({
        400: "Not one of identifier and hash.",
        401: keyRequired,
        404: "The principal has no such settlement.",
        503: "The database cannot be asked; nothing is known."
      })
    }
  },
  {
    method: "get",
    path: "/settlements/events",
    id: "settlementEvents",
    summary: "The calling principal's settlements as server-sent events, starting at a cursor.",
    tag: "payment",
    callers: "keyed",
    headers: Schema.Struct({
      "Last-Event-ID": cursor("The id of the last event that was read; without one, the stream begins 15 minutes back.")
    }),
    query: Schema.Struct({ after: cursor("The same, for clients that cannot set the header.") }),
    answers: {
      200: {
        description:
          "Events named settlement.recorded, .settled, .failed, .expired and .unresolved; data: a Settlement. " +
          "An event journal.rewound, with {from, to}, says that the journal lost its last events since the cursor " +
          "`from` was given: the stream resumes at `to`, the last one in common.",
        body: Schema.String,
        mediaType: "text/event-stream"
      },
      ...errors({
        400: "The cursor is not the id of an event.",
        401: keyRequired,
        403: "No key is configured, and the caller is not on this machine.",
        429: "As many streams are open as this facilitator allows.",
        503: "The database cannot be asked; nothing is known."
      })
    }
  }
]

const State = Schema.Literals(["ready", "degraded", "disabled"])
const detail = Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200)))
const Readiness = Schema.StructWithRest(
  Schema.Struct({
    status: Schema.Literals(["ready", "not_ready"]),
    search: Schema.Struct({
      lexical: State,
      semantic: State,
      vectorSupport: Schema.Boolean,
      generation: Schema.optionalKey(Schema.NullOr(Schema.String)),
      detail
    }),
    plugins: Schema.Record(
      Schema.String,
      Schema.Struct({ state: text("Whether the plugin runs."), detail: Schema.optionalKey(text("Why not.")) })
    )
  }),
  // The report of each driver and plugin, by its name.
  [Schema.Record(Schema.String, Schema.Unknown)]
).annotate({ identifier: "Readiness" })

const ofProcess = (
  path: string,
  id: string,
  summary: string,
  answers: RouteDescription["answers"],
  callers: RouteDescription["callers"] = "public"
): RouteDescription => ({ method: "get", path, id, summary, tag: "process", callers, answers })

const alive = { 200: { description: "The process is running.", body: Schema.Struct({ status: Schema.Literal("ok") }) } }

const processes: ReadonlyArray<RouteDescription> = [
  ofProcess("/health", "health", "Alias of /health/live.", alive),
  ofProcess("/health/live", "live", "The process lives.", alive),
  ofProcess("/health/ready", "ready", "Whether the database answers; the state of search, plugins and drivers.", {
    200: { description: "Ready.", body: Readiness },
    503: { description: "The database does not answer.", body: Readiness }
  }),
  ofProcess(
    "/metrics",
    "metrics",
    "Metrics as Prometheus text: for operators, or for this machine alone when no operator key is configured.",
    {
      200: { description: "Every metric of the process.", body: Schema.String, mediaType: "text/plain" },
      ...errors({ 401: "An operator's key is required." })
    },
    "keyed"
  ),
  ofProcess("/openapi.json", "openapi", "This document.", {
    200: { description: "OpenAPI 3.1.", body: anything("The document.") }
  })
]

/** The spine's routes, for the schemes that are registered. */
export const coreRoutes = (schemes: ReadonlyArray<string>): Described => {
  const request = paymentRequest(schemes)
  return {
    tags,
    routes: [
      operation(
        "verify",
        "Check a signed payment against its terms, with an enforcing simulation.",
        request,
        VerifyBody
      ),
      operation(
        "settle",
        "Verify a payment again and put it on the ledger; waits for the ledger's word.",
        request,
        SettleBody
      ),
      ...followed,
      ...processes
    ]
  }
}
