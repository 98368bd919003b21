// The resources that a recipient sells: those of its newest settlements, by amount, with their organic share. The
// number of settlements that it reads is bounded, so that the page of a large seller does not cost more.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Selling as SellingWire } from "./ListWire.ts"
import { Spelling } from "./Spelling.ts"

/** Maximum number of settlements that are read, newest first. */
const overMax = 2_000
const resourcesMax = 20

interface Row {
  readonly resource_id: bigint | null
  readonly resource_url: string | null
  readonly asset: string
  readonly settlements: bigint
  readonly settled: bigint
  readonly organic: bigint
  readonly amount: string
}

const selling = Effect.fn("Selling.of")(function* (address: string) {
  const sql = yield* SqlClient.SqlClient
  const { amounts } = yield* Spelling
  // A listing is one resource, even if its calls had different queries.
  const rows = yield* sql<Row>`select resource_id, case when resource_id is null then min(resource_url)
        else split_part(min(resource_url), '?', 1) end as resource_url, asset, count(*) as settlements,
      count(*) filter (where status = 'success') as settled,
      count(*) filter (where status = 'success' and organic) as organic,
      coalesce(sum(amount) filter (where status = 'success'), 0)::text as amount
    from (select * from analytics_settlements where status <> 'open' and pay_to = ${address}
      order by occurred_at desc, id desc limit ${overMax}) newest
    group by resource_id, case when resource_id is null then resource_url end, asset
    order by settled desc, settlements desc, resource_url`.unprepared
  if (rows.length === 0) return Option.none<typeof SellingWire.Type>()
  const sum = (of: (row: Row) => bigint) => Number(rows.reduce((total, row) => total + of(row), 0n))
  return Option.some({
    over: sum((row) => row.settlements),
    settled: sum((row) => row.settled),
    organic: sum((row) => row.organic),
    resources: rows
      .flatMap(({ resource_url, ...row }) => (resource_url === null ? [] : [{ ...row, resource_url }]))
      .slice(0, resourcesMax)
      .map((row) => ({
        resource_id: row.resource_id?.toString() ?? null,
        resource_url: row.resource_url,
        ...amounts.name(row.asset),
        settlements: Number(row.settlements),
        settled: Number(row.settled),
        amount: row.amount
      }))
  } satisfies typeof SellingWire.Type)
})

export class Selling extends Context.Service<
  Selling,
  {
    /** None for an account that has never been paid. */
    readonly of: (address: string) => Effect.Effect<Option.Option<typeof SellingWire.Type>, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Selling") {
  static readonly layer = Layer.effect(
    Selling,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling>(), (services) =>
      Selling.of({ of: (address) => Effect.provideContext(selling(address), services) })
    )
  )
}
