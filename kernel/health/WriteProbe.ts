// Probes whether the database accepts writes: a standby, a read-only server and a full disk answer every query, so
// readiness' trivial query cannot show it. A small write every two seconds shows it, and so does any statement that
// fails for such a reason. A transient failure (a slow write, a lost connection) counts once it occurs twice in a row.
// While there is a problem, each request probes again, so it recovers with the next request. An embedded database is
// not probed on a timer; instead the free space of its disk is watched (`watchDisk.ts`).
import { Context, Duration, Effect, Layer, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { reconciler } from "../actor/Actor.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { Health } from "./Health.ts"
import { Crypto } from "../platform/Crypto.ts"
import { measure } from "../telemetry/Measure.ts"
import { storage } from "../telemetry/metrics.ts"
import { Database } from "../database/Database.ts"
import { errorMessage, writeErrorOf } from "../database/errorMessage.ts"
import { Lane } from "../database/Connections.ts"
import { diskProblem, DiskSpace } from "../platform/DiskSpace.ts"

/**
 * Watches the free space of the disk under an embedded database, which is also the local ledger's. Below the reserve
 * settling is busy, while all work under way still finds space to finish. Beginning and end are logged once. While
 * there is a problem each request reads it again, so it recovers with the next one.
 */
const diskEvery = Duration.seconds(10)

/** The disk's problem, by the last reading, and the function that reads it again. The reserve is in bytes. */
export const watchDisk = Effect.fnUntraced(function* (reserveBytes: number) {
  const reading = yield* DiskSpace
  let problem: string | undefined
  const read = Effect.gen(function* () {
    const space = yield* reading
    const before = problem
    problem = space === undefined ? undefined : diskProblem(space, reserveBytes)
    if (before === undefined && problem !== undefined) yield* Effect.logError(`settling is busy: ${problem}`)
    if (before !== undefined && problem === undefined) yield* Effect.logInfo("the disk has enough free space again")
  })
  yield* read
  yield* reconciler({ id: "disk-watch", every: diskEvery, turn: read })
  return {
    problem: () => problem,
    recheck: Effect.suspend(() => (problem === undefined ? Effect.void : read))
  }
})

const every = Duration.seconds(2)
const everyFaulty = Duration.seconds(1)
/** Two of these, plus the rests before them, take less than five seconds. */
const writeTimeout = Duration.millis(1_200)
/** Consecutive transient failures before they count. */
const failuresMin = 2
/** Interval between two writes while there is a problem and requests probe it. */
const againMillis = 100
/** How long a request waits for a write that may change its answer. */
const requestWait = Duration.millis(500)
const fillerCharacters = 500

/** Replaces the row of this process, and removes rows of ended processes. */
const makeWrite = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const replica = Hex.encode((yield* Crypto).randomBytes(8))
  const filler = "0".repeat(fillerCharacters)
  return sql`with ended as (delete from kernel_write_probes
      where replica = ${replica} or probed_at < clock_timestamp() - make_interval(hours => 1))
    insert into kernel_write_probes (replica, filler) values (${replica}, ${filler})`.pipe(
    Effect.timeout(writeTimeout),
    Effect.provideService(Lane, "payments")
  )
})

/** The last problem, and its next probe. */
const makeProbe = Effect.gen(function* () {
  const write = yield* makeWrite
  const one = yield* Semaphore.make(1)
  let failure: string | undefined
  let failures = 0
  let probedAt = -Infinity

  const set = Effect.fnUntraced(function* (next: string | undefined) {
    const before = failure
    failure = next
    yield* measure(storage.writable, next === undefined ? 1 : 0)
    if (before === undefined && next !== undefined) yield* Effect.logError(`settling is busy: ${next}`)
    if (before !== undefined && next === undefined) yield* Effect.logInfo("the database accepts writes again")
  })

  const tryOnce = Effect.matchEffect(write, {
    onSuccess: () => {
      failures = 0
      return set(undefined)
    },
    onFailure: (error) => {
      failures += 1
      const writeError = writeErrorOf(error)
      if (writeError !== undefined) return set(writeError)
      if (failures < failuresMin && failure === undefined) return Effect.void
      return set(
        error._tag === "TimeoutError"
          ? `the database did not finish a write within ${Duration.toMillis(writeTimeout)} ms`
          : `the database fails writes: ${errorMessage(error)}`
      )
    }
  })

  /** A first transient failure is followed by a second try immediately. */
  const probe = Effect.gen(function* () {
    yield* tryOnce
    if (failure === undefined && failures > 0) yield* tryOnce
    probedAt = yield* monotonicMillis
  })

  const recheck = Effect.gen(function* () {
    const requestedAt = yield* monotonicMillis
    yield* one.withPermits(1)(
      Effect.gen(function* () {
        if (failure === undefined || probedAt > requestedAt) return
        yield* Effect.sleep(Math.max(0, probedAt + againMillis - (yield* monotonicMillis)))
        yield* probe
      })
    )
  })

  return {
    problem: () => failure,
    turn: one.withPermits(1)(probe),
    recheck: Effect.suspend(() =>
      failure === undefined ? Effect.void : Effect.ignore(Effect.timeout(recheck, requestWait))
    ),
    note: (reason: string) => (failure === undefined ? set(reason) : Effect.void)
  }
})

export class WriteProbe extends Context.Service<
  WriteProbe,
  {
    /** The reason why nothing can be written now, as a sentence; during a problem, a write is tried again first. */
    readonly problem: Effect.Effect<string | undefined>
    /** The same by the last write; it tries nothing. */
    readonly known: () => string | undefined
  }
>()("tollkeeper/database/WriteProbe") {
  static readonly layer = Layer.effect(
    WriteProbe,
    Effect.gen(function* () {
      const database = yield* Database
      const probe = yield* makeProbe
      // This process cannot see a server's disk: a failing write, and so the probe, shows it.
      const disk =
        database.kind === "embedded"
          ? yield* watchDisk(database.diskReserveBytes)
          : { problem: () => undefined, recheck: Effect.void }
      const known = () => disk.problem() ?? probe.problem()
      const isTimed = database.kind === "server"
      const { wake } = yield* reconciler({
        id: "write-probe",
        every: Effect.sync(() => (probe.problem() !== undefined ? everyFaulty : isTimed ? every : Duration.infinity)),
        turn: probe.turn
      })
      yield* database.onWriteError((reason) => Effect.andThen(probe.note(reason), wake))
      yield* (yield* Health).register(
        "database",
        Effect.sync(() => {
          const detail = known()
          return detail === undefined ? { state: "ready" as const } : { state: "degraded" as const, detail }
        })
      )
      return WriteProbe.of({
        problem: Effect.andThen(disk.recheck, Effect.andThen(probe.recheck, Effect.sync(known))),
        known
      })
    })
  )

  /** A database that accepts writes, for tests of the code above it. */
  static readonly layerWritable = Layer.succeed(WriteProbe, {
    problem: Effect.succeed(undefined),
    known: () => undefined
  })
}
