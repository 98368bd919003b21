// Watches that consumers of facts advance. A consumer stalls if its cursor did not move between two polls although
// facts waited at the first poll. It is measured, and warned of once until it moves again. Without it the cause (a
// failing handler, a wrong cursor) would stay unnoticed.
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { newestEpoch } from "./FactsEpoch.ts"
import { measure } from "../telemetry/Measure.ts"
import { storage } from "../telemetry/metrics.ts"

export const watchEvery = "30 seconds"

interface Cursor {
  readonly consumer: string
  readonly epoch: bigint
  readonly position: bigint
  readonly end: bigint
}

/** One poll of these consumers' cursors, compared with the previous one. */
export const watchConsumers = (sql: SqlClient.SqlClient) => {
  let before = new Map<string, Cursor>()
  let epoch: bigint | undefined
  const warned = new Set<string>()

  const verify = Effect.fnUntraced(function* ({ consumer, end, position }: Cursor) {
    const last = before.get(consumer)
    const isStalled = last !== undefined && last.position === position && last.end > position
    yield* measure(storage.factsWaiting, Number(end - position), { consumer })
    yield* measure(storage.factsStalled, isStalled ? 1 : 0, { consumer })
    if (isStalled === warned.has(consumer)) return
    if (isStalled) {
      warned.add(consumer)
      yield* Effect.logWarning("a consumer of facts does not advance although facts are pending").pipe(
        Effect.annotateLogs({ consumer, position: String(position), waiting: String(end - position) })
      )
    } else {
      warned.delete(consumer)
      yield* Effect.logInfo("a consumer of facts advances again").pipe(Effect.annotateLogs({ consumer }))
    }
  })

  return Effect.fn("Facts.watch")(function* (consumers: ReadonlyArray<string>) {
    const cursors = yield* sql<Cursor>`select consumer, position, ${sql.literal(newestEpoch)} as epoch,
        greatest(position, (select coalesce(max(position), 0) from kernel_facts)) as "end"
      from kernel_fact_cursors where consumer in ${sql.in(consumers)}`
    // A cursor that went back with its journal was not stalled.
    if (cursors[0]?.epoch !== epoch) before = new Map()
    epoch = cursors[0]?.epoch
    for (const cursor of cursors) yield* verify(cursor)
    before = new Map(cursors.map((cursor) => [cursor.consumer, cursor]))
  })
}
