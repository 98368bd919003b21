// GET /settlements/events: server-sent events of the caller's own settlements, so that a pending payment can be
// followed to its outcome. Each event's id is a cursor: its position and the journal's epoch. A client that reconnects
// with `Last-Event-ID` (or `?after=`) resumes there. If the journal went back since, it resumes at the last position in
// common, and an event `journal.rewound` announces this first. A stream without a cursor begins a quarter of an hour
// back. `EventStreams.ts` has the streams themselves.
import { Effect, Layer, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { decodeCursor, type JournalCursor } from "../../facts/FactsEpoch.ts"
import { Authentication } from "../../http/Authentication.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../http/httpMiddleware.ts"
import { readQuery, queryOf } from "../../http/readQuery.ts"
import { addRoutes, route } from "../../http/Route.ts"
import { eventsRoute, paymentRoutes, resumed } from "../wire/description.ts"
import { EventStreams, type Follower } from "./EventStreams.ts"

type Request = HttpServerRequest.HttpServerRequest

const headers = {
  "cache-control": "no-cache, no-transform",
  // An idle connection would delay the listener's end when the process stops.
  connection: "close",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff"
}

const refused = {
  unauthorized,
  // All keyless callers are one principal, so each would see the payments of all.
  stranger: json(
    { error: "forbidden", message: "a stream needs a key; without configured keys, only this machine may open one" },
    { status: 403 }
  ),
  cursor: json({ error: "invalid_cursor", message: "a cursor is the id of an event" }, { status: 400 }),
  room: json(
    { error: "too_many_streams", message: "the maximum number of streams is open" },
    { status: 429, headers: { "retry-after": "5" } }
  ),
  // A database error must not read as an empty answer.
  database: temporarilyUnavailable
}

/** The cursor of a request; None if it is malformed. */
export const cursorOf = (request: Request): Option.Option<JournalCursor | undefined> => {
  const given = request.headers["last-event-id"] ?? readQuery(resumed.query, queryOf(request)).given("after")
  if (given === undefined || given === "") return Option.some(undefined)
  return decodeCursor(given)
}

/** The stream that a follower requests, from its cursor on, or the refusal. */
export const answerStream = Effect.fnUntraced(function* (
  streams: EventStreams["Service"],
  follower: Follower,
  cursor: JournalCursor | undefined
) {
  if (!streams.hasRoom(follower.source)) return refused.room
  const from = yield* Effect.option(streams.begin(follower.whose, cursor))
  if (Option.isNone(from)) return refused.database
  return HttpServerResponse.stream(streams.follow(follower, from.value), { contentType: "text/event-stream", headers })
})

/** The refusal of a cursor that this server did not issue. */
export const refusedCursor = refused.cursor

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const callers = yield* Authentication
    const streams = yield* EventStreams
    const follow = Effect.fnUntraced(function* (request: Request) {
      const caller = callers.authenticate(request)
      if (Option.isNone(caller)) return refused.unauthorized
      const principal = caller.value
      if (!principal.keyed && !callers.isLocal(request)) return refused.stranger
      const cursor = cursorOf(request)
      if (Option.isNone(cursor)) return refused.cursor
      const { owner, source } = principal
      const isListed = () => Option.exists(callers.authenticate(request), (now) => now.owner === owner)
      return yield* answerStream(streams, { whose: { principal: owner }, source, isListed }, cursor.value)
    })
    yield* addRoutes(paymentRoutes, [route(eventsRoute, follow)])
  })
)
