// GET /settlements/events: server-sent events of the caller's own settlements, so that a payment that was left pending
// can be followed to its end. Each event's id is its position: a client that comes back with `Last-Event-ID` (or
// `?after=`) goes on where it stopped, and one without begins a quarter of an hour back. A quiet stream carries a
// comment now and then. Streams are bounded, end when the key is withdrawn, and end first when the process stops.
import { Clock, Effect, Option, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Events } from "../config/Events.ts"
import { WireWords } from "../config/WireWords.ts"
import { Callers } from "../http/Callers.ts"
import { json } from "../http/Guard.ts"
import { ListenAt } from "../http/ListenAt.ts"
import type { Principal } from "../http/Principal.ts"
import { type SettlementEvent, SettlementEvents } from "../settlement/SettlementEvents.ts"
import { encodeSettlementState } from "./settlementState.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Events read at once. */
const pageMax = 100
const maxPosition = 2n ** 63n - 1n

const headers = {
  "cache-control": "no-cache, no-transform",
  // An idle connection would hold up the listener when the process stops.
  connection: "close",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff"
}

const encoder = new TextEncoder()
const comment = (text: string): Uint8Array => encoder.encode(`: ${text}\n\n`)

/** The cursor that a request carries; None when it is not one. */
const cursorOf = (request: Request): Option.Option<bigint | undefined> => {
  const given =
    request.headers["last-event-id"] ?? new URL(request.url, "http://localhost").searchParams.get("after") ?? undefined
  if (given === undefined || given === "") return Option.some(undefined)
  if (!/^[0-9]{1,19}$/.test(given)) return Option.none()
  const position = BigInt(given)
  return position > maxPosition ? Option.none() : Option.some(position)
}

/** Streams that are open, bounded in all and for each principal. */
const makeRooms = (limits: Events["Service"]) => {
  const open = new Map<string, number>()
  const total = () => [...open.values()].reduce((sum, count) => sum + count, 0)
  const hasRoom = (principal: string) =>
    (open.get(principal) ?? 0) < limits.streamsPerPrincipalMax && total() < limits.streamsMax
  /** True when the stream may go on; taken back with the Scope. */
  const enter = (principal: string) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        if (!hasRoom(principal)) return false
        open.set(principal, (open.get(principal) ?? 0) + 1)
        return true
      }),
      (entered) =>
        Effect.sync(() => {
          if (!entered) return
          const left = (open.get(principal) ?? 1) - 1
          if (left === 0) open.delete(principal)
          else open.set(principal, left)
        })
    )
  return { hasRoom, enter }
}

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const callers = yield* Callers
    const events = yield* SettlementEvents
    const limits = yield* Events
    const words = yield* WireWords
    const { closing } = yield* ListenAt
    const rooms = makeRooms(limits)

    const encode = ({ position, settlement, type }: SettlementEvent, now: number): Uint8Array => {
      const data = JSON.stringify(encodeSettlementState(settlement, words.dialects[0], now))
      return encoder.encode(`id: ${position}\nevent: ${type}\ndata: ${data}\n\n`)
    }

    const begin = Effect.fnUntraced(function* (principal: string, cursor: bigint | undefined) {
      if (cursor === undefined) {
        const now = yield* Clock.currentTimeMillis
        return yield* events.before({ principal }, new Date(now - limits.rememberedMillis))
      }
      // A cursor beyond the end is of a journal that was restored since: told again rather than never.
      return cursor > (yield* events.end) ? 0n : cursor
    })

    const follow = (request: Request, { owner: principal, source }: Principal, from: bigint) =>
      Stream.unwrap(
        Effect.gen(function* () {
          if (!(yield* rooms.enter(source))) return Stream.empty
          const told = yield* events.attend(principal)
          const isStillListed = () => Option.exists(callers.identify(request), ({ owner }) => owner === principal)
          const pages = Stream.paginate(from, (position: bigint) =>
            Effect.gen(function* () {
              const page = yield* events.after({ principal }, position, pageMax)
              const now = yield* Clock.currentTimeMillis
              const last = page.at(-1)
              if (last !== undefined)
                return [page.map((event) => encode(event, now)), Option.some(last.position)] as const
              const woken = yield* Effect.timeoutOption(told, limits.heartbeatMillis)
              return [
                Option.isSome(woken) ? [] : [comment("heartbeat")],
                isStillListed() ? Option.some(position) : Option.none<bigint>()
              ] as const
            })
          )
          return Stream.concat(Stream.make(comment("follows")), pages)
        })
      ).pipe(
        // The client comes back with its cursor.
        Stream.catchCause((cause) => Stream.fromEffectDrain(Effect.logWarning("a stream of settlements ended", cause))),
        Stream.interruptWhen(closing)
      )

    yield* router.add("GET", "/settlements/events", (request: Request) =>
      Effect.gen(function* () {
        const caller = callers.identify(request)
        if (Option.isNone(caller))
          return json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
        const principal = caller.value
        const cursor = cursorOf(request)
        if (Option.isNone(cursor))
          return json({ error: "invalid_cursor", message: "a cursor is the id of an event" }, { status: 400 })
        if (!rooms.hasRoom(principal.source))
          return json(
            { error: "too_many_streams", message: "as many streams are open as this facilitator allows" },
            { status: 429, headers: { "retry-after": "5" } }
          )
        const from = yield* Effect.option(begin(principal.owner, cursor.value))
        // Not knowing is not the same as there being none.
        if (Option.isNone(from))
          return json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })
        return HttpServerResponse.stream(follow(request, principal, from.value), {
          contentType: "text/event-stream",
          headers
        })
      })
    )
  })
)
