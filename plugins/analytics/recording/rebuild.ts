// Makes analytics again from the journal: what was recorded is emptied and the cursor goes back to the beginning, in
// one transaction; a facilitator that runs, or the next one, reads everything again. Counts of verifications are not in
// the journal, and stay.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Facts } from "../../../kernel/Facts.ts"
import { clearRecords } from "./recordSettlements.ts"

/** The name of the cursor. */
export const consumer = "analytics"

export const rebuild = Effect.fn("Analytics.rebuild")(function* (facts: Facts["Service"]) {
  const sql = yield* SqlClient.SqlClient
  yield* inTransaction(Effect.andThen(facts.rewind(consumer), clearRecords(sql)))
})
