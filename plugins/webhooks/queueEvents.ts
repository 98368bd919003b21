// Queues deliveries for each receiver, from the journal of facts, in the transaction that moves the cursor: exactly
// once across crashes, each with the body that its message will have. A receiver gets events from its first start on,
// including those of its facilitator's downtime. All replicas share the cursor, and their settings may differ, as
// during a rolling change: each queues for the receivers of all.
import { Duration, Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { Database } from "../../kernel/database/Database.ts"
import { type Fact, Facts } from "../../kernel/facts/Facts.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { type SettlementRecord, Settlements } from "../../kernel/settlement/store/Settlements.ts"
import { endedType, readSettlementFact } from "../../kernel/settlement/store/facts.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { eventExtensions } from "../../kernel/payment/settledExtensions.ts"
import { channelLostType } from "../batch-store/contract.ts"
import { Config } from "./Config.ts"
import { Deliveries, type NamedReceiver } from "./Deliveries.ts"
import { encodeBody, encodeLost } from "./MessageWire.ts"
import { Sender } from "./Sender.ts"

/** Longest wait of a batch for hooks, which may wait for a remote key or a locked table, before its transaction. */
const hooksTimeMax = Duration.millis(1_500)
/** Interval between renewals of this replica's receivers. */
const announceEvery = "1 minute"

const texts = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.String))

/** The data of a fact about a channel with lost charges. */
const lostOf = ({ data, type, version }: Fact) =>
  type === channelLostType && version === 1 ? texts(data) : Option.none()

/** Announces this replica's receivers; returns those of all replicas. */
const announceReceivers = Effect.gen(function* () {
  const { receivers } = yield* Config
  const deliveries = yield* Deliveries
  const announce = deliveries.announce(receivers)
  // Before this replica is ready, so that another one misses none of its events.
  yield* Effect.catch(announce, (error) => Effect.logWarning("the webhook receivers are not announced yet", error))
  yield* reconciler({ id: "webhooks-receivers", every: announceEvery, turn: announce })
  const isShared = (yield* Database).kind === "server"
  return Effect.map(isShared ? deliveries.announced : Effect.succeed([]), (announced): ReadonlyArray<NamedReceiver> => {
    const all = [...receivers, ...announced]
    return [...new Map(all.map(({ name, principal }) => [`${principal} ${name}`, { name, principal }])).values()]
  })
})

/** The settlements' records of facts, by settlement. */
const recordsOf = Effect.fnUntraced(function* (batch: ReadonlyArray<Fact>) {
  const { byIds } = yield* Settlements
  const records = yield* byIds([...new Set(batch.map(({ subject }) => subject))])
  return new Map(records.map((record) => [record.id, record]))
})

/**
 * The additions of hooks to the bodies of a batch, made before its transaction, which holds the cursor and the whole
 * embedded database. If a fact's hooks take too long, the first attempt makes its body.
 */
const makeAdditions = Effect.gen(function* () {
  const extensions = yield* Extensions
  const added = new Map<bigint, Effect.Success<ReturnType<typeof eventExtensions>>>()
  const hasHooks = ({ type }: Fact) => type === endedType("settled") && extensions.settledHooks().length > 0

  return {
    of: (fact: Fact) => (hasHooks(fact) ? added.get(fact.id) : {}),
    prepare: Effect.fnUntraced(function* (batch: ReadonlyArray<Fact>) {
      added.clear()
      const settled = batch.filter(hasHooks)
      if (settled.length === 0) return
      const recordOf = yield* recordsOf(settled)
      yield* Effect.forEach(settled, ({ id, subject, type }) => {
        const record = recordOf.get(subject)
        return record === undefined
          ? Effect.void
          : Effect.map(eventExtensions(extensions, type, record), (members) => void added.set(id, members))
      }).pipe(Effect.timeoutOption(hooksTimeMax))
    })
  }
})

export const queueEvents = Effect.gen(function* () {
  const { receivers } = yield* Config
  // No receivers: do not consume; the first receiver starts at the end.
  if (receivers.length === 0) return
  const facts = yield* Facts
  const deliveries = yield* Deliveries
  const sender = yield* Sender
  const sql = yield* SqlClient.SqlClient

  const [dialect] = (yield* WireVocabulary).dialects

  const known = yield* announceReceivers
  const additions = yield* makeAdditions
  const owedFor = (fact: Fact, record: SettlementRecord | undefined, receivers: ReadonlyArray<NamedReceiver>) => {
    const lost = lostOf(fact)
    const read = Option.getOrUndefined(readSettlementFact(fact))
    if (fact.principal === null || (Option.isNone(lost) && read === undefined)) return []
    const those = receivers.filter(({ principal }) => principal === undefined || principal === fact.principal)
    if (those.length === 0) return []
    const event = read?._tag === "Ended" ? { ...fact, reason: read.data.reason } : fact
    const added = additions.of(fact)
    const body = Option.isSome(lost)
      ? encodeLost(fact, lost.value, dialect)
      : record === undefined || added === undefined
        ? null
        : encodeBody(event, record, dialect, added)
    return those.map(({ name }) => ({
      receiver: name,
      position: fact.position,
      type: fact.type,
      settlement: fact.subject,
      principal: fact.principal,
      at: fact.at,
      body
    }))
  }

  yield* facts.consume({
    consumer: "webhooks",
    from: "end",
    prepare: additions.prepare,
    handle: Effect.fnUntraced(function* (batch) {
      const recordOf = yield* recordsOf(batch.filter((fact) => Option.isSome(readSettlementFact(fact))))
      const receiversOfAll = yield* known
      const owed = batch.flatMap((fact) => owedFor(fact, recordOf.get(fact.subject), receiversOfAll))
      if (owed.length === 0) return
      yield* deliveries.owe(owed)
      yield* sql.afterCommit(sender.wake)
    })
  })
})
