// Verifications are counted in memory and written about every 100 ms: a crash loses at most those, and no verification
// waits for a statement. A failed write keeps its counts for the next one; it is one number a day (S145).
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Extensions } from "../../../kernel/payment/Extension.ts"
import { trustedClock } from "../../../kernel/time/trustedTime.ts"
import { dayOf } from "./contributions.ts"

const flushInterval = "100 millis"

interface Count {
  valid: number
  refused: number
}

export const startVerifications = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const extensions = yield* Extensions
  let waiting = new Map<string, Count>()

  const count = (into: Map<string, Count>, day: string, valid: number, refused: number) => {
    const counts = into.get(day) ?? { valid: 0, refused: 0 }
    into.set(day, { valid: counts.valid + valid, refused: counts.refused + refused })
  }

  const flush = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const batch = waiting
    waiting = new Map()
    const rows = [...batch].map(([day, counts]) => ({ day, ...counts }))
    return sql`insert into analytics_verifications as t (day, valid, refused)
      select day, valid, refused
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (day date, valid bigint, refused bigint)
      on conflict (day) do update set valid = t.valid + excluded.valid, refused = t.refused + excluded.refused`.pipe(
      Effect.onError(() =>
        Effect.sync(() => batch.forEach(({ refused, valid }, day) => count(waiting, day, valid, refused)))
      ),
      Effect.asVoid
    )
  })

  const trusted = yield* trustedClock
  const flushing = yield* reconciler({
    id: "verifications",
    // Retries a failed write.
    every: Effect.sync(() => (waiting.size === 0 ? Duration.minutes(1) : Duration.seconds(5))),
    gather: flushInterval,
    turn: flush
  })
  yield* extensions.watch((valid) =>
    Effect.flatMap(trusted, (now) => {
      const first = waiting.size === 0
      count(waiting, dayOf(new Date(now)), valid ? 1 : 0, valid ? 0 : 1)
      return first ? flushing.wake : Effect.void
    })
  )
  // Buffered counts are stored before the database under it closes.
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})
