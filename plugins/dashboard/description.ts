// The routes of the dashboard for /openapi.json; pages and their files are no API, and are left out.
import type { Described, RouteDescription } from "../../kernel/http/OpenApi.ts"
import { Schema } from "effect"
import { ErrorBody, text } from "../../kernel/http/wireSchema.ts"
import { About } from "./AboutWire.ts"
import { AccountAnswered, AccountAsked, AccountChallenged, AccountShown } from "./AccountWire.ts"
import {
  FacilitatorStatus,
  SettlementHistory,
  OperatorAction,
  OperatorActionsPage,
  Rotations,
  SessionAsked,
  SessionClosed,
  SessionOpened,
  SessionShown
} from "./OperatorWire.ts"
import { statusRoute } from "./status/statusPage.ts"

const errors = (words: Readonly<Record<number, string>>) =>
  Object.fromEntries(Object.entries(words).map(([status, description]) => [status, { description, body: ErrorBody }]))
const needed = "An operator's key or session is required; without operators' keys, a request from this machine."
const foreign = "The request is not from a page of this origin."

/** Proof of account ownership by a browser; the header `x-tollkeeper-page: 1` proves that a page of ours asks. */
const accountRoutes: ReadonlyArray<RouteDescription> = [
  {
    method: "post",
    path: "/dashboard/account/challenge",
    id: "accountChallenge",
    summary: "Creates a challenge for an account to sign.",
    tag: "dashboard",
    callers: "public",
    body: AccountAsked,
    answers: {
      200: { description: "The challenge.", body: AccountChallenged },
      ...errors({ 400: "Invalid account.", 403: foreign, 429: "Rate limited." })
    }
  },
  {
    method: "post",
    path: "/dashboard/account",
    id: "accountSignIn",
    summary: "Signs in as an account by its signed challenge; each challenge opens one session.",
    tag: "dashboard",
    callers: "public",
    body: AccountAnswered,
    answers: {
      200: { description: "The session; the response sets its cookie.", body: AccountShown },
      ...errors({
        400: "Invalid answer.",
        403: "The challenge is not ours, not for this host, network or account, has ended, or was answered already.",
        429: "Rate limited.",
        503: "The database is unavailable."
      })
    }
  },
  {
    method: "get",
    path: "/dashboard/account",
    id: "account",
    summary: "The account that this browser is signed in as.",
    tag: "dashboard",
    callers: "public",
    answers: {
      200: { description: "The session.", body: AccountShown },
      ...errors({ 503: "The database is unavailable." })
    }
  },
  {
    method: "delete",
    path: "/dashboard/account",
    id: "accountSignOut",
    summary: "Signs out.",
    tag: "dashboard",
    callers: "public",
    query: Schema.Struct({
      everywhere: Schema.optionalKey(Schema.Literal("1").annotate({ description: "In every browser." }))
    }),
    answers: {
      200: { description: "No session.", body: AccountShown },
      ...errors({ 403: foreign, 503: "The database is unavailable." })
    }
  }
]

/** Sign-in by a key: the response sets the session cookie. */
const sessionRoutes: ReadonlyArray<RouteDescription> = [
  {
    method: "get",
    path: "/dashboard/session",
    id: "session",
    summary: "This browser's session.",
    tag: "dashboard",
    callers: "public",
    answers: { 200: { description: "The session.", body: SessionShown } }
  },
  {
    method: "post",
    path: "/dashboard/session",
    id: "signIn",
    summary: "Signs in with a key.",
    tag: "dashboard",
    callers: "public",
    body: SessionAsked,
    answers: {
      200: { description: "The session; the response sets its cookie.", body: SessionOpened },
      ...errors({ 400: "Invalid key.", 401: "The key is not listed here.", 403: foreign, 429: "Rate limited." })
    }
  },
  {
    method: "delete",
    path: "/dashboard/session",
    id: "signOut",
    summary: "Signs out: no copy of the session's cookie counts any more, on any replica.",
    tag: "dashboard",
    callers: "public",
    answers: {
      200: { description: "No session.", body: SessionClosed },
      ...errors({ 403: foreign, 503: "The database is unavailable: this replica alone refuses the cookie." })
    }
  }
]

export const described: Described = {
  tags: { dashboard: "Routes of the dashboard's pages." },
  routes: [
    ...accountRoutes,
    statusRoute,
    ...sessionRoutes,
    {
      method: "get",
      path: "/dashboard/v1/about",
      id: "about",
      summary: "Identity and accepted payments of this facilitator.",
      tag: "dashboard",
      callers: "public",
      answers: { 200: { description: "Public facts.", body: About } }
    },
    {
      method: "get",
      path: "/dashboard/v1/standing",
      id: "standing",
      summary: "Status: money in flight, settlement times, fees, channels, open settlements, plugins and actors.",
      tag: "dashboard",
      callers: "operators",
      answers: {
        200: { description: "The status.", body: FacilitatorStatus },
        ...errors({ 401: needed, 503: "The database is unavailable." })
      }
    },
    {
      method: "get",
      path: "/dashboard/v1/settlements/{id}",
      id: "life",
      summary: "The timeline of one settlement.",
      tag: "dashboard",
      callers: "operators",
      inPath: Schema.Struct({ id: text("Its id, or the hash of any of its transactions.") }),
      answers: {
        200: { description: "The timeline.", body: SettlementHistory },
        ...errors({ 401: needed, 404: "Unknown settlement.", 503: "The database is unavailable." })
      }
    },
    {
      method: "get",
      path: "/dashboard/v1/rotations",
      id: "rotations",
      summary: "Effects of rotating the sponsor's or the channels' keys: the sources are read, nothing changes.",
      tag: "dashboard",
      callers: "operators",
      answers: {
        200: { description: "Both plans.", body: Rotations },
        ...errors({
          401: needed,
          409: "`rotation_unknown`: the sources or the ledger cannot be read; the message has the reason."
        })
      }
    },
    {
      method: "get",
      path: "/dashboard/v1/moves",
      id: "moves",
      summary: "Operators' audit log, newest first.",
      tag: "dashboard",
      callers: "operators",
      answers: {
        200: { description: "The newest hundred.", body: OperatorActionsPage },
        ...errors({ 401: needed, 503: "The database is unavailable." })
      }
    },
    {
      method: "post",
      path: "/dashboard/v1/moves",
      id: "move",
      summary: "Give a settlement up, resize the channels, or rotate keys as planned.",
      tag: "dashboard",
      callers: "operators",
      body: OperatorAction,
      answers: {
        200: { description: "Done.", body: Schema.Struct({ done: Schema.Boolean }) },
        ...errors({
          400: "Invalid action.",
          401: "An operator's key or session is required.",
          403: "No operator has a key.",
          409: "The action is refused; the message has the reason.",
          503: "The database is unavailable."
        })
      }
    }
  ]
}
