// Queues deliveries for each receiver, from the journal of facts, in the transaction that moves the cursor: exactly
// once across crashes, each with the body that its message will have. A receiver gets events from its first start on,
// including those of its facilitator's downtime.
import { Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type Fact, Facts } from "../../kernel/facts/Facts.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { type SettlementRecord, Settlements } from "../../kernel/settlement/store/Settlements.ts"
import { readSettlementFact } from "../../kernel/settlement/store/facts.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { eventExtensions } from "../../kernel/payment/settledExtensions.ts"
import { channelLostType } from "../batch-store/contract.ts"
import { Config } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"
import { encodeBody, encodeLost } from "./MessageWire.ts"
import { Sender } from "./Sender.ts"

const texts = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.String))

/** The data of a fact about a channel with lost charges. */
const lostOf = ({ data, type, version }: Fact) =>
  type === channelLostType && version === 1 ? texts(data) : Option.none()

export const queueEvents = Effect.gen(function* () {
  const { receivers } = yield* Config
  // No receivers: do not consume; the first receiver starts at the end.
  if (receivers.length === 0) return
  const facts = yield* Facts
  const deliveries = yield* Deliveries
  const sender = yield* Sender
  const sql = yield* SqlClient.SqlClient

  const settlements = yield* Settlements
  const extensions = yield* Extensions
  const [dialect] = (yield* WireVocabulary).dialects

  const owedFor = Effect.fnUntraced(function* (fact: Fact, record: SettlementRecord | undefined) {
    const lost = lostOf(fact)
    const read = Option.getOrUndefined(readSettlementFact(fact))
    if (fact.principal === null || (Option.isNone(lost) && read === undefined)) return []
    const those = receivers.filter(({ principal }) => principal === undefined || principal === fact.principal)
    if (those.length === 0) return []
    const event = read?._tag === "Ended" ? { ...fact, reason: read.data.reason } : fact
    const body = Option.isSome(lost)
      ? encodeLost(fact, lost.value, dialect)
      : record === undefined
        ? null
        : encodeBody(event, record, dialect, yield* eventExtensions(extensions, fact.type, record))
    return those.map(({ name }) => ({
      receiver: name,
      position: fact.position,
      type: fact.type,
      settlement: fact.subject,
      at: fact.at,
      body
    }))
  })

  yield* facts.consume({
    consumer: "webhooks",
    from: "end",
    handle: Effect.fnUntraced(function* (batch) {
      const ids = batch.filter((fact) => Option.isSome(readSettlementFact(fact))).map(({ subject }) => subject)
      const records = yield* settlements.byIds([...new Set(ids)])
      const recordOf = new Map(records.map((record) => [record.id, record]))
      const owed = (yield* Effect.forEach(batch, (fact) => owedFor(fact, recordOf.get(fact.subject)))).flat()
      if (owed.length === 0) return
      yield* deliveries.owe(owed)
      yield* sql.afterCommit(sender.wake)
    })
  })
})
