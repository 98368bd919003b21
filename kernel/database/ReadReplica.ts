// A read replica for reads that may be slightly stale: discovery and analytics. Work wrapped in `reading` has its
// statements sent there while the replica is fit (it answers, streams from this primary, and its lag is within the
// setting), and to the primary otherwise. Work that fails on the replica is retried on the primary, once. Verify and
// settle never use it. Lag is computed from the primary's own log positions: a quiet primary causes no lag, while a
// replica that lost its stream lags.
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Exit, Option, Redacted, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { type ConnectionBounds, leaseConnections } from "./Connections.ts"

type Acquirer = SqlClient.SqlClient["reserve"]

/** A read target: the acquirer of a replica's connections; undefined means the primary. */
export type ReadTargetName = Acquirer | undefined

/** The read target of a fiber's statements: this acquirer's connections, or the primary's. */
export const ReadTarget = Context.Reference<ReadTargetName>("tollkeeper/database/ReadFrom", {
  defaultValue: () => undefined
})

interface ReplicaStatus {
  readonly isFit: boolean
  /** Milliseconds behind the primary, as precise as the poll interval; undefined while unknown. */
  readonly lagMillis: number | undefined
  readonly detail: string | undefined
}

interface ReplicaOptions {
  readonly url: Redacted.Redacted
  readonly lagMillisMax: number
  readonly config: PgClient.PgPoolConfig
  readonly bounds: ConnectionBounds
}

interface Sample {
  readonly at: number
  readonly position: bigint
}

/** Maximum recorded positions of the primary: with a poll every two seconds, the last ten minutes. */
const samplesMax = 300

const askTimeout = Duration.seconds(3)

const unknown: ReplicaStatus = { isFit: false, lagMillis: undefined, detail: "not polled yet" }

/**
 * The lag of a position: the age of the newest sample that it has reached. Zero at the primary's own position;
 * undefined when it is before every sample.
 */
export const lagOf = (samples: ReadonlyArray<Sample>, reached: bigint, now: number): number | undefined => {
  const newest = samples.at(-1)
  if (newest === undefined || reached >= newest.position) return newest === undefined ? undefined : 0
  const last = samples.findLast(({ position }) => position <= reached)
  return last === undefined ? undefined : now - last.at
}

const behind = (lagMillis: number | undefined, lagMillisMax: number): string | undefined =>
  lagMillis === undefined
    ? "its lag is not known yet"
    : lagMillis > lagMillisMax
      ? `${Math.round(lagMillis / 1_000)} s behind, ${Math.round(lagMillisMax / 1_000)} s are allowed`
      : undefined

const primaryPosition = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ position: string }>`select (pg_current_wal_lsn() - '0/0')::text as position`, ([row]) =>
    BigInt(row!.position)
  )

const replicaPosition = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ position: string | null }>`select case when pg_is_in_recovery()
      then (pg_last_wal_replay_lsn() - '0/0')::text end as position`,
    ([row]) => row?.position ?? undefined
  )

interface OpenReplica {
  readonly acquirer: Acquirer
  readonly pool: PgClient.PgClient
}

export class ReadReplica extends Context.Service<
  ReadReplica,
  {
    /** Runs reads on the replica if it is fit, else on the primary. The effect must not write. */
    readonly reading: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Polls the replica once; undefined without a configured one. */
    readonly poll: Effect.Effect<void> | undefined
    readonly status: () => ReplicaStatus
  }
>()("tollkeeper/database/ReadReplica") {
  /** All reads go to the primary. */
  static readonly none: ReadReplica["Service"] = {
    reading: (effect) => effect,
    poll: undefined,
    status: () => ({ isFit: false, lagMillis: undefined, detail: "none is configured" })
  }

  /** The first successful poll connects; an unavailable replica does not delay the start. */
  static readonly make = Effect.fnUntraced(function* (options: ReplicaOptions) {
    const sql = yield* SqlClient.SqlClient
    const owner = yield* Effect.scope
    let status = unknown
    let opened: OpenReplica | undefined
    let samples: ReadonlyArray<Sample> = []

    const open = Effect.gen(function* () {
      if (opened !== undefined) return opened
      const own = yield* Scope.fork(owner)
      const made = yield* Effect.exit(Scope.provide(PgClient.make({ ...options.config, url: options.url }), own))
      if (Exit.isFailure(made)) {
        yield* Scope.close(own, Exit.void)
        return yield* Effect.failCause(made.cause)
      }
      opened = { pool: made.value, acquirer: leaseConnections(made.value.reserve, options.bounds, owner) }
      return opened
    }).pipe(Effect.provide(Reactivity.layer))

    const verify = Effect.gen(function* () {
      const position = yield* primaryPosition(sql)
      samples = [...samples, { at: yield* monotonicMillis, position }].slice(-samplesMax)
      const { pool } = yield* open
      const reached = yield* replicaPosition(pool)
      if (reached === undefined)
        return { isFit: false, lagMillis: undefined, detail: "database.read_url is not a streaming replica" }
      const lagMillis = lagOf(samples, BigInt(reached), yield* monotonicMillis)
      const detail = behind(lagMillis, options.lagMillisMax)
      return { isFit: detail === undefined, lagMillis, detail }
    })

    const read = verify.pipe(
      Effect.timeoutOption(askTimeout),
      Effect.catch(() => Effect.succeedNone),
      Effect.map(
        Option.getOrElse((): ReplicaStatus => ({ isFit: false, lagMillis: undefined, detail: "it does not answer" }))
      ),
      Effect.flatMap((now) => {
        const before = status
        status = now
        if (before.isFit === now.isFit) return Effect.void
        return now.isFit
          ? Effect.logInfo("the read replica is used")
          : before === unknown
            ? Effect.logWarning(`the read replica is not used: ${now.detail}`)
            : Effect.logWarning(`the read replica is no longer used: ${now.detail}`)
      })
    )

    const reading = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        if (!status.isFit || opened === undefined) return effect
        return Effect.provideService(effect, ReadTarget, opened.acquirer).pipe(
          Effect.catchIf(
            (error: E): error is E => SqlError.isSqlError(error),
            // A lost replica is not used again before the next poll.
            (error) => {
              const reason = (error as SqlError.SqlError).reason._tag
              if (reason === "ConnectionError") status = { ...status, isFit: false, detail: "it does not answer" }
              return Effect.provideService(effect, ReadTarget, undefined)
            }
          )
        )
      })

    return ReadReplica.of({ reading, poll: read, status: () => status })
  })
}
