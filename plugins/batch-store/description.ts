// The routes of the channel store for /openapi.json, by the Schemas of `ChannelWire.ts`.
import { Schema } from "effect"
import type { Described, RouteDescription } from "../../kernel/http/OpenApi.ts"
import { ErrorBody, text } from "../../kernel/http/wireSchema.ts"
import { ChannelReport } from "./channelReport.ts"
import { channelQuery } from "./operatorRoutes.ts"
import {
  AuthorizerAnswer,
  Authorizing,
  Channels,
  Charge,
  Decided,
  Policy,
  Read,
  Refund,
  RefundAnswer,
  Release,
  Reserve,
  Sync
} from "./ChannelWire.ts"

const post = (
  path: string,
  id: string,
  summary: string,
  body: Schema.Constraint,
  answer: Schema.Constraint = Decided,
  errors: RouteDescription["answers"] = {}
): RouteDescription => ({
  method: "post",
  path: `/batch/v1/${path}`,
  id,
  summary,
  tag: "batch",
  callers: "keyed",
  body,
  answers: {
    200: { description: "What was decided, and the channel's record.", body: answer },
    400: { description: "`invalid_request`, with a sentence for each issue.", body: ErrorBody },
    401: { description: "A bearer key is required.", body: ErrorBody },
    403: { description: "`forbidden`: no API keys, or no secret to sign with, are configured.", body: ErrorBody },
    ...errors,
    503: { description: "The database is unavailable.", body: ErrorBody }
  }
})

/** What narrows the report of channels, and its pages. */
const what: Readonly<Record<keyof typeof channelQuery, string>> = {
  payer: "Exactly this address.",
  payTo: "Exactly this address.",
  asset: "Exactly this contract.",
  key: "Label of the seller's key.",
  state: "`withdrawing`: a withdrawal was started; `open`: none was.",
  limit: "Without it, all.",
  cursor: "Of the page before."
}
const narrowing = Schema.Struct(
  Object.fromEntries(
    Object.entries(channelQuery).map(([name, form]) => [
      name,
      Schema.optionalKey(text(what[name as keyof typeof channelQuery]).check(Schema.isPattern(form)))
    ])
  )
)

export const described: Described = {
  tags: { batch: "Payment channels of sellers that keep no state of their own." },
  routes: [
    post(
      "channels/reserve",
      "reserveChannel",
      "Reserves a channel for one request, so that no other voucher is accepted on the same base.",
      Reserve
    ),
    post("channels/charge", "chargeChannel", "Charges the request that reserved the channel, once.", Charge),
    post("channels/release", "releaseChannel", "Gives the request's reservation back.", Release),
    post("channels/sync", "syncChannel", "Stores what the ledger shows of a channel.", Sync, Decided, {
      404: { description: "`not_found`.", body: ErrorBody }
    }),
    post("channels/read", "readChannels", "One channel of the caller, or a page of all of them.", Read, Channels),
    post(
      "channels/refund",
      "signRefund",
      "Signs the refund that a buyer asked for and the request has reserved.",
      Refund,
      RefundAnswer,
      {
        404: { description: "`not_found`.", body: ErrorBody },
        409: {
          description: "`conflict`: nothing is left, or the request has not reserved the channel.",
          body: ErrorBody
        }
      }
    ),
    post("authorizer", "storeAuthorizer", "The store's key for the caller's channels.", Authorizing, AuthorizerAnswer),
    {
      method: "get",
      path: "/batch/v1/operator/channels",
      id: "reportChannels",
      summary: "The channels that this facilitator knows: held, charged, claimed, and when a withdrawal ends.",
      tag: "batch",
      callers: "operators",
      query: narrowing,
      answers: {
        200: { description: "Started withdrawals first; 1,000 at most.", body: ChannelReport },
        400: { description: "A parameter has not its form.", body: ErrorBody },
        401: { description: "An operator's key or session is required.", body: ErrorBody },
        503: { description: "The database is unavailable.", body: ErrorBody }
      }
    },
    post("policy", "setClaimPolicy", "Sets when the caller's channels of a token are claimed.", Policy)
  ]
}
