// Batches two writes that many payments make at the same moment, because ledgers close for all: that an attempt was
// sent, and the claim of a success for one caller. Writes that arrive together are one statement; each payment's answer
// is its own. A statement holds one note of an attempt, and one claim of a settlement: two of one settlement in one
// statement would both be granted.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inStatement } from "../../database/Database.ts"
import { batched } from "../../database/batched.ts"
import { Lane } from "../../database/Lane.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import type { SentNote, Settlements } from "./Settlements.ts"

/** Payments of which one statement notes something. */
const callsMax = 100
/** No caller waits for the note of a sent attempt, and answers to many arrive one by one. */
const sentRestMillis = 100

interface Noting {
  readonly id: string
  readonly number: number
  readonly sent: SentNote
}

const wasTaken = ({ sent }: Noting): boolean =>
  sent.status === "Pending" || sent.status === "Duplicate" || sent.status === "Lost"

/** What was answered to some attempts, each another one. */
const noteSent = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, notes: ReadonlyArray<Noting>) {
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

interface Claim {
  readonly id: string
  readonly principal: string
}

/** Which of some claims are granted; no two of one settlement. */
const claimDelivery = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, claims: ReadonlyArray<Claim>) {
  const rows = yield* inStatement(sql<{ id: string }>`update kernel_settlements as s
    set delivered_at = clock_timestamp()
    from unnest(${claims.map(({ id }) => id)}::uuid[], ${claims.map(({ principal }) => principal)}::text[])
      as c (id, principal)
    where s.id = c.id and s.principal = c.principal and s.state = 'settled' and s.delivered_at is null
    returning s.id::text as id`)
  const granted = new Set(rows.map(({ id }) => id))
  return claims.map(({ id }) => granted.has(id))
})

/** The two calls; what they began ends with the Scope. */
export const batchSentNotes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const asPayment = Effect.provideService(Lane, "payments")
  const noting = yield* batched({
    maxBatchSize: callsMax,
    keyOf: ({ id, number }: Noting) => `${id} ${number}`,
    minIntervalMillis: sentRestMillis,
    runBatch: (notes) => asPayment(noteSent(sql, notes))
  })
  const claiming = yield* batched({
    maxBatchSize: callsMax,
    keyOf: ({ id }: Claim) => id,
    runBatch: (claims) => asPayment(claimDelivery(sql, claims))
  })
  return {
    noteSent: (id, number, sent) => noting({ id, number, sent }).pipe(withSpanIfSampled("Settlements.noteSent")),
    claimDelivery: (id, principal) => claiming({ id, principal }).pipe(withSpanIfSampled("Settlements.claimDelivery"))
  } satisfies Pick<Settlements["Service"], "noteSent" | "claimDelivery">
})
