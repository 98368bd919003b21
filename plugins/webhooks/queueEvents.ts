// Queues deliveries for each receiver, from the journal of facts, in the transaction that moves the cursor: exactly
// once across crashes. A receiver gets events from its first start on, including those of its facilitator's downtime.
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type Fact, Facts } from "../../kernel/facts/Facts.ts"
import { readSettlementFact } from "../../kernel/settlement/store/facts.ts"
import { Config } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"
import { Sender } from "./Sender.ts"

export const queueEvents = Effect.gen(function* () {
  const { receivers } = yield* Config
  // No receivers: do not consume; the first receiver starts at the end.
  if (receivers.length === 0) return
  const facts = yield* Facts
  const deliveries = yield* Deliveries
  const sender = yield* Sender
  const sql = yield* SqlClient.SqlClient

  const owedFor = (fact: Fact) =>
    Option.isNone(readSettlementFact(fact)) || fact.principal === null
      ? []
      : receivers
          .filter(({ principal }) => principal === undefined || principal === fact.principal)
          .map(({ name }) => ({
            receiver: name,
            position: fact.position,
            type: fact.type,
            settlement: fact.subject,
            at: fact.at
          }))

  yield* facts.consume({
    consumer: "webhooks",
    from: "end",
    handle: Effect.fnUntraced(function* (batch) {
      const owed = batch.flatMap(owedFor)
      if (owed.length === 0) return
      yield* deliveries.owe(owed)
      yield* sql.afterCommit(sender.wake)
    })
  })
})
