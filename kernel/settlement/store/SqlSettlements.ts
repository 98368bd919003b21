// The repository of settlements in SQL. Transactions contain only SQL. Unique constraints, not reads, decide between
// replicas; every change names the state it expects.
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Budget } from "../../budget/Budget.ts"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { Server } from "../../config/Server.ts"
import { inStatement, inTransaction, isUniqueViolation } from "../../database/Database.ts"
import { factRow, Facts } from "../../facts/Facts.ts"
import { counted } from "../../http/Authentication.ts"
import { Host } from "../../platform/Host.ts"
import type { ChannelLease } from "../channels/ChannelStore.ts"
import { corrections } from "./corrections.ts"
import { endedFact, recordedFact, recordedType } from "./facts.ts"
import { isResolvedBy, batchOutcomes } from "./batchOutcomes.ts"
import { batchFinds } from "./batchFinds.ts"
import { batchDeliveries, recallDelivery } from "./batchDeliveries.ts"
import { batchSentNotes } from "./batchSentNotes.ts"
import { batchRecords } from "./batchRecords.ts"
import {
  type AdoptAnswer,
  type AdoptedSettlement,
  type FindQuery,
  type NewAttempt,
  type NewSettlement,
  type RecordAnswer,
  Settlements
} from "./Settlements.ts"
import { adoptedRow, attemptColumns, attemptRow, bornRow, openColumns, spreadOf, toOpen } from "./SettlementRows.ts"
import { recordColumns } from "./recordColumns.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Constraints that tie to one settlement: an authorization, and an identifier of its owner for a seller and payer. */
const ofOneSettlement = ["kernel_settlements_authorization", "kernel_settlements_identifier"] as const
/**
 * All conflicts of an adoption: the same adoption, done before; and the transaction, already recorded or the end of
 * another settlement. If one row violates several constraints, the database names the oldest.
 */
const ofAnother = [
  ...ofOneSettlement,
  "kernel_settlements_pkey",
  "kernel_settlements_inner_hash",
  isResolvedBy
] as const

/** Inserts a row once for each row of `given`, a relation of the surrounding statement. */
const insertOnce = (sql: SqlClient.SqlClient, table: string, row: Readonly<Record<string, unknown>>, given: string) =>
  sql`insert into ${sql.literal(`${table} (${Object.keys(row).join(", ")})`)}
    select ${sql.csv(Object.values(row).map((value) => sql`${value}`))} from ${sql.literal(given)}`

const insertAttempt = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (id: string, number: number, attempt: NewAttempt) {
    yield* sql`insert into kernel_attempts ${sql.insert(attemptRow(id, number, attempt))}`
  })

const facilitatorName = Effect.gen(function* () {
  return (yield* Server).instance ?? (yield* Host).name
})

const find = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (query: FindQuery) {
    const columns = sql.literal(recordColumns.selected)
    const key = Option.getOrNull(query.authorizationKey)
    const payer = Option.getOrNull(query.payer)
    const identifier = payer === null ? null : Option.getOrNull(query.identifier)
    if (key === null && identifier === null) return []
    const rows = yield* sql`select ${columns} from kernel_settlements
    where (${key}::text is not null and network = ${query.network} and scheme = ${query.scheme}
      and authorization_key = ${key}::text)
    union
    select ${columns} from kernel_settlements
    where (${identifier}::text is not null and principal = ${query.principal} and pay_to = ${query.payTo}
      and payer = ${payer}::text and identifier = ${identifier}::text)`
    return rows.map(recordColumns.decode)
  })

/** The result of recording: everything was recorded, or nothing because of the first missing condition. */
interface RecordedRow {
  readonly may_open: boolean
  readonly leased: boolean
  readonly born: boolean
}

const recordedAnswer = ({ born, leased, may_open }: RecordedRow): RecordAnswer => {
  if (born) return { _tag: "Recorded" }
  if (!may_open) return { _tag: "TooManyOpen" }
  return { _tag: leased ? "BudgetExceeded" : "FenceLost" }
}

/**
 * One statement, so one transaction and one round trip. Each step passes a row to the next or none. Nothing is written
 * before the last step that may fail: the lease, under its row's lock, and then the budget.
 */
const makeRecord = Effect.fnUntraced(function* (facilitator: string) {
  const sql = yield* SqlClient.SqlClient
  const budget = yield* Budget
  const facts = yield* Facts
  const limits = yield* Limits
  return Effect.fnUntraced(function* (settlement: NewSettlement) {
    const { channel, id } = settlement
    const { part, reservation } = yield* budget.reserving(
      counted(settlement.principal),
      settlement.budgetStroops,
      spreadOf(id),
      "leased"
    )
    const fact = factRow(recordedFact(settlement, facilitator))
    const statement = sql<RecordedRow>`with permit as (
      select count(*) < ${limits.pendingSettlementsMax}::int as may_open from kernel_settlements
      where state in ('prepared', 'submitted')),
    leased as (
      select 1 from kernel_channels where address = ${channel.address} and fence = ${channel.fence}::int8
        and settlement is null and (select may_open from permit)
      for update),
    ${part},
    born as (${insertOnce(sql, "kernel_settlements", bornRow(settlement, reservation), "budget_reserved")} returning 1),
    attempted as (${insertOnce(sql, "kernel_attempts", attemptRow(id, 1, settlement.attempt), "born")}),
    published as (${insertOnce(sql, "kernel_facts", fact, "born")}),
    held as (
      update kernel_channels set settlement = ${id}, leased_until = null, used_at = clock_timestamp() from born
      where address = ${channel.address})
    select (select may_open from permit) as may_open, exists (select 1 from leased) as leased,
      exists (select 1 from born) as born`
    return yield* facts.publishedBy(inStatement(statement)).pipe(
      Effect.map(([row]) => recordedAnswer(row!)),
      Effect.catchIf(
        (error) => isUniqueViolation(error, ...ofOneSettlement),
        () => Effect.succeed<RecordAnswer>({ _tag: "Known" })
      )
    )
  })
})

const addAttempt = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (id: string, attempt: NewAttempt, attemptsKnown: number) {
    return yield* inTransaction(
      Effect.gen(function* () {
        const open = yield* sql`update kernel_settlements set attempt_count = attempt_count + 1
        where id = ${id} and state in ('prepared', 'submitted') and attempt_count = ${attemptsKnown} returning 1`
        if (open.length === 0) return undefined
        const [last] = yield* sql<{
          number: number
        }>`select max(number)::int as number from kernel_attempts where settlement = ${id}`
        const number = (last?.number ?? 0) + 1
        yield* insertAttempt(sql)(id, number, attempt)
        return number
      })
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  }, withSpanIfSampled("Settlements.addAttempt"))

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  return Effect.fnUntraced(function* (limit: number) {
    const rows = yield* sql`select ${sql.literal(`${recordColumns.selected}, ${openColumns.selected}`)}
    from kernel_settlements where network = ${network.id} and state in ('prepared', 'submitted')
    order by recorded_at limit ${limit}`
    if (rows.length === 0) return []
    const attempts = yield* sql`select ${sql.literal(attemptColumns.selected)} from kernel_attempts as a
    where settlement in ${sql.in(rows.map(({ id }) => id))}
      and number > (select attempts_void from kernel_settlements as s where s.id = a.settlement)
    order by settlement, number`
    const bySettlement = Map.groupBy(attempts.map(attemptColumns.decode), ({ settlement }) => settlement)
    return rows.map((row) => toOpen(row, bySettlement.get(row["id"] as string) ?? []))
  }, withSpanIfSampled("Settlements.open"))
})

const freeChannel = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (id: string, ledger: number, attemptsKnown: number) {
    const rows = yield* sql`update kernel_channels set settlement = null, used_at = clock_timestamp(), sequence = null,
      sequence_ledger = greatest(sequence_ledger, ${ledger}::int8), fence = fence + 1
    where settlement = ${id}
      and exists (select 1 from kernel_settlements where id = ${id} and attempt_count = ${attemptsKnown})
    returning 1`
    return rows.length === 1
  }, withSpanIfSampled("Settlements.freeChannel"))

/** One statement, so one transaction: the lease, under its row's lock, then the settlement, then its attempt. */
const rebuild = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (id: string, lease: ChannelLease, attempt: NewAttempt, attemptsKnown: number) {
    const row = attemptRow(id, attemptsKnown + 1, attempt)
    const rows = yield* inStatement(sql`with leased as (
      select address from kernel_channels
      where address = ${lease.address} and fence = ${lease.fence}::int8 and settlement is null
        and not exists (select 1 from kernel_channels held where held.settlement = ${id})
      for update),
    former as (
      select s.id, s.inner_hash from kernel_settlements s, leased
      where s.id = ${id} and s.state in ('prepared', 'submitted') and s.attempt_count = ${attemptsKnown}
      for update of s),
    rebuilt as (
      update kernel_settlements s set channel = ${lease.address}, channel_sequence = ${lease.sequence}::int8,
        inner_hash = ${attempt.innerHash}, attempts_void = ${attemptsKnown}, attempt_count = ${attemptsKnown + 1}
      from former where s.id = former.id returning s.id),
    noted as (insert into kernel_rebuilds (settlement, inner_hash) select id, inner_hash from former),
    attempted as (${insertOnce(sql, "kernel_attempts", row, "rebuilt")}),
    held as (
      update kernel_channels set settlement = ${id}, leased_until = null, used_at = clock_timestamp() from rebuilt
      where address = ${lease.address})
    select 1 from rebuilt`)
    return rows.length === 1 ? row.number : undefined
  }, withSpanIfSampled("Settlements.rebuild"))

/** The constraints that refused an adoption; there may be several. */
const knownOrTaken = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (settlement: AdoptedSettlement) {
    const known = yield* sql`select 1 from kernel_settlements where network = ${settlement.network}
    and ((scheme = ${settlement.scheme} and authorization_key = ${settlement.authorizationKey}) or (
      principal = ${settlement.principal.owner} and pay_to = ${settlement.payTo} and payer = ${settlement.payer}
      and identifier = ${Option.getOrNull(settlement.identifier)}::text))`
    return (known.length > 0 ? "Known" : "TransactionTaken") as AdoptAnswer
  })

const makeAdopt = Effect.fnUntraced(function* (facilitator: string) {
  const sql = yield* SqlClient.SqlClient
  const budget = yield* Budget
  const facts = yield* Facts
  return Effect.fnUntraced(function* (settlement: AdoptedSettlement) {
    return yield* inTransaction(
      Effect.gen(function* () {
        const charge = yield* budget.charge(
          counted(settlement.principal),
          settlement.feeChargedStroops,
          spreadOf(settlement.id)
        )
        yield* sql`insert into kernel_settlements ${sql.insert(adoptedRow(settlement, charge))}`
        yield* recallDelivery(sql, settlement.id)
        yield* insertAttempt(sql)(settlement.id, 1, {
          ...settlement,
          kind: "payment",
          recordedLedger: settlement.ledger
        })
        // The channel's sequence may have been lost together with the record, so it is read again.
        yield* sql`update kernel_channels set sequence = null, sequence_ledger = greatest(sequence_ledger,
        ${settlement.ledger}::int8)
      where address = ${settlement.channel} and settlement is null and sequence < ${settlement.channelSequence}::int8`
        yield* facts.publish(recordedFact({ ...settlement, amountMax: settlement.amount }, facilitator))
        yield* facts.publish(
          endedFact(
            { ...settlement, principal: settlement.principal.owner },
            { ...settlement, state: "settled", reason: undefined }
          )
        )
        return "Adopted" as AdoptAnswer
      })
    ).pipe(
      Effect.catchIf(
        (error) => isUniqueViolation(error, ...ofAnother),
        () => knownOrTaken(sql)(settlement)
      ),
      Effect.provideService(SqlClient.SqlClient, sql)
    )
  }, withSpanIfSampled("Settlements.adopt"))
})

const makeWasOwner = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  return Effect.fnUntraced(function* (transaction: string, principal: string) {
    const [row] = yield* sql<{ shown: boolean }>`select exists (select 1 from kernel_lost_settlements
      where network = ${network.id} and transaction = ${transaction} and principal = ${principal})
    or exists (select 1 from kernel_facts where principal = ${principal} and type = ${recordedType}
      and position is not null and data->>'network' = ${network.id}
      and data->>'transaction' = ${transaction}) as shown`
    return row!.shown
  }, withSpanIfSampled("Settlements.wasOwner"))
})

const openCount = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{
      open: number
    }>`select count(*)::int as open from kernel_settlements where state in ('prepared', 'submitted')`,
    ([row]) => row?.open ?? 0
  )

const byIds = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const columns = sql.literal(recordColumns.selected)
    if (ids.length === 0) return []
    return (yield* sql`select ${columns} from kernel_settlements where id in ${sql.in(ids)}`).map(recordColumns.decode)
  }, withSpanIfSampled("Settlements.byIds"))

const endsOf = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const columns = sql.literal(recordColumns.selected)
    if (ids.length === 0) return []
    return (yield* sql`select ${columns} from kernel_settlements
    where id = any(${ids}::uuid[]) and state not in ('prepared', 'submitted')`).map(recordColumns.decode)
  }, withSpanIfSampled("Settlements.endsOf"))

const lookup = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (principal: string, by: { readonly identifier: string } | { readonly hash: string }) {
    const columns = sql.literal(recordColumns.selected)
    const where =
      "identifier" in by
        ? sql`identifier = ${by.identifier}`
        : sql`(inner_hash = ${by.hash} or ended_by = ${by.hash}
          or id in (select settlement from kernel_attempts where outer_hash = ${by.hash})
          or id in (select settlement from kernel_rebuilds where inner_hash = ${by.hash}))`
    const rows = yield* sql`select ${columns} from kernel_settlements
    where principal = ${principal} and ${where} order by recorded_at desc limit 20`
    return rows.map(recordColumns.decode)
  }, withSpanIfSampled("Settlements.lookup"))

export const layer = Layer.effect(
  Settlements,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const facilitator = yield* facilitatorName
    const { noteSent } = yield* batchSentNotes
    const deliveries = yield* batchDeliveries
    const { resolve } = yield* batchOutcomes
    const finding = yield* batchFinds(find(sql))
    const recording = yield* batchRecords(facilitator, yield* makeRecord(facilitator))
    return Settlements.of({
      find: finding.find,
      record: recording.record,
      addAttempt: addAttempt(sql),
      noteSent,
      open: yield* makeOpen,
      resolve,
      ...(yield* corrections),
      freeChannel: freeChannel(sql),
      ...deliveries,
      openCount: openCount(sql),
      rebuild: rebuild(sql),
      wasOwner: yield* makeWasOwner,
      adopt: yield* makeAdopt(facilitator),
      byIds: byIds(sql),
      endsOf: endsOf(sql),
      lookup: lookup(sql)
    })
  })
)
