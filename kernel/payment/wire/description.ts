// The declared payment routes, by the Schemas that type their answers: /supported and /settlements, and for the
// document /verify and /settle, with bodies that depend on the registered schemes. A test compares real answers with
// the document.
import { Schema } from "effect"
import type { Described, RouteDescription } from "../../http/OpenApi.ts"
import { answers, at, type Documented, errors, type RouteGroup } from "../../http/Route.ts"
import { text } from "../../http/wireSchema.ts"
import { paymentRequest, SettleBody, SettlementsBody, SupportedBody, VerifyBody } from "./BodyWire.ts"

export const paymentRoutes: RouteGroup = { tag: "payment", about: "x402 payments: verified, settled, followed." }

const keyRequired = "A bearer key is required."

const idempotencyKey = text(
  "The seller's name for this sale: 16 to 128 visible ASCII characters, also as a quoted string. The success that " +
    "a call received is repeated to calls with its key; without the key a delivered payment is already settled."
)

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
  tag: paymentRoutes.tag,
  callers: "keyed",
  headers: Schema.Struct({ "Idempotency-Key": Schema.optionalKey(idempotencyKey) }),
  body,
  answers: {
    200: {
      description: "Decided: valid or settled, or refused with a reason.",
      body: answer,
      headers: Schema.Struct({
        "EXTENSION-RESPONSES": Schema.optionalKey(text("Base64 of a JSON object keyed by extension."))
      })
    },
    ...errors(
      {
        400: "The body is not a payment request, or the Idempotency-Key is invalid.",
        401: keyRequired,
        409: "The payment identifier or authorization belongs to a payment with other terms.",
        413: "The body is too large.",
        429: "Too many requests; see Retry-After.",
        500: "An internal error, with a trace id.",
        503: "Nothing was decided; try the same payment again after Retry-After."
      },
      answer
    )
  }
})

const cursor = (description: string) =>
  Schema.optionalKey(text(description).check(Schema.isPattern(/^[0-9]{1,19}(-[0-9a-z]{1,12})?$/u)))

/** How a client resumes a stream of events. */
export const resumed = {
  headers: Schema.Struct({
    "Last-Event-ID": cursor("The id of the last event that was read; without one, the stream begins 15 minutes back.")
  }),
  query: Schema.Struct({ after: cursor("The same, for clients that cannot set the header.") })
}

export const supportedRoute: Documented = {
  ...at("GET", "/supported", "supported"),
  summary: "Supported schemes and networks, extensions, and signing accounts.",
  callers: "keyed",
  cost: { cpuMillis: 5, bytesOut: 32_768 },
  answers: answers("Kinds, extensions and signers.", SupportedBody, { 401: keyRequired })
}

export const reasonsRoute: Documented = {
  ...at("GET", "/reasons", "reasons"),
  summary: "Every reason for refused payments and unlisted resources: its HTTP status, a sentence and a remedy.",
  callers: "public",
  cost: { cpuMillis: 10, bytesOut: 98_304 },
  answers: {
    200: {
      description: "The reasons of this facilitator.",
      body: Schema.Struct({
        items: Schema.Array(
          Schema.Struct({
            reason: text("The code, as `errorReason` and `invalidReason` carry it."),
            status: Schema.Int.annotate({ description: "The HTTP status of the answer." }),
            label: text("A few words."),
            sentence: text("What happened."),
            remedy: text("What to do.")
          })
        )
      })
    }
  }
}

export const settlementsRoute: Documented = {
  ...at("GET", "/settlements", "settlements"),
  summary: "The durable state of settlements of the calling principal.",
  callers: "keyed",
  cost: { cpuMillis: 5, bytesOut: 65_536, statements: 2 },
  query: Schema.Struct({
    identifier: Schema.optionalKey(text("Payment identifier.").check(Schema.isPattern(/^[A-Za-z0-9_-]{16,128}$/u))),
    hash: Schema.optionalKey(text("Hash of a transaction.").check(Schema.isPattern(/^[0-9a-f]{64}$/u)))
  }),
  answers: answers("Newest first.", SettlementsBody, {
    400: "Exactly one of identifier and hash is required.",
    401: keyRequired,
    404: "The principal has no such settlement.",
    503: "The database does not answer; the state is unknown."
  })
}

export const eventsRoute: Documented = {
  ...at("GET", "/settlements/events", "settlementEvents"),
  summary: "The calling principal's settlements as server-sent events, starting at a cursor.",
  callers: "keyed",
  cost: { cpuMillis: 10, bytesOut: 65_536, statements: 4 },
  label: "/settlements/events",
  ...resumed,
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
      429: "The maximum number of streams is open.",
      503: "The database does not answer; the state is unknown."
    })
  }
}

export const verifyRoute = {
  method: "POST",
  path: "/verify",
  callers: "keyed",
  isPayment: true,
  cost: { cpuMillis: 40, bytesOut: 65_536, statements: 24, rowsWritten: 48, rpcCalls: 2 }
} as const
/** Settling writes the settlement, its attempt, its fact and its holds, and follows it to its outcome. */
export const settleRoute = {
  method: "POST",
  path: "/settle",
  callers: "keyed",
  isPayment: true,
  cost: { cpuMillis: 100, bytesOut: 65_536, statements: 40, rowsWritten: 160, rpcCalls: 6 }
} as const

/** Input and output of /verify and /settle, for the registered schemes. */
export const describePayments = (schemes: ReadonlyArray<string>): Described => {
  const request = paymentRequest(schemes)
  return {
    tags: { [paymentRoutes.tag]: paymentRoutes.about },
    routes: [
      operation(
        "verify",
        "Check a signed payment against its terms, with an enforcing simulation.",
        request,
        VerifyBody
      ),
      operation(
        "settle",
        "Verify a payment again and submit it to the ledger; waits for confirmation.",
        request,
        SettleBody
      )
    ]
  }
}
