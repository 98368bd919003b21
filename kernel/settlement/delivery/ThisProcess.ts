// This process's row in the database, which shows the other processes that it is alive and delivers successes. It
// renews the row every two seconds. A process with a row that stays unchanged for ten seconds, while others renew
// theirs, counts as dead: another process deletes the row, and the successes that it was sending are undelivered again.
// A process that was only slow finds its row deleted and continues under another id. It stops sending successes before
// the others may count it as dead. An embedded database belongs to one process, so any other row in it belongs to a
// dead process.
import { Context, Duration, Effect, Layer, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { Database } from "../../database/Database.ts"
import { Lane } from "../../database/Connections.ts"
import { Crypto } from "../../platform/Crypto.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"

const beatEvery = Duration.seconds(2)
/** Another process's row that stays unchanged for this long is deleted. */
const deadAfterMillis = 10_000
/**
 * A process renews a row of this age before it claims, and sends no success if the row is older than the next limit.
 */
const staleAfterMillis = 4_000
const absentAfterMillis = 7_000
/** Maximum delay of the process's end for the removal of its row. */
const leaveTimeout = Duration.seconds(1)

interface Other {
  readonly id: string
  readonly beat: string
}

interface RenewedRow {
  readonly kept: boolean
  readonly server: string
  readonly others: ReadonlyArray<Other>
}

interface SeenBeat {
  readonly beat: string
  readonly since: number
}

/** The rows that stayed unchanged for too long, by this process's observation. */
const makeWatch = () => {
  let seen = new Map<string, SeenBeat>()
  let watchedAt = -Infinity
  return (others: ReadonlyArray<Other>, now: number): ReadonlyArray<Other> => {
    // After a gap in its own renewals, it cannot judge the others.
    const isContinuous = now - watchedAt < absentAfterMillis
    watchedAt = now
    seen = new Map(
      others.map(({ beat, id }) => {
        const earlier = seen.get(id)
        return [id, isContinuous && earlier?.beat === beat ? earlier : { beat, since: now }]
      })
    )
    return others.filter(({ id }) => now - seen.get(id)!.since >= deadAfterMillis)
  }
}

export class ThisProcess extends Context.Service<
  ThisProcess,
  {
    /** The current id: a new one after the row was lost. */
    readonly id: () => string
    /** Renews the row if that is due before a claim; afterwards the row exists. */
    readonly renewIfStale: Effect.Effect<void, SqlError.SqlError>
    /** Renews the row; if it was lost, makes another one under a new id. */
    readonly renew: Effect.Effect<void, SqlError.SqlError>
    /** Whether no other process can count this one as dead at this moment. */
    readonly isPresent: Effect.Effect<boolean>
    /**
     * Registers a listener that runs after another server has served a renewal: the database may have lost its last
     * commits.
     */
    readonly onServedAnew: (listener: Effect.Effect<void>) => Effect.Effect<void>
  }
>()("tollkeeper/settlement/ThisProcess") {
  static readonly layer = Layer.effect(
    ThisProcess,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const crypto = yield* Crypto
      const isAlone = database.kind === "embedded"
      const newId = () => Hex.encode(crypto.randomBytes(8))
      const watch = makeWatch()
      let id = newId()
      let renewedAt = -Infinity
      let server: string | undefined
      const listeners: Array<Effect.Effect<void>> = []

      const one = yield* Semaphore.make(1)
      /** Renews the row, or makes another one if it is lost. Returns the rows of dead processes. */
      const renew = Effect.gen(function* () {
        const begunAt = yield* monotonicMillis
        const [row] = yield* sql<RenewedRow>`with kept as (
            update kernel_processes set beat_at = clock_timestamp() where id = ${id} returning 1)
          select exists (select 1 from kept) as kept, kernel_server_identity() as server,
            coalesce((select jsonb_agg(jsonb_build_object('id', o.id, 'beat', o.beat_at::text))
              from kernel_processes as o where o.id <> ${id}), '[]') as others`
        const { kept, others, server: serving } = row!
        if (!kept) {
          const next = newId()
          yield* sql`insert into kernel_processes (id) values (${next})`
          id = next
        }
        renewedAt = begunAt
        if (server !== undefined && server !== serving) yield* Effect.all(listeners, { discard: true })
        server = serving
        return isAlone ? others : watch(others, yield* monotonicMillis)
      }).pipe(one.withPermits(1))
      const turn = Effect.gen(function* () {
        const dead = yield* renew
        if (dead.length === 0) return
        yield* sql`delete from kernel_processes as p
          using unnest(${dead.map(({ id }) => id)}::text[], ${dead.map(({ beat }) => beat)}::text[]) as d (id, beat)
          where p.id = d.id and p.beat_at::text = d.beat`
      })
      const age = Effect.map(monotonicMillis, (now) => (isAlone && renewedAt > -Infinity ? 0 : now - renewedAt))

      yield* Effect.addFinalizer(() =>
        sql`delete from kernel_processes where id = ${id}`.pipe(Effect.timeout(leaveTimeout), Effect.ignore)
      )
      yield* reconciler({
        id: "this-process",
        every: isAlone ? Duration.infinity : beatEvery,
        turn: Effect.provideService(turn, Lane, "payments")
      })
      return ThisProcess.of({
        id: () => id,
        renewIfStale: Effect.flatMap(age, (millis) => (millis < staleAfterMillis ? Effect.void : Effect.asVoid(renew))),
        renew: Effect.asVoid(renew),
        isPresent: Effect.map(age, (millis) => millis < absentAfterMillis),
        onServedAnew: (listener) => Effect.sync(() => void listeners.push(listener))
      })
    })
  )
}
