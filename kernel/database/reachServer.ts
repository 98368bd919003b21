// Detects whether a PostgreSQL server is reached directly or through a connection pooler (PgBouncer, and those of
// managed databases). A pooler that assigns a server's session for one transaction loses the session's state: start-up
// parameters, named statements, LISTEN, session locks. So a mark is sent as a start-up parameter: only a client that
// reads it back in its own session is connected to the server itself. A pooler refuses the mark, or drops it.
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Random, type Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlError } from "effect/sql"
import { isPermanent } from "./connectErrorMessage.ts"
import { field, rootCause } from "./errorMessage.ts"

export type Reach = "direct" | "pooled"

const mark = "tollkeeper.reached_as"
const pause = Duration.millis(100)

/** Opens and closes one connection; returns the mark that its session has. */
const ask = (url: Redacted.Redacted, startupParameters: Readonly<Record<string, string>>) =>
  PgClient.make({
    url,
    startupParameters,
    applicationName: "tollkeeper",
    connectTimeout: "3 seconds",
    maxConnections: 1,
    prepare: false
  }).pipe(
    Effect.flatMap((sql) => sql<{ found: string | null }>`select current_setting(${mark}, true) as found`),
    Effect.map(([row]) => row?.found ?? undefined),
    Effect.scoped,
    Effect.provide(Reactivity.layer)
  )

const poll = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const word = `m${yield* Random.nextIntBetween(1, 2 ** 31)}`
  return yield* ask(url, { [mark]: word }).pipe(
    Effect.map((found): Reach => (found === word ? "direct" : "pooled")),
    // If it is refused with the mark and accepted without it, it is a pooler. Otherwise the second error is the cause.
    Effect.catchIf(
      (error) => !isPermanent(error),
      () => Effect.as(ask(url, {}), "pooled" as Reach)
    )
  )
})

const silent = (waited: Duration.Duration): SqlError.SqlError => {
  const message = `no answer within ${Duration.toMillis(waited)} ms`
  return new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error(message), message, operation: "connect" })
  })
}

/**
 * A server without a free connection: other processes release idle connections (`idleTimeout`), so a start waits longer
 * for one.
 */
const fullWait = Duration.seconds(45)
const isFull = (error: SqlError.SqlError): boolean => field(rootCause(error), "code") === "53300"

/** Whether the server is reached directly; retried within the connection wait, longer while the server is full. */
export const reachServer = (
  url: Redacted.Redacted,
  connectionWait: Duration.Duration
): Effect.Effect<Reach, SqlError.SqlError> =>
  Effect.suspend(() => {
    let last: SqlError.SqlError | undefined
    const once = Effect.tapError(poll(url), (error) => Effect.sync(() => void (last = error)))
    const retried = Effect.retry(once, { schedule: Schedule.spaced(pause), while: (error) => !isPermanent(error) })
    const within = (wait: Duration.Duration, orElse: Effect.Effect<Reach, SqlError.SqlError>) =>
      Effect.timeoutOrElse(retried, { duration: wait, orElse: () => orElse })
    const failed = Effect.suspend(() => Effect.fail(last ?? silent(connectionWait)))
    return within(
      connectionWait,
      Effect.suspend(() => (last !== undefined && isFull(last) ? within(fullWait, failed) : failed))
    )
  })
