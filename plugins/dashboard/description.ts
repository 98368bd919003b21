// Declarations of the dashboard's routes. Pages of other origins cannot read them, whatever the settings allow. Pages
// and their files are not part of the API and are in `PageRoutes.ts`.
import { Schema } from "effect"
import { answers, at, type Documented, errors, type RouteGroup } from "../../kernel/http/Route.ts"
import { parameter } from "../../kernel/http/readQuery.ts"
import { text } from "../../kernel/http/wireSchema.ts"
import { About } from "./AboutWire.ts"
import { AccountAnswered, AccountAsked, AccountChallenged, AccountShown } from "./AccountWire.ts"
import {
  FacilitatorStatus,
  MonthTotals,
  SettlementHistory,
  OperatorAction,
  OperatorActionsPage,
  Rotations,
  SessionAsked,
  SessionClosed,
  SessionOpened,
  SessionShown
} from "./OperatorWire.ts"

export const group: RouteGroup = { tag: "dashboard", about: "Routes of the dashboard's pages." }

const ofPages = { cors: "own", callers: "public" } as const
const ofOperators = { cors: "own", callers: "operators" } as const

const noDatabase = "The database is unavailable."
const needed = "An operator's key or session is required; without operators' keys, a request from this machine."
const foreign = "The request is not from a page of this origin."

/**
 * Proof of account ownership by a browser. The header `x-tollkeeper-page: 1` proves that the request comes from our
 * page.
 */
export const accountChallenge: Documented = {
  ...at("POST", "/dashboard/account/challenge", "accountChallenge"),
  summary: "Creates a challenge for an account to sign.",
  ...ofPages,
  cost: { cpuMillis: 10, bytesOut: 4_096, statements: 2, rpcCalls: 2 },
  body: AccountAsked,
  answers: {
    200: { description: "The challenge.", body: AccountChallenged },
    ...errors({ 400: "Invalid account.", 403: `${foreign} Or a host that is not configured.`, 429: "Rate limited." })
  }
}

export const accountSignIn: Documented = {
  ...at("POST", "/dashboard/account", "accountSignIn"),
  summary: "Signs in as an account by its signed challenge; each challenge opens one session.",
  ...ofPages,
  cost: { cpuMillis: 10, bytesOut: 4_096, statements: 6, rowsWritten: 4, rpcCalls: 2 },
  body: AccountAnswered,
  answers: answers("The session; the response sets its cookie.", AccountShown, {
    400: "Invalid answer.",
    403: "Not ours, not for this host, network or account, ended or answered; or the host is not configured.",
    429: "Rate limited.",
    503: noDatabase
  })
}

export const accountShown: Documented = {
  ...at("GET", "/dashboard/account", "account"),
  summary: "The account that this browser is signed in as.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 2 },
  answers: answers("The session.", AccountShown, { 503: noDatabase })
}

export const accountSignOut = {
  ...at("DELETE", "/dashboard/account", "accountSignOut"),
  summary: "Signs out.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 3, rowsWritten: 2 },
  query: Schema.Struct({
    everywhere: Schema.optionalKey(Schema.Literal("1").annotate({ description: "In every browser." }))
  }),
  answers: answers("No session.", AccountShown, { 403: foreign, 503: noDatabase })
} satisfies Documented

export const session: Documented = {
  ...at("GET", "/dashboard/session", "session"),
  summary: "This browser's session.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096 },
  answers: { 200: { description: "The session.", body: SessionShown } }
}

/** The response sets the session cookie. */
export const signIn: Documented = {
  ...at("POST", "/dashboard/session", "signIn"),
  summary: "Signs in with a key.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 2, rowsWritten: 3 },
  body: SessionAsked,
  answers: answers("The session; the response sets its cookie.", SessionOpened, {
    400: "Invalid key.",
    401: "The key is not listed here.",
    403: foreign,
    429: "Rate limited."
  })
}

export const signOut: Documented = {
  ...at("DELETE", "/dashboard/session", "signOut"),
  summary: "Signs out: no copy of the session's cookie counts any more, on any replica.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 2, rowsWritten: 2 },
  answers: answers("No session.", SessionClosed, {
    403: foreign,
    503: "The database is unavailable: this replica alone refuses the cookie."
  })
}

export const about: Documented = {
  ...at("GET", "/dashboard/v1/about", "about"),
  summary: "Identity and accepted payments of this facilitator.",
  ...ofPages,
  cost: { cpuMillis: 5, bytesOut: 4_096 },
  answers: { 200: { description: "Public facts.", body: About } }
}

export const books: Documented = {
  ...at("GET", "/dashboard/v1/books", "books"),
  summary: "Totals of the last twelve calendar months (UTC) by key and asset; also as CSV.",
  ...ofOperators,
  cost: { cpuMillis: 20, bytesOut: 65_536, statements: 2 },
  answers: answers("The newest month first.", MonthTotals, { 401: needed, 503: noDatabase })
}

export const statement = {
  ...at("GET", "/dashboard/v1/statement", "statement"),
  summary: "Every settlement of a calendar month (UTC), streamed: one JSON object a line, or CSV.",
  ...ofOperators,
  cost: { cpuMillis: 50, bytesOut: 1_048_576, statements: 4 },
  query: Schema.Struct({
    month: Schema.optionalKey(
      parameter({ pattern: /^20\d\d-(0[1-9]|1[0-2])$/, expected: "YYYY-MM" }, "`YYYY-MM`; required.")
    ),
    key: Schema.optionalKey(
      parameter(
        { pattern: /^[\x21-\x7e]{1,128}$/, expected: "a principal" },
        "The principal of one key, as the books name it."
      )
    ),
    format: Schema.optionalKey(
      parameter(
        { pattern: /^(csv|jsonl)$/, expected: "csv or jsonl" },
        "`csv` or `jsonl`; absent: by Accept, else jsonl."
      )
    )
  }),
  answers: answers("The lines.", Schema.Unknown, {
    400: "`invalid_filter`: no month, or a parameter out of its form.",
    401: needed
  })
} satisfies Documented

export const standing: Documented = {
  ...at("GET", "/dashboard/v1/standing", "standing"),
  summary: "Status: money in flight, settlement times, fees, channels, open settlements, plugins and actors.",
  ...ofOperators,
  cost: { cpuMillis: 10, bytesOut: 65_536, statements: 8 },
  answers: answers("The status.", FacilitatorStatus, { 401: needed, 503: noDatabase })
}

export const life: Documented = {
  ...at("GET", "/dashboard/v1/settlements/:id", "life"),
  summary: "The timeline of one settlement.",
  ...ofOperators,
  cost: { cpuMillis: 10, bytesOut: 16_384, statements: 4 },
  inPath: Schema.Struct({ id: text("Its id, or the hash of any of its transactions.") }),
  answers: answers("The timeline.", SettlementHistory, { 401: needed, 404: "Unknown settlement.", 503: noDatabase })
}

export const rotations: Documented = {
  ...at("GET", "/dashboard/v1/rotations", "rotations"),
  summary: "Effects of rotating the sponsor's or the channels' keys: the sources are read, nothing changes.",
  ...ofOperators,
  cost: { cpuMillis: 10, bytesOut: 32_768, statements: 2 },
  answers: answers("Both plans.", Rotations, {
    401: needed,
    409: "`rotation_unknown`: the sources or the ledger cannot be read; the message has the reason."
  })
}

export const moves = {
  ...at("GET", "/dashboard/v1/moves", "moves"),
  summary: "Operators' audit trail, newest first: every act by page, API, command or signal.",
  query: Schema.Struct({
    before: Schema.optionalKey(
      parameter({ pattern: /^\d{1,18}$/, expected: "the id of an action" }, "The id of an action: older ones.")
    )
  }),
  ...ofOperators,
  cost: { cpuMillis: 10, bytesOut: 262_144, statements: 2 },
  answers: answers("A hundred at most; 10,000 as CSV.", OperatorActionsPage, {
    400: "`move_refused`: no such id.",
    401: needed,
    503: noDatabase
  })
} satisfies Documented

export const move: Documented = {
  ...at("POST", "/dashboard/v1/moves", "move"),
  summary: "Give a settlement up, resize the channels, change a limit, or rotate keys as planned.",
  ...ofOperators,
  cost: { cpuMillis: 20, bytesOut: 4_096, statements: 12, rowsWritten: 8 },
  body: OperatorAction,
  answers: answers("Done.", Schema.Struct({ done: Schema.Boolean }), {
    400: "Invalid action.",
    401: "An operator's key or session is required.",
    403: "No operator has a key.",
    409: "The action is refused; the message has the reason.",
    503: noDatabase
  })
}
