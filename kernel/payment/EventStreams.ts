// Streams of settlements as server-sent events, one principal's or, for operators, everybody's: bounded in all and for
// each who follows, told in the journal's order from a position on, with a comment now and then while they are quiet. A
// stream ends when its key is withdrawn, when the database fails it (the client comes back with its cursor), and first
// of all when the process stops.
import { Clock, Context, Effect, Layer, Option, type Scope, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { Events } from "../config/Events.ts"
import { WireWords } from "../config/WireWords.ts"
import { ListenAt } from "../http/ListenAt.ts"
import { type SettlementEvent, SettlementEvents, type Whose } from "../settlement/SettlementEvents.ts"
import { encodeSettlementState } from "./settlementState.ts"

/** Events read at once. */
const pageMax = 100

const encoder = new TextEncoder()
const comment = (text: string): Uint8Array => encoder.encode(`: ${text}\n\n`)

/** Streams that are open, by whom they are counted for. */
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

  /** True when the stream may go on; given back with the Scope. */
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

/** One who follows. */
export interface Follower {
  readonly whose: Whose
  /** What the stream is counted for. */
  readonly source: string
  /** The stream ends when this no longer holds. */
  readonly isListed: () => boolean
  /** An event's data; absent: the settlement as its own principal reads it. */
  readonly dataOf?: (event: SettlementEvent) => unknown
}

export class EventStreams extends Context.Service<
  EventStreams,
  {
    readonly hasRoom: (source: string) => boolean
    /** Where a stream with this cursor, or without one, begins. */
    readonly begin: (whose: Whose, cursor: bigint | undefined) => Effect.Effect<bigint, SqlError.SqlError>
    readonly follow: (follower: Follower, from: bigint) => Stream.Stream<Uint8Array>
  }
>()("tollkeeper/payment/EventStreams") {
  static readonly layer = Layer.effect(
    EventStreams,
    Effect.gen(function* () {
      const events = yield* SettlementEvents
      const limits = yield* Events
      const [dialect] = (yield* WireWords).dialects
      const { closing } = yield* ListenAt
      const rooms = new Rooms(limits)

      const encode = (dataOf: Follower["dataOf"], event: SettlementEvent, now: number): Uint8Array => {
        const data = JSON.stringify(dataOf?.(event) ?? encodeSettlementState(event.settlement, dialect, now))
        return encoder.encode(`id: ${event.position}\nevent: ${event.type}\ndata: ${data}\n\n`)
      }

      const begin = Effect.fnUntraced(function* (whose: Whose, cursor: bigint | undefined) {
        if (cursor === undefined) {
          const now = yield* Clock.currentTimeMillis
          return yield* events.before(whose, new Date(now - limits.rememberedMillis))
        }
        // A cursor beyond the end is of a journal that was restored since: told again rather than never.
        return cursor > (yield* events.end) ? 0n : cursor
      })

      /** What is told after a position, or a comment when nothing is for a while; and where to go on. */
      const nextPage = Effect.fnUntraced(function* (
        { dataOf, whose }: Follower,
        position: bigint,
        told: Effect.Effect<void>
      ) {
        const page = yield* events.after(whose, position, pageMax)
        const now = yield* Clock.currentTimeMillis
        const last = page.at(-1)
        if (last !== undefined)
          return { chunks: page.map((event) => encode(dataOf, event, now)), position: last.position }
        const woken = yield* Effect.timeoutOption(told, limits.heartbeatMillis)
        return { chunks: Option.isSome(woken) ? [] : [comment("heartbeat")], position }
      })

      const follow = (follower: Follower, from: bigint) =>
        Stream.unwrap(
          Effect.gen(function* () {
            if (!(yield* rooms.enter(follower.source))) return Stream.empty
            const told = yield* events.attend(follower.whose)
            const pages = Stream.paginate(from, (position: bigint) =>
              Effect.map(
                nextPage(follower, position, told),
                (page) =>
                  [page.chunks, follower.isListed() ? Option.some(page.position) : Option.none<bigint>()] as const
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
