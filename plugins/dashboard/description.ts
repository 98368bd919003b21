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

const errors = (words: Readonly<Record<number, string>>) =>
  Object.fromEntries(Object.entries(words).map(([status, description]) => [status, { description, body: ErrorBody }]))
const needed = "An operator's key or session is required; without operators' keys, a request from this machine."
const foreign = "Not from a page of this origin."

/** Proof of account ownership by a browser; the header `x-tollkeeper-page: 1` proves that a page of ours asks. */
const accountRoutes: ReadonlyArray<RouteDescription> = [
  {
    method: "post",
    path: "/dashboard/account/challenge",
    id: "accountChallenge",
    summary: "What an account signs to be known in this browser.",
    tag: "dashboard",
    callers: "anybody",
    body: AccountAsked,
    answers: {
      200: { description: "The challenge.", body: AccountChallenged },
      ...errors({ 400: "Not an account.", 403: foreign, 429: "Too fast." })
    }
  },
  {
    method: "post",
    path: "/dashboard/account",
    id: "accountSignIn",
    summary: "Signs in as an account, by a challenge that it signed; each opens one session.",
    tag: "dashboard",
    callers: "anybody",
    body: AccountAnswered,
    answers: {
      200: { description: "The session, its cookie beside it.", body: AccountShown },
      ...errors({
        400: "Not an answer.",
        403: "The challenge is not ours, not for this host, network or account, has ended, or was answered already.",
        429: "Too fast.",
        503: "The database is unavailable."
      })
    }
  },
  {
    method: "get",
    path: "/dashboard/account",
    id: "account",
    summary: "Whose account this browser has shown.",
    tag: "dashboard",
    callers: "anybody",
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
    callers: "anybody",
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
    callers: "anybody",
    answers: { 200: { description: "The session.", body: SessionShown } }
  },
  {
    method: "post",
    path: "/dashboard/session",
    id: "signIn",
    summary: "Signs in with a key.",
    tag: "dashboard",
    callers: "anybody",
    body: SessionAsked,
    answers: {
      200: { description: "The session, its cookie beside it.", body: SessionOpened },
      ...errors({ 400: "Not a key.", 401: "The key is not listed here.", 403: foreign, 429: "Too fast." })
    }
  },
  {
    method: "delete",
    path: "/dashboard/session",
    id: "signOut",
    summary: "Signs out.",
    tag: "dashboard",
    callers: "anybody",
    answers: { 200: { description: "No session.", body: SessionClosed }, ...errors({ 403: foreign }) }
  }
]

export const described: Described = {
  tags: { dashboard: "What the pages ask, beside the other routes." },
  routes: [
    ...accountRoutes,
    ...sessionRoutes,
    {
      method: "get",
      path: "/dashboard/v1/about",
      id: "about",
      summary: "What this facilitator is and takes.",
      tag: "dashboard",
      callers: "anybody",
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
      summary:
        "What a rotation of the sponsor's key, or of the channels', would do: the sources are read, nothing is taken.",
      tag: "dashboard",
      callers: "operators",
      answers: {
        200: { description: "Both plans.", body: Rotations },
        ...errors({ 401: needed, 409: "`rotation_unknown`: the sources or the ledger cannot be read, and why." })
      }
    },
    {
      method: "get",
      path: "/dashboard/v1/moves",
      id: "moves",
      summary: "What operators did from the pages, newest first.",
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
          400: "Not a move.",
          401: "An operator's key or session is required.",
          403: "No operator has a key.",
          409: "The move is refused, and why.",
          503: "The database is unavailable."
        })
      }
    }
  ]
}
