// Refused payments by reason and key, with samples, for operators whose sellers report that payments fail. The counts
// come from `recording/countRefusals.ts`, sorted in descending order.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { type RefusalSample, samplesMax } from "../recording/RefusalSample.ts"
import { neutralReason } from "../../../kernel/Dialect.ts"
import { within } from "./conditions.ts"
import { forms, type Window } from "./parameters.ts"
import type { Refusals as RefusalsWire } from "./ReportWire.ts"
import { Redaction } from "./Redaction.ts"
import { Spelling } from "./Spelling.ts"

export const groupsMax = 200

interface RefusalFilter {
  readonly operation?: string | undefined
  readonly reason?: string | undefined
  /** The label of a key, or `anonymous` or `none`. */
  readonly key?: string | undefined
  /** UTC days, `from` inclusive and `to` exclusive; ISO 8601. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Only samples with this payer, and only groups with such samples. */
  readonly payer?: string | undefined
}

interface RefusalPage {
  readonly limit: number
  /** `REFUSED:OPERATION:REASON:PRINCIPAL` of the previous page's last group. */
  readonly cursor: string | undefined
}

interface Row {
  readonly operation: string
  readonly reason: string
  readonly principal: string
  readonly refused: bigint
  readonly first_at: Date
  readonly last_at: Date
  readonly samples: ReadonlyArray<RefusalSample>
}

const narrowed = (sql: SqlClient.SqlClient, filter: RefusalFilter): Statement.Fragment => {
  const { from, key, operation, reason, to } = filter
  return sql.and([
    sql`true`,
    ...(operation === undefined ? [] : [sql`operation = ${operation}`]),
    ...(reason === undefined ? [] : [sql`reason = ${reason}`]),
    ...(key === undefined ? [] : [sql`principal in (${key}, ${`key:${key}`})`]),
    ...(from === undefined ? [] : [sql`day >= (${from}::timestamptz at time zone 'UTC')::date`]),
    ...(to === undefined ? [] : [sql`day < (${to}::timestamptz at time zone 'UTC')`])
  ])
}

const beyond = (sql: SqlClient.SqlClient, cursor: string | undefined): Statement.Fragment => {
  if (cursor === undefined) return sql`true`
  const [, refused = "0", operation = "", reason = "", principal = ""] = forms.group.pattern.exec(cursor) ?? []
  return sql`(refused < ${refused}::bigint or (refused = ${refused}::bigint
    and (reason, principal, operation) > (${reason}, ${principal}, ${operation})))`
}

const cursorOf = ({ operation, principal, reason, refused }: Row): string =>
  `${refused}:${operation}:${reason}:${principal}`

const whole: RefusalPage = { limit: groupsMax, cursor: undefined }

/** Groups since a time, the largest first, with the newest samples of those days. */
export const readRefusals = (filter: RefusalFilter, since: Statement.Fragment, page: RefusalPage = whole) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { payer } = filter
    const sampled = payer === undefined ? sql`true` : sql`sample ->> 'payer' = ${payer}`
    return yield* sql<Row>`
      with days as (select * from analytics_refusals where ${since}
          and ${narrowed(sql, filter)}),
        grouped as (select operation, reason, principal, sum(refused)::bigint as refused, min(first_at) as first_at,
          max(last_at) as last_at from days group by operation, reason, principal),
        sampled as (select g.*, coalesce((select jsonb_agg(sample order by sample ->> 'at' desc) from (
            select sample from days d, jsonb_array_elements(d.samples) as sample
            where d.operation = g.operation and d.reason = g.reason and d.principal = g.principal and ${sampled}
            order by sample ->> 'at' desc limit ${samplesMax}) newest), '[]'::jsonb) as samples
          from grouped g)
      select * from sampled where ${payer === undefined ? sql`true` : sql`samples <> '[]'::jsonb`}
        and ${beyond(sql, page.cursor)}
      order by refused desc, reason, principal, operation limit ${page.limit}`
  })

export class Refusals extends Context.Service<
  Refusals,
  {
    readonly list: (
      filter: RefusalFilter,
      window: Window,
      page: RefusalPage
    ) => Effect.Effect<typeof RefusalsWire.Type, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Refusals") {
  static readonly layer = Layer.effect(
    Refusals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { clean } = yield* Redaction
      const { network, word } = yield* Spelling
      const shown = (sample: RefusalSample): RefusalSample =>
        clean({ ...sample, network: sample.network === null ? null : network(sample.network as never) })
      const list = Effect.fn("Refusals.list")(function* (filter: RefusalFilter, window: Window, page: RefusalPage) {
        const reason = filter.reason === undefined ? undefined : neutralReason(filter.reason)
        const widerPage = { ...page, limit: page.limit + 1 }
        const candidates = yield* readRefusals({ ...filter, reason }, within(sql, "day", window, "day"), widerPage)
        const rows = candidates.slice(0, page.limit)
        return {
          days: window.days,
          items: rows.map((row) => ({
            ...row,
            reason: word(row.reason),
            refused: row.refused.toString(),
            first_at: row.first_at.toISOString(),
            last_at: row.last_at.toISOString(),
            samples: row.samples.map(shown)
          })),
          pagination: { limit: page.limit, cursor: candidates.length > page.limit ? cursorOf(rows.at(-1)!) : null }
        } satisfies typeof RefusalsWire.Type
      })
      return Refusals.of({
        list: (...args) => Effect.provideService(list(...args), SqlClient.SqlClient, sql)
      })
    })
  )
}
