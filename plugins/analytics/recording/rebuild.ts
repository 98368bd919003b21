// Rebuilds analytics from the journal: the records are emptied and the cursor is reset, in one transaction; the running
// facilitator, or the next one, reads everything again. Counts of verifications are not in the journal, and stay. Once
// facts have left the journal by age the rebuild is refused: their content could not be rebuilt.
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { clearRecords } from "./Recorder.ts"

export const consumer = "analytics"

/** The journal begins later than the records. */
class JournalIncomplete extends Schema.TaggedError<JournalIncomplete>()("JournalIncomplete", {
  message: Schema.String
}) {}

/** Whether the journal is complete from its first position, or empty. */
const isWhole = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ whole: boolean }>`select exists (select 1 from kernel_facts where position = 1)
    or not exists (select 1 from kernel_facts where position is not null) as whole`
  return row!.whole
})

const lost =
  "facts were deleted from the journal by age (retention.fact_days), so the analytics of that time would be lost; " +
  "restore a backup that contains them, or keep analytics unchanged"

export const rebuild = Effect.flatMap(Facts, (facts) =>
  inTransaction(
    Effect.gen(function* () {
      if (!(yield* isWhole)) return yield* new JournalIncomplete({ message: lost })
      yield* facts.rewind(consumer)
      yield* clearRecords
    })
  )
).pipe(Effect.withSpan("Analytics.rebuild"))
