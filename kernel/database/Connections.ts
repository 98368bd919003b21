// The connection pool of the process, in two lanes, with bounded waits. A server may admit fewer connections than the
// pool may open, because other clients have them or a pooler is in between. This is not an error: the pool works with
// the connections it has, and sometimes tries to open more. The connection of an abandoned statement returns to the
// pool when that statement has ended.
import { Context, Duration, Effect, Exit, Option, Scope, Semaphore } from "effect"
import { type SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { type AbandonedFiber, withDeadline } from "../effect/withDeadline.ts"

// The lane of a database call. Payments (their requests, the follower, the channels) may use every connection; all
// others (catalog, search, analytics, tools) use at most half of them, so that they never delay a payment. Maintenance
// may take minutes: migrations and index builds.

type LaneName = "payments" | "background" | "maintenance"

/** Inherited by the fibers that a fiber starts. */
export const Lane = Context.Reference<LaneName>("tollkeeper/database/Lane", { defaultValue: () => "background" })

/** Pause between two connection attempts while the pool is empty. */
const retryPause = Duration.millis(100)
/** Longest wait for the end of an abandoned transaction. */
const rollbackWait = Duration.seconds(5)
/** A pool that could not grow tries again after this. */
const growAgainMillis = 10_000

export interface ConnectionBounds {
  readonly connectionsMax: number
  readonly connectionWait: Duration.Duration
  /** Longest wait for the answer to one statement, by lane. */
  readonly answerWait: Readonly<Record<LaneName, Duration.Duration>>
  /** Runs for each failed statement, before its caller receives the error. */
  readonly failed?: (error: SqlError.SqlError) => Effect.Effect<void>
  /** Called once with a reader of the pool's status. */
  readonly observed?: (pool: () => PoolStatus) => void
}

export interface PoolStatus {
  /** Maximum connections at this moment: fewer than configured while the server admits no more. */
  readonly max: number
  readonly inUse: number
  readonly waiting: number
}

type Connection = SqlConnection.Connection
type Acquirer = SqlClient.SqlClient["reserve"]

/** Permits for connections: as many as the pool may open, fewer while the server admits no more. */
class Permits {
  readonly #all: Semaphore.Semaphore
  readonly #background: Semaphore.Semaphore
  readonly #max: number
  #size: number
  #held = 0
  #waiting = 0
  #triedAt = -Infinity

  constructor(max: number) {
    this.#max = this.#size = max
    this.#all = Semaphore.makeUnsafe(max)
    this.#background = Semaphore.makeUnsafe(half(max))
  }

  get status(): PoolStatus {
    return { max: this.#size, inUse: this.#held, waiting: this.#waiting }
  }

  /** Waits for a permit; interruptible while it waits. */
  take(lane: LaneName): Effect.Effect<void> {
    const count = Effect.sync(() => void (this.#held += 1))
    return Effect.uninterruptibleMask((restore) => {
      this.#waiting += 1
      const waited = Effect.sync(() => void (this.#waiting -= 1))
      const any = Effect.andThen(restore(this.#all.take(1)), count)
      if (lane === "payments") return Effect.ensuring(any, waited)
      const giveBack = Effect.asVoid(this.#background.release(1))
      const both = Effect.andThen(
        restore(this.#background.take(1)),
        Effect.onInterrupt(any, () => giveBack)
      )
      return Effect.ensuring(both, waited)
    })
  }

  release(lane: LaneName): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#held -= 1
      return Effect.andThen(
        this.#all.release(1),
        lane === "payments" ? Effect.void : Effect.asVoid(this.#background.release(1))
      )
    })
  }

  /** The server admits no further connection: the pool stays at its present size. */
  shrink(now: number): Effect.Effect<void> {
    this.#triedAt = now
    return this.#resize(Math.max(1, this.#held - 1))
  }

  /** Adds a permit to try for one more connection, after some time with too few. */
  grow(now: number): Effect.Effect<void> {
    if (this.#size >= this.#max || now - this.#triedAt < growAgainMillis) return Effect.void
    this.#triedAt = now
    return this.#resize(this.#size + 1)
  }

  #resize(size: number): Effect.Effect<void> {
    this.#size = size
    return Effect.andThen(this.#all.resize(size), this.#background.resize(half(size)))
  }
}

const half = (count: number): number => Math.max(1, Math.floor(count / 2))

/** The reason why no connection was made, if it may be transient: anything except wrong credentials or a wrong name. */
const refusalOf = (exit: Exit.Failure<unknown, SqlError.SqlError>): SqlError.SqlError | undefined => {
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  return error?.reason._tag === "AuthenticationError" || error?.reason._tag === "AuthorizationError" ? undefined : error
}

const tookTooLong = (operation: string, waited: Duration.Duration) =>
  Effect.suspend(() => {
    const message = `the database did not answer within ${Duration.toMillis(waited)} ms`
    return Effect.fail(
      new SqlError.SqlError({
        reason: new SqlError.ConnectionError({ cause: new Error(message), message, operation })
      })
    )
  })

/** Statements that end a transaction: run for the caller by the cleanup of an abandoned statement. */
const endsTransaction = /^(ROLLBACK|RELEASE)\b/

/** A connection with a timeout for its statements; after an abandoned statement it runs no further one. */
const bounded = (
  connection: Connection,
  answerWait: Duration.Duration,
  failed: ConnectionBounds["failed"],
  owner: Scope.Scope,
  left: (leftover: AbandonedFiber) => void
): Connection => {
  let isLeft = false
  const leave = (leftover: AbandonedFiber) => {
    isLeft = true
    left(leftover)
  }
  const bound = <A>(sql: string, statement: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
    Effect.suspend(() => {
      if (!isLeft)
        return withDeadline(failed === undefined ? statement : Effect.tapError(statement, failed), {
          timeout: answerWait,
          scope: owner,
          onTimeout: tookTooLong("query", answerWait),
          onAbandon: leave
        })
      return endsTransaction.test(sql) ? Effect.succeed([] as unknown as A) : tookTooLong("query", answerWait)
    })
  return {
    execute: (sql, ...args) => bound(sql, connection.execute(sql, ...args)),
    executeRaw: (sql, ...args) => bound(sql, connection.executeRaw(sql, ...args)),
    executeValues: (sql, ...args) => bound(sql, connection.executeValues(sql, ...args)),
    executeValuesUnprepared: (sql, ...args) => bound(sql, connection.executeValuesUnprepared(sql, ...args)),
    executeUnprepared: (sql, ...args) => bound(sql, connection.executeUnprepared(sql, ...args)),
    executeStream: connection.executeStream
  }
}

/** The connection of an abandoned statement is rolled back before the next use. If that fails, the driver closes it. */
const cleanUp = (connection: Connection, leftover: AbandonedFiber): Effect.Effect<void> =>
  Effect.andThen(
    leftover,
    Effect.ignore(Effect.timeout(connection.executeUnprepared("ROLLBACK", [], undefined), rollbackWait))
  )

/**
 * Runs an acquire or release of the driver's pool with only the Scope as a service. The pool brings its own services,
 * and each release of the driver would copy all services of the caller, twice per statement.
 */
const alone = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>, own: Scope.Scope): Effect.Effect<A, E> =>
  Effect.updateContext(effect, () => Context.make(Scope.Scope, own))

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Acquires connections of `pool` in the caller's lane. `owner` holds abandoned statements. */
export const leaseConnections = (pool: Acquirer, bounds: ConnectionBounds, owner: Scope.Scope): Acquirer => {
  const permits = new Permits(bounds.connectionsMax)
  bounds.observed?.(() => permits.status)

  /** Holds nothing if it fails or is interrupted; otherwise the caller's Scope releases the connection. */
  const lease = Effect.fnUntraced(function* (
    restore: Restore,
    lane: LaneName,
    refused: (error: SqlError.SqlError) => void
  ) {
    while (true) {
      yield* restore(permits.take(lane))
      const own = Scope.makeUnsafe()
      const exit = yield* Effect.exit(alone(restore(pool), own))
      const now = yield* monotonicMillis
      const giveBack = Effect.andThen(alone(Scope.close(own, Exit.void), own), permits.release(lane))
      if (Exit.isSuccess(exit)) {
        yield* permits.grow(now)
        let leftover: AbandonedFiber | undefined
        const release = Effect.suspend(() =>
          leftover === undefined
            ? giveBack
            : Effect.forkIn(Effect.ensuring(cleanUp(exit.value, leftover), giveBack), owner, {
                startImmediately: true
              })
        )
        yield* Scope.addFinalizer(yield* Effect.scope, release)
        return bounded(exit.value, bounds.answerWait[lane], bounds.failed, owner, (left) => void (leftover = left))
      }
      const refusal = refusalOf(exit)
      if (refusal !== undefined) yield* permits.shrink(now)
      yield* giveBack
      if (refusal === undefined) return yield* exit
      refused(refusal)
      yield* restore(Effect.sleep(retryPause))
    }
  })

  return Effect.flatMap(Lane, (lane) => {
    let last: SqlError.SqlError | undefined
    // A free connection is acquired synchronously, without a timer.
    return withDeadline(
      Effect.uninterruptibleMask((restore) => lease(restore, lane, (error) => void (last = error))),
      {
        timeout: bounds.connectionWait,
        scope: owner,
        onTimeout: Effect.suspend(() =>
          last === undefined ? tookTooLong("connect", bounds.connectionWait) : Effect.fail(last)
        )
      }
    )
  })
}

// Statements that failed because of other transactions and may simply be retried.

const ends = (reasons: ReadonlySet<string>) => (error: unknown) =>
  SqlError.isSqlError(error) && reasons.has(error.reason._tag)

/** Conflicts that PostgreSQL resolves by ending one of the transactions; it may be retried immediately. */
export const isConflict = ends(new Set(["DeadlockError", "SerializationError"]))

/** Also true if other transactions held a lock for too long; a retry may succeed when they have ended. */
export const isSerializationConflict = ends(new Set(["DeadlockError", "LockTimeoutError", "SerializationError"]))
