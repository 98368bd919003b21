// Operator reports on settlements and fees: settlements in flight, settlements without an outcome, and the history of
// one settlement. They read only the database. Nothing here writes, and each read is bounded. Amounts of different
// assets are reported separately.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { columns, computed, count, flag, moment, nullable, type Row, text, whole } from "../../database/table.ts"
import { recordColumns } from "../store/recordColumns.ts"
import type { SettlementRecord } from "../store/Settlements.ts"

/** Maximum number of listed settlements without an end, the oldest first. */
const listMax = 200
/** Maximum number of listed attempts of one settlement. */
const attemptsMax = 200

interface InFlight {
  readonly asset: string
  readonly settlements: bigint
  /** Atomic units. */
  readonly amount: bigint
}

interface UnfinishedSettlement {
  readonly open: number
  /** 0 without an open settlement. */
  readonly oldestOpenSeconds: number
  readonly unresolved: number
  readonly oldestUnresolvedSeconds: number
}

export interface DailySpend {
  readonly principal: string
  readonly reservedStroops: bigint
  readonly chargedStroops: bigint
}

const attemptColumns = columns({
  number: count,
  kind: text,
  outerHash: text,
  inclusionStroops: whole,
  recordedLedger: whole,
  sentStatus: nullable(text),
  sentLedger: nullable(whole),
  /** The result code of the last answer, if it was a refusal. */
  sentCode: nullable(text),
  /** Whether a node ever accepted it, or may have. */
  taken: flag,
  /** Null for attempts older than these columns; the sending time also until it was sent. */
  recordedAt: nullable(moment),
  sentAt: nullable(moment)
})

export type AttemptReport = ReturnType<typeof attemptColumns.decode>

const lifeColumns = columns({
  /** Times of the steps before the record; null for rows from before these columns, and for adopted settlements. */
  askedAt: nullable(moment),
  verifiedAt: nullable(moment),
  leasedAt: nullable(moment),
  resourceUrl: nullable(text),
  recordedLedger: whole,
  closedAt: nullable(moment),
  /** Delivery time of the success to its caller. */
  deliveredAt: computed(
    "case when delivered_by is null or confirmed_at is not null then delivered_at end",
    nullable(moment)
  ),
  reservedStroops: computed("budget_stroops", whole),
  /** UTC day, `YYYY-MM-DD`, and the principal that it is charged to. */
  budgetDay: { ...text, cast: "text" },
  budgetPrincipal: computed("coalesce(budget_principal, principal)", text),
  /** The channel's sequence number that its transaction uses. */
  channelSequence: whole
})

export interface SettlementHistory extends ReturnType<typeof lifeColumns.decode> {
  readonly record: SettlementRecord
  readonly attempts: ReadonlyArray<AttemptReport>
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class OperatorReports extends Context.Service<
  OperatorReports,
  {
    /** Open settlements, by asset. */
    readonly inFlight: Sql<ReadonlyArray<InFlight>>
    /** The number of settlements without an outcome, and their age. */
    readonly unended: Sql<UnfinishedSettlement>
    /** Open and unresolved settlements, the oldest first. */
    readonly withoutEnd: Sql<ReadonlyArray<SettlementRecord>>
    /** A UTC day's sponsored fees by principal, the largest first. */
    readonly spent: (day: string) => Sql<ReadonlyArray<DailySpend>>
    /** By id, or by the hash of any of its transactions. */
    readonly life: (idOrHash: string) => Sql<Option.Option<SettlementHistory>>
    /** Settlements of a payer, the newest first. Scans the table: for an operator's command, not for a route. */
    readonly livesOf: (payer: string, limit: number) => Sql<ReadonlyArray<SettlementHistory>>
  }
>()("tollkeeper/settlement/OperatorReports") {
  static readonly layer = Layer.effect(
    OperatorReports,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      return OperatorReports.of({
        inFlight: sql<InFlight>`select asset, count(*)::int8 as settlements, sum(amount)::text as amount
          from kernel_settlements where state in ('prepared', 'submitted') group by asset order by 2 desc`.pipe(
          Effect.map((rows) => rows.map((row) => ({ ...row, amount: BigInt(row.amount) })))
        ),
        unended: unendedOf(sql),
        withoutEnd: Effect.map(
          sql`select ${sql.literal(recordColumns.selected)} from kernel_settlements
            where id in (
              (select id from kernel_settlements where state in ('prepared', 'submitted') order by recorded_at
                limit ${listMax})
              union
              (select id from kernel_settlements where state = 'unresolved' order by recorded_at limit ${listMax}))
            order by recorded_at limit ${listMax}`,
          (rows) => rows.map(recordColumns.decode)
        ),
        spent: (day) => sql<DailySpend>`select principal, reserved_stroops as "reservedStroops",
          committed_stroops as "chargedStroops" from kernel_sponsor_budget where day = ${day}::date
          order by reserved_stroops + committed_stroops desc, principal limit ${listMax}`,
        life: lifeOf(sql, network.id),
        livesOf: (payer, limit) =>
          Effect.flatMap(
            sql`select ${sql.literal(selected)} from kernel_settlements
              where network = ${network.id} and payer = ${payer} order by recorded_at desc, id limit ${limit}`,
            (rows) => Effect.forEach(rows, (row) => toLife(sql, row))
          )
      })
    })
  )
}

/** Two partial indexes hold exactly these rows, so that a long history costs nothing. */
const unendedOf = (sql: SqlClient.SqlClient): Sql<UnfinishedSettlement> =>
  Effect.map(
    sql<UnfinishedSettlement>`select o.count as open, o.age as "oldestOpenSeconds", u.count as unresolved,
        u.age as "oldestUnresolvedSeconds"
      from (select count(*)::int as count,
          coalesce(extract(epoch from clock_timestamp() - min(recorded_at)), 0)::float8 as age
        from kernel_settlements where state in ('prepared', 'submitted')) o,
        (select count(*)::int as count,
          coalesce(extract(epoch from clock_timestamp() - min(recorded_at)), 0)::float8 as age
        from kernel_settlements where state = 'unresolved') u`,
    ([row]) => row!
  )

const lifeOf = (sql: SqlClient.SqlClient, network: string) =>
  Effect.fn("OperatorReports.life")(function* (idOrHash: string) {
    const requested = idOrHash.toLowerCase()
    const of = isId.test(requested)
      ? sql`id = ${requested}::uuid`
      : sql`id in (select id from kernel_settlements where network = ${network} and inner_hash = ${requested}
          union select id from kernel_settlements where network = ${network} and ended_by = ${requested}
          union select settlement from kernel_rebuilds where inner_hash = ${requested}
          union select settlement from kernel_attempts where outer_hash = ${requested})`
    const [row] = yield* sql`select ${sql.literal(selected)} from kernel_settlements where ${of} limit 1`
    return row === undefined ? Option.none() : Option.some(yield* toLife(sql, row))
  })

const selected = `${recordColumns.selected}, ${lifeColumns.selected}`

const toLife = (sql: SqlClient.SqlClient, row: Row): Sql<SettlementHistory> => {
  const record = recordColumns.decode(row)
  return Effect.map(
    sql`select ${sql.literal(attemptColumns.selected)} from kernel_attempts
      where settlement = ${record.id}::uuid order by number limit ${attemptsMax}`,
    (attempts) => ({ ...lifeColumns.decode(row), record, attempts: attempts.map(attemptColumns.decode) })
  )
}
