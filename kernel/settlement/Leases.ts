// Leases for work that one replica does at a time: a row with a holder and an expiry. The holder renews it at half its
// duration, and until then needs no query. When the holder dies, another replica takes over after the lease has
// expired. An embedded database has one process at a time, so no replica waits for the expiry, and the lease is longer.
// A lease only avoids duplicate work: correctness rests on the compare-and-set of each change, so a holder that resumes
// late does no harm.
import { Context, Duration, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Database } from "../database/Database.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { Crypto } from "../platform/Crypto.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

/** Leases are this many times longer if no other process can use the database. */
export const aloneTimes = 60

export class Leases extends Context.Service<
  Leases,
  {
    /**
     * True while this process holds the named lease; renews or takes it. A statement's result is valid for half of
     * `duration`.
     */
    readonly hold: (name: string, duration: Duration.Duration) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/settlement/Leases") {
  static readonly layer = Layer.effect(
    Leases,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const isAlone = (yield* Database).kind === "embedded"
      // A lease found there belongs to a dead process.
      if (isAlone) yield* sql`delete from kernel_leases`
      const holder = Hex.encode((yield* Crypto).randomBytes(8))
      /** For each held name, the time until which no statement is needed. */
      const held = new Map<string, number>()
      // A graceful shutdown hands the work over immediately.
      yield* Effect.addFinalizer(() =>
        held.size === 0 ? Effect.void : Effect.ignore(sql`delete from kernel_leases where holder = ${holder}`)
      )
      const renew = Effect.fnUntraced(function* (name: string, millis: number) {
        const seconds = millis / 1_000
        // Read before the statement: the database counts from a later moment.
        const askedAt = yield* monotonicMillis
        const rows = yield* sql`insert into kernel_leases as l (name, holder, until)
          values (${name}, ${holder}, clock_timestamp() + make_interval(secs => ${seconds}::float8))
          on conflict (name) do update set holder = excluded.holder, until = excluded.until,
            fence = l.fence + case when l.holder = excluded.holder then 0 else 1 end
          where l.holder = excluded.holder or l.until < clock_timestamp() returning 1`
        if (rows.length === 1) held.set(name, askedAt + millis / 2)
        else held.delete(name)
        return rows.length === 1
      }, withSpanIfSampled("Leases.hold"))
      return Leases.of({
        hold: (name, duration) =>
          Effect.flatMap(monotonicMillis, (now) =>
            now < (held.get(name) ?? -Infinity)
              ? Effect.succeed(true)
              : renew(name, Duration.toMillis(duration) * (isAlone ? aloneTimes : 1))
          )
      })
    })
  )
}
