// Operator reports on settlements and fees: settlements in flight, settlements without an outcome, and the history of
// one settlement. They read only the database. Nothing here writes, and each read is bounded. Amounts of different
// assets are reported separately.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import type { Row } from "../../database/table.ts"
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

export interface AttemptReport {
  readonly number: number
  readonly kind: string
  readonly outerHash: string
  /** The inclusion bid. */
  readonly inclusionStroops: bigint
  readonly recordedLedger: bigint
  readonly sentStatus: string | null
  readonly sentLedger: bigint | null
  /** The result code of the last answer, if it was a refusal. */
  readonly sentCode: string | null
  /** Whether a node ever accepted it, or may have. */
  readonly taken: boolean
  /** Null for attempts older than these columns; the sending time also until it was sent. */
  readonly recordedAt: Date | null
  readonly sentAt: Date | null
}

export interface SettlementHistory {
  readonly record: SettlementRecord
  /** Times of the steps before the record; null for rows from before these columns, and for adopted settlements. */
  readonly askedAt: Date | null
  readonly verifiedAt: Date | null
  readonly leasedAt: Date | null
  readonly resourceUrl: string | null
  readonly recordedLedger: bigint
  readonly closedAt: Date | null
  /** Delivery time of the success to its caller. */
  readonly deliveredAt: Date | null
  readonly reservedStroops: bigint
  /** UTC day, `YYYY-MM-DD`, and the principal that it is charged to. */
  readonly budgetDay: string
  readonly budgetPrincipal: string
  /** The channel's sequence number that its transaction uses. */
  readonly channelSequence: bigint
  readonly attempts: ReadonlyArray<AttemptReport>
}

interface LifeRow extends Row {
  readonly id: string
  readonly asked_at: Date | null
  readonly verified_at: Date | null
  readonly leased_at: Date | null
  readonly resource_url: string | null
  readonly recorded_ledger: bigint
  readonly closed_at: Date | null
  readonly delivered_at: Date | null
  readonly budget_stroops: bigint
  readonly budget_day: string
  readonly budget_principal: string
  readonly channel_sequence: bigint
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
            sql<LifeRow>`select ${sql.literal(lifeColumns)} from kernel_settlements
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
    const text = idOrHash.toLowerCase()
    const of = isId.test(text)
      ? sql`id = ${text}::uuid`
      : sql`id in (select id from kernel_settlements where network = ${network} and inner_hash = ${text}
          union select id from kernel_settlements where network = ${network} and ended_by = ${text}
          union select settlement from kernel_rebuilds where inner_hash = ${text}
          union select settlement from kernel_attempts where outer_hash = ${text})`
    const [row] = yield* sql<LifeRow>`select ${sql.literal(lifeColumns)} from kernel_settlements where ${of} limit 1`
    return row === undefined ? Option.none() : Option.some(yield* toLife(sql, row))
  })

const lifeColumns = `${recordColumns.selected}, asked_at, verified_at, leased_at, recorded_ledger,
  case when delivered_by is null or confirmed_at is not null then delivered_at end as delivered_at,
  budget_stroops, budget_day::text as budget_day, coalesce(budget_principal, principal) as budget_principal,
  channel_sequence`

const toLife = (sql: SqlClient.SqlClient, row: LifeRow): Sql<SettlementHistory> =>
  Effect.map(
    sql<AttemptReport>`select number, kind, outer_hash as "outerHash",
      inclusion_stroops as "inclusionStroops", recorded_ledger as "recordedLedger", sent_status as "sentStatus",
      sent_ledger as "sentLedger", sent_code as "sentCode", taken,
      recorded_at as "recordedAt", sent_at as "sentAt" from kernel_attempts
      where settlement = ${row.id}::uuid order by number limit ${attemptsMax}`,
    (attempts) => ({
      record: recordColumns.decode(row),
      askedAt: row.asked_at,
      verifiedAt: row.verified_at,
      leasedAt: row.leased_at,
      resourceUrl: row.resource_url,
      recordedLedger: row.recorded_ledger,
      closedAt: row.closed_at,
      deliveredAt: row.delivered_at,
      reservedStroops: row.budget_stroops,
      budgetDay: row.budget_day,
      budgetPrincipal: row.budget_principal,
      channelSequence: row.channel_sequence,
      attempts
    })
  )
