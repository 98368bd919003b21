// Batches a write that many payments make at the same moment, because a ledger closes for all of them: the record that
// an attempt was sent. Writes that arrive together share one statement, with one record per attempt.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inStatement } from "../../database/Database.ts"
import { batched } from "../../database/batched.ts"
import { Lane } from "../../database/Connections.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import type { SentNote, Settlements } from "./Settlements.ts"

/** Maximum payments in one statement. */
const callsMax = 100
/** Pause between statements. No caller waits for this write, and the answers to many attempts arrive one by one. */
const sentRestMillis = 100

interface AttemptNote {
  readonly id: string
  readonly number: number
  readonly sent: SentNote
}

const wasTaken = ({ sent }: AttemptNote): boolean =>
  sent.status === "Pending" || sent.status === "Duplicate" || sent.status === "Lost"

/** Records the answers to some attempts, all different. */
const noteSent = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, notes: ReadonlyArray<AttemptNote>) {
  const ids = notes.map(({ id }) => id)
  yield* inStatement(sql`with published as (
      select * from unnest(${ids}::uuid[], ${notes.map(({ number }) => number)}::int[],
        ${notes.map(({ sent }) => sent.status)}::text[], ${notes.map(({ sent }) => sent.ledger)}::int8[],
        ${notes.map(({ sent }) => sent.code ?? "")}::text[], ${notes.map(wasTaken)}::bool[],
        ${notes.map(({ sent }) => sent.outerHash ?? "")}::text[])
        as t (settlement, number, status, ledger, code, taken, outer_hash)),
    sent as (
      update kernel_attempts as a set sent_status = t.status, sent_ledger = t.ledger,
        sent_at = clock_timestamp(), sent_code = nullif(t.code, ''), taken = a.taken or t.taken
      from published as t where a.settlement = t.settlement and a.number = t.number
        and t.outer_hash in ('', a.outer_hash))
    update kernel_settlements set state = 'submitted' where id = any(${ids}::uuid[]) and state = 'prepared'`)
  return notes.map(() => undefined)
})

/** The batched call; its statements end with the Scope. */
export const batchSentNotes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const noting = yield* batched({
    maxBatchSize: callsMax,
    keyOf: ({ id, number }: AttemptNote) => `${id} ${number}`,
    minIntervalMillis: sentRestMillis,
    runBatch: (notes) => Effect.provideService(noteSent(sql, notes), Lane, "payments")
  })
  return {
    noteSent: (id, number, sent) => noting({ id, number, sent }).pipe(withSpanIfSampled("Settlements.noteSent"))
  } satisfies Pick<Settlements["Service"], "noteSent">
})
