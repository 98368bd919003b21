// The routes of the channel store for /openapi.json, by the Schemas of `ChannelWire.ts`.
import type { Schema } from "effect"
import type { Described, RouteDescription } from "../../kernel/http/OpenApi.ts"
import { ErrorBody } from "../../kernel/http/wireSchema.ts"
import { ChannelReport } from "./channelReport.ts"
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
      answers: {
        200: { description: "Started withdrawals first; 1,000 at most.", body: ChannelReport },
        401: { description: "An operator's key or session is required.", body: ErrorBody },
        503: { description: "The database is unavailable.", body: ErrorBody }
      }
    },
    post("policy", "setClaimPolicy", "Sets when the caller's channels of a token are claimed.", Policy)
  ]
}
