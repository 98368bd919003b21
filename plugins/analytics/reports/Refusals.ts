// Refused payments by reason and key, with samples: what an operator asks when a seller says that payments do not get
// through. The counts are those of `recording/countRefusals.ts`, the largest first.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { type RefusalSample, samplesMax } from "../recording/RefusalSample.ts"
import { neutralReason } from "../../../kernel/Dialect.ts"
import { within } from "./conditions.ts"
import type { Window } from "./parameters.ts"
import type { Refusals as RefusalsWire } from "./ReportWire.ts"
import { Redaction } from "./Redaction.ts"
import { Spelling } from "./Spelling.ts"

/** Groups of one answer. */
const groupsMax = 200

export interface RefusalFilter {
  readonly reason?: string | undefined
  /** With a payer, the samples that name it, and their groups alone. */
  readonly payer?: string | undefined
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

/** Groups since a time, the largest first; their samples are the newest of the days in question. */
export const readRefusals = (filter: RefusalFilter, since: Statement.Fragment) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { payer, reason } = filter
    const sampled = payer === undefined ? sql`true` : sql`sample ->> 'payer' = ${payer}`
    return yield* sql<Row>`
      with days as (select * from analytics_refusals where ${since}
          and ${reason === undefined ? sql`true` : sql`reason = ${reason}`}),
        grouped as (select operation, reason, principal, sum(refused)::bigint as refused, min(first_at) as first_at,
          max(last_at) as last_at from days group by operation, reason, principal),
        sampled as (select g.*, coalesce((select jsonb_agg(sample order by sample ->> 'at' desc) from (
            select sample from days d, jsonb_array_elements(d.samples) as sample
            where d.operation = g.operation and d.reason = g.reason and d.principal = g.principal and ${sampled}
            order by sample ->> 'at' desc limit ${samplesMax}) newest), '[]'::jsonb) as samples
          from grouped g)
      select * from sampled where ${payer === undefined ? sql`true` : sql`samples <> '[]'::jsonb`}
      order by refused desc, reason, principal, operation limit ${groupsMax}`
  })

export class Refusals extends Context.Service<
  Refusals,
  {
    readonly list: (filter: RefusalFilter, window: Window) => Effect.Effect<typeof RefusalsWire.Type, SqlError.SqlError>
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
      return Refusals.of({
        list: (filter, window) =>
          readRefusals(
            { payer: filter.payer, reason: filter.reason === undefined ? undefined : neutralReason(filter.reason) },
            within(sql, "day", window, "day")
          ).pipe(
            Effect.map((rows) => ({
              days: window.days,
              items: rows.map((row) => ({
                ...row,
                reason: word(row.reason),
                refused: row.refused.toString(),
                first_at: row.first_at.toISOString(),
                last_at: row.last_at.toISOString(),
                samples: row.samples.map(shown)
              }))
            })),
            Effect.provideService(SqlClient.SqlClient, sql)
          )
      })
    })
  )
}
