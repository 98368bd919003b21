// Streams of settlements as server-sent events, for one principal or, for operators, of all. Their number is bounded in
// total and for each client. Events follow the journal's order from a cursor on, with a comment as keep-alive. If the
// journal went back, an event `journal.rewound` gives the position at which the stream continues. A stream ends when
// its key is withdrawn, when its database read fails (the client reconnects with its cursor), and first of all when the
// process stops.
import { Clock, Context, Effect, Layer, Option, type Scope, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { Events } from "../../config/Events.ts"
import { WireVocabulary } from "../../config/WireVocabulary.ts"
import { encodeCursor, type JournalCursor, resumeAt } from "../../facts/FactsEpoch.ts"
import { ListenAt } from "../../http/ListenAt.ts"
import { type SettlementEvent, SettlementEvents, type Whose } from "../../settlement/operators/SettlementEvents.ts"
import { Extensions } from "../Extension.ts"
import { eventExtensions } from "../settledExtensions.ts"
import { encodeSettlementState } from "./settlementState.ts"

const pageMax = 100

const encoder = new TextEncoder()
const comment = (text: string): Uint8Array => encoder.encode(`: ${text}\n\n`)

/**
 * The journal went back since the client's cursor was issued (its database lost the last commits): the stream continues
 * at the last position in common. Events after that position that the client has read may have been undone, or are sent
 * again.
 */
const rewound = (to: JournalCursor, from: JournalCursor): Uint8Array => {
  const [id, given] = [encodeCursor(to), encodeCursor(from)]
  return encoder.encode(`id: ${id}\nevent: journal.rewound\ndata: ${JSON.stringify({ from: given, to: id })}\n\n`)
}

/** Open streams, by the principal or address that they count against. */
class Rooms {
  readonly #open = new Map<string, number>()
  readonly #limits: Events["Service"]

  constructor(limits: Events["Service"]) {
    this.#limits = limits
  }

  hasRoom(source: string): boolean {
    const total = [...this.#open.values()].reduce((sum, count) => sum + count, 0)
    return (this.#open.get(source) ?? 0) < this.#limits.streamsPerPrincipalMax && total < this.#limits.streamsMax
  }

  /** True if the stream may open; released with the Scope. */
  enter(source: string): Effect.Effect<boolean, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => {
        if (!this.hasRoom(source)) return false
        this.#open.set(source, (this.#open.get(source) ?? 0) + 1)
        return true
      }),
      (entered) =>
        Effect.sync(() => {
          if (!entered) return
          const left = (this.#open.get(source) ?? 1) - 1
          if (left === 0) this.#open.delete(source)
          else this.#open.set(source, left)
        })
    )
  }
}

export interface Follower {
  readonly whose: Whose
  /** The stream counts against this principal or address. */
  readonly source: string
  /** The stream ends as soon as this returns false. */
  readonly isListed: () => boolean
  /** An event's data; absent: the settlement in the form for its own principal. */
  readonly dataOf?: (event: SettlementEvent) => unknown
}

export class EventStreams extends Context.Service<
  EventStreams,
  {
    readonly hasRoom: (source: string) => boolean
    /** The start position of a stream with this cursor, or without one. */
    readonly begin: (whose: Whose, cursor: JournalCursor | undefined) => Effect.Effect<JournalCursor, SqlError.SqlError>
    readonly follow: (follower: Follower, from: JournalCursor) => Stream.Stream<Uint8Array>
  }
>()("tollkeeper/payment/EventStreams") {
  static readonly layer = Layer.effect(
    EventStreams,
    Effect.gen(function* () {
      const events = yield* SettlementEvents
      const limits = yield* Events
      const extensions = yield* Extensions
      const [dialect] = (yield* WireVocabulary).dialects
      const { closing } = yield* ListenAt
      const rooms = new Rooms(limits)

      const own = ({ settlement, type }: SettlementEvent, now: number) =>
        Effect.map(eventExtensions(extensions, type, settlement), (added) => ({
          ...encodeSettlementState(settlement, dialect, now),
          ...added
        }))
      const encode = (dataOf: Follower["dataOf"], event: SettlementEvent, now: number): Effect.Effect<Uint8Array> =>
        Effect.map(dataOf === undefined ? own(event, now) : Effect.succeed(dataOf(event)), (data) =>
          encoder.encode(`id: ${encodeCursor(event)}\nevent: ${event.type}\ndata: ${JSON.stringify(data)}\n\n`)
        )

      const begin = Effect.fnUntraced(function* (whose: Whose, cursor: JournalCursor | undefined) {
        if (cursor === undefined) {
          const now = yield* Clock.currentTimeMillis
          return yield* events.before(whose, new Date(now - limits.retainedMillis))
        }
        // Begins a new epoch first, in case the journal went back and nothing has detected it.
        return resumeAt(cursor, yield* events.end)
      })

      /** The events after a cursor, or a comment after a while without events; and the next cursor. */
      const nextPage = Effect.fnUntraced(function* (
        { dataOf, whose }: Follower,
        cursor: JournalCursor,
        woken: Effect.Effect<void>
      ) {
        const page = yield* events.after(whose, cursor, pageMax)
        const now = yield* Clock.currentTimeMillis
        const chunks = yield* Effect.forEach(page.events, (event) => encode(dataOf, event, now))
        if (page.rewoundTo !== undefined) chunks.unshift(rewound(page.rewoundTo, cursor))
        if (chunks.length > 0 || !page.isEnd) return { chunks, next: page.next }
        const isWoken = Option.isSome(yield* Effect.timeoutOption(woken, limits.heartbeatMillis))
        return { chunks: isWoken ? [] : [comment("heartbeat")], next: page.next }
      })

      const follow = (follower: Follower, from: JournalCursor) =>
        Stream.unwrap(
          Effect.gen(function* () {
            if (!(yield* rooms.enter(follower.source))) return Stream.empty
            const reported = yield* events.attend(follower.whose)
            const pages = Stream.paginate(from, (cursor: JournalCursor) =>
              Effect.map(
                nextPage(follower, cursor, reported),
                (page) =>
                  [page.chunks, follower.isListed() ? Option.some(page.next) : Option.none<JournalCursor>()] as const
              )
            )
            return Stream.concat(Stream.make(comment("follows")), pages)
          })
        ).pipe(
          Stream.catchCause((cause) =>
            Stream.fromEffectDrain(Effect.logWarning("a stream of settlements ended", cause))
          ),
          Stream.interruptWhen(closing)
        )

      return EventStreams.of({ hasRoom: (source) => rooms.hasRoom(source), begin, follow })
    })
  )
}
