// Makes analytics again from the journal: what was recorded is emptied and the cursor goes back to the beginning, in
// one transaction; a facilitator that runs, or the next one, reads everything again. Counts of verifications are not in
// the journal, and stay.
import { Effect } from "effect"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/Facts.ts"
import { clearRecords } from "./Recorder.ts"

/** The name of the cursor. */
export const consumer = "analytics"

export const rebuild = Effect.flatMap(Facts, (facts) =>
  inTransaction(Effect.andThen(facts.rewind(consumer), clearRecords))
).pipe(Effect.withSpan("Analytics.rebuild"))
