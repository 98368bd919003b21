// Notifies other replicas of published facts: LISTEN/NOTIFY through the database after the commit, a burst as one
// notification, received on the listener's separate connection. It is only a wake-up: the receiver reads the rows, and
// polls anyway. So a lost notification, or a pooler that passes none on, costs only seconds.
import { Duration, Effect, Queue, Random, Schedule, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../database/Database.ts"
import { outageOf } from "../actor/outages.ts"
import { Supervisor } from "../actor/Supervisor.ts"

const channel = "tollkeeper"
/** The shortest time between two notifications of this process. */
const ringEvery = "100 millis"
/** A process also receives its own notifications; without one after this time, we assume that none are passed on. */
const echoWait = "5 seconds"
const retryAfter = Duration.seconds(5)
const deafRetryAfter = Duration.minutes(10)
/** Each try determines the pause after it. */
const pauses = Schedule.modifyDelay(Schedule.setInputType<Duration.Duration>()(Schedule.forever), ({ input }) =>
  Effect.succeed(input)
)

const noListener =
  "a connection pooler is in front of the database, so replicas notice each other's facts after a second or more and " +
  "not immediately; set DATABASE_DIRECT_URL to the server itself (or to DATABASE_URL, if the pooler is in session mode)"

const notPassedOn =
  "notifications of the database do not arrive, so replicas notice each other's facts after a second or more and not " +
  "immediately; DATABASE_DIRECT_URL must name the server itself, or a pooler in session mode"

export interface FactsNotifier {
  /** Notifies the other replicas. */
  readonly notify: Effect.Effect<void>
  /**
   * Whether this process receives notifications of other replicas, by its last check; also true without other replicas.
   */
  readonly isListening: () => boolean
  /** True if no other process can use the database. */
  readonly isOnlyProcess: boolean
}

/** Runs `onNotification` whenever another process has published something. */
export const startFactsNotifier = Effect.fnUntraced(function* (
  onNotification: Effect.Effect<void>
): Effect.fn.Return<FactsNotifier, never, Database | SqlClient.SqlClient | Supervisor | Scope.Scope> {
  const { kind, listen } = yield* Database
  const sql = yield* SqlClient.SqlClient
  const supervisor = yield* Supervisor
  // Only this process can open an embedded database.
  if (kind === "embedded") return { notify: Effect.void, isListening: () => true, isOnlyProcess: true }
  const own = `${yield* Random.nextIntBetween(1, 2 ** 31)}.${yield* Random.nextIntBetween(1, 2 ** 31)}`
  const notify = Effect.asVoid(sql`select pg_notify(${channel}, ${own})`)

  const rings = yield* Queue.sliding<void>(1)
  const ringing = Effect.forever(
    Queue.take(rings).pipe(Effect.andThen(Effect.ignore(notify)), Effect.andThen(Effect.sleep(ringEvery)))
  )
  yield* supervisor.start({ id: "facts-ring", restart: "permanent", run: Effect.withTracerEnabled(ringing, false) })
  const ring = Effect.asVoid(Queue.offer(rings, undefined))
  if (listen === undefined)
    return yield* Effect.as(Effect.logWarning(noListener), {
      notify: ring,
      isListening: () => false,
      isOnlyProcess: false
    } satisfies FactsNotifier)

  let isReceived = false
  const attend = Effect.gen(function* () {
    const reported = yield* listen(channel)
    yield* notify
    const first = yield* Effect.timeoutOption(Queue.take(reported), echoWait)
    if (first._tag === "None") {
      yield* Effect.logWarning(notPassedOn)
      return deafRetryAfter
    }
    // Notifications sent before LISTEN were not received; poll once.
    yield* onNotification
    isReceived = true
    while (true) if ((yield* Queue.take(reported)).payload !== own) yield* onNotification
  }).pipe(Effect.scoped, Effect.ensuring(Effect.sync(() => (isReceived = false))))
  let said = false
  const listening = attend.pipe(
    Effect.catch((error) => {
      // The log has one line per outage, from the actors that write.
      const isQuiet = said || outageOf(error) !== undefined
      const say = isQuiet
        ? Effect.void
        : Effect.logWarning("notifications of the database cannot be received now", error)
      said = true
      return Effect.as(say, retryAfter)
    }),
    Effect.repeat(pauses),
    Effect.asVoid
  )
  yield* supervisor.start({ id: "facts-listen", restart: "permanent", run: Effect.withTracerEnabled(listening, false) })
  return { notify: ring, isListening: () => isReceived, isOnlyProcess: false }
})
