// Declares the routes of the channel store, with the Schemas of `ChannelWire.ts`.
import { Schema } from "effect"
import { parameter } from "../../kernel/http/readQuery.ts"
import { answers, at, type Documented, type RouteGroup } from "../../kernel/http/Route.ts"
import { ChannelReport } from "./channelReport.ts"
import {
  AuthorizerAnswer,
  Authorizing,
  Channels,
  Charge,
  Decided,
  Export,
  Exported,
  Policy,
  Read,
  Refund,
  RefundAnswer,
  Release,
  Reserve,
  Sync
} from "./ChannelWire.ts"

export const group: RouteGroup = {
  tag: "batch",
  about: "Payment channels of sellers without their own state."
}

const post = <Body extends Schema.Constraint>(
  path: string,
  id: string,
  summary: string,
  body: Body,
  answer: Schema.Constraint = Decided,
  more: Readonly<Record<number, string>> = {}
) =>
  ({
    method: "POST",
    path: `/batch/v1/${path}`,
    id,
    summary,
    callers: "keyed",
    cost: { cpuMillis: 10, bytesOut: 524_288, statements: 3, rowsWritten: 3 },
    body,
    answers: answers("The decision and the channel's record.", answer, {
      400: "`invalid_request`, with a sentence for each issue.",
      401: "A bearer key is required.",
      403: "`forbidden`: no API keys, or no secret to sign with, are configured, or the key has reached a limit.",
      ...more,
      503: "The database is unavailable."
    })
  }) satisfies Documented

const reserved = post(
  "channels/reserve",
  "reserveChannel",
  "Reserves a channel for one request, so that no other voucher is accepted on the same base.",
  Reserve,
  Decided,
  { 409: "`conflict`: the channel's receiverAuthorizer is not the store's key for the caller." }
)
/** One statement stores the channel. If there are too many, two explain that and make room, and it runs again. */
export const reserve = { ...reserved, cost: { ...reserved.cost, statements: 4 } }
export const charge = post(
  "channels/charge",
  "chargeChannel",
  "Charges the request that reserved the channel, once.",
  Charge
)
export const release = post("channels/release", "releaseChannel", "Releases the request's reservation.", Release)
export const sync = post("channels/sync", "syncChannel", "Stores a channel's state on the ledger.", Sync, Decided, {
  404: "`not_found`."
})
export const read = post(
  "channels/read",
  "readChannels",
  "One channel of the caller, or a page of all of them.",
  Read,
  Channels
)
export const exported = post(
  "channels/export",
  "exportClaims",
  "Signed claims of the caller's unclaimed charges, for a watchtower, a page at a time.",
  Export,
  Exported
)
export const refund = post(
  "channels/refund",
  "signRefund",
  "Signs the refund that a buyer requested and the request reserved.",
  Refund,
  RefundAnswer,
  { 404: "`not_found`.", 409: "`conflict`: nothing is left, or the request has not reserved the channel." }
)
export const authorizer = post(
  "authorizer",
  "storeAuthorizer",
  "The store's key for the caller's channels in it.",
  Authorizing,
  AuthorizerAnswer
)
export const policy = post(
  "policy",
  "setClaimPolicy",
  "Sets when the caller's channels of a token are claimed.",
  Policy
)
const address = /^[GCM][A-Z2-7]{55,68}$/u
const narrowed = (pattern: RegExp, description: string) =>
  Schema.optionalKey(parameter({ pattern, expected: description }, description))

export const report = {
  ...at("GET", "/batch/v1/operator/channels", "reportChannels"),
  summary: "The channels of this facilitator: held, charged and claimed amounts, and when a withdrawal ends.",
  callers: "operators",
  cost: { cpuMillis: 50, bytesOut: 1_048_576, statements: 3 },
  query: Schema.Struct({
    payer: narrowed(address, "Exactly this address."),
    payTo: narrowed(address, "Exactly this address."),
    asset: narrowed(/^C[A-Z2-7]{55}$/u, "Exactly this contract."),
    key: narrowed(/^[A-Za-z0-9.:_/-]{1,128}$/u, "Label of the seller's key."),
    state: narrowed(
      /^(?:open|withdrawing)$/u,
      "`withdrawing`: a withdrawal was started; `open`: no withdrawal was started."
    ),
    limit: narrowed(/^[1-9][0-9]{0,3}$/u, "Default: all."),
    cursor: narrowed(/^(?:[0-9T:.+Z-]{1,40})?_[0-9]{1,39}_[0-9a-f]{64}$/u, "Cursor of the previous page.")
  }),
  answers: answers("Started withdrawals first; 1,000 at most.", ChannelReport, {
    400: "A parameter is malformed.",
    401: "An operator's key or session is required.",
    503: "The database is unavailable."
  })
} satisfies Documented
