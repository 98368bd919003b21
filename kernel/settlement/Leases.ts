// Work that one replica at a time does is under a lease: a row with a holder and an end. The holder renews it with each
// turn; when it dies, another takes over once the lease has run out. A lease only spares double work: correctness rests
// on the compare-and-set of each change, so a holder that wakes up late can do no harm.
import { Context, Duration, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Database } from "../database/Database.ts"
import { Crypto } from "../platform/Crypto.ts"
import { spanned } from "../spanned.ts"

export class Leases extends Context.Service<
  Leases,
  {
    /** True while this process holds the named work; renews or takes it. */
    readonly hold: (name: string, duration: Duration.Duration) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/settlement/Leases") {
  static readonly layer = Layer.effect(
    Leases,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // An embedded database has one process at a time: a lease found in it is of a process that died.
      if ((yield* Database).kind === "embedded") yield* sql`delete from kernel_leases`
      const holder = Hex.encode((yield* Crypto).randomBytes(8))
      const held = new Set<string>()
      // A process that ends in order hands its work on at once.
      yield* Effect.addFinalizer(() =>
        held.size === 0 ? Effect.void : Effect.ignore(sql`delete from kernel_leases where holder = ${holder}`)
      )
      const hold = Effect.fnUntraced(function* (name: string, duration: Duration.Duration) {
        const seconds = Duration.toMillis(duration) / 1_000
        const rows = yield* sql`insert into kernel_leases as l (name, holder, until)
          values (${name}, ${holder}, clock_timestamp() + make_interval(secs => ${seconds}::float8))
          on conflict (name) do update set holder = excluded.holder, until = excluded.until,
            fence = l.fence + case when l.holder = excluded.holder then 0 else 1 end
          where l.holder = excluded.holder or l.until < clock_timestamp() returning 1`
        if (rows.length === 1) held.add(name)
        return rows.length === 1
      }, spanned("Leases.hold"))
      return Leases.of({ hold })
    })
  )
}
