// Adds changes to the rollups, in the caller's transaction. The sums follow from the changes. Distinct members need a
// read of the table: members that are new in an hour or day, and members with a later last day. The caller is the only
// writer, and calls this before it writes the settlements themselves (S147, S151, S157).
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Change, type Delta, deltasOf, dayOf, type Rollup, startOf } from "./contributions.ts"
import { countPartners } from "./countPartners.ts"
import { Pseudonyms } from "./Pseudonyms.ts"
import { rank } from "./Rankings.ts"
import type { SettlementFact } from "./SettlementFact.ts"

const rowsOf = (deltas: ReadonlyArray<Delta>) =>
  JSON.stringify(
    deltas.map(({ firstAt, key, lastAt, lists, sums }) => ({
      ...key,
      ...Object.fromEntries(Object.entries(lists).map(([list, words]) => [list, [...words].sort()])),
      ...Object.fromEntries(Object.entries(sums).map(([field, sum]) => [field, sum.toString()])),
      first_at: firstAt,
      last_at: lastAt
    }))
  )

type MemberKind = "buyer" | "seller" | "facilitator" | "network" | "resource"

/** Participants of a visible settlement. */
const membersOf = (known: SettlementFact): ReadonlyArray<readonly [MemberKind, string]> => [
  ["buyer", known.payer],
  ["seller", known.payTo],
  ["facilitator", known.facilitatorId],
  ["network", known.network],
  ...(known.resourceId === undefined ? [] : [["resource", String(known.resourceId)] as const])
]

const isShown = (known: SettlementFact | undefined): boolean => known !== undefined && known.status !== "open"

type Sql = SqlClient.SqlClient
type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

const writeTotals = (sql: Sql, rows: string): WriteEffect =>
  sql`insert into analytics_totals as t (width, starts_at, network, scheme, asset, status, transactions, amount,
      fee_stroops, organic_transactions, organic_amount)
    select width, starts_at, network, scheme, asset, status, transactions, amount, fee_stroops, organic_transactions,
      organic_amount
    from jsonb_to_recordset(${rows}::jsonb) as r (width text, starts_at timestamptz, network text, scheme text,
      asset text, status text, transactions bigint, amount numeric, fee_stroops numeric, organic_transactions bigint,
      organic_amount numeric)
    on conflict (width, starts_at, network, scheme, asset, status) do update set
      transactions = t.transactions + excluded.transactions, amount = t.amount + excluded.amount,
      fee_stroops = t.fee_stroops + excluded.fee_stroops,
      organic_transactions = t.organic_transactions + excluded.organic_transactions,
      organic_amount = t.organic_amount + excluded.organic_amount`

/** Merges new entries into a row's list. */
const unionList = (sql: Sql, list: string) =>
  sql.literal(`${list} = case when excluded.${list} <@ t.${list} then t.${list}
    else array(select unnest(t.${list}) union select unnest(excluded.${list}) order by 1) end`)

const writeStandings = (sql: Sql, rows: string): WriteEffect =>
  sql`insert into analytics_standings as t (role, day, address, asset, networks, schemes, facilitators, transactions,
      successful, failed, amount, first_at, last_at)
    select role, day, address, asset, networks, schemes, facilitators, transactions, successful, failed, amount,
      first_at, last_at
    from jsonb_to_recordset(${rows}::jsonb) as r (role text, day date, address text, asset text, networks text[],
      schemes text[], facilitators text[], transactions bigint, successful bigint, failed bigint, amount numeric,
      first_at timestamptz, last_at timestamptz)
    on conflict (role, day, address, asset) do update set transactions = t.transactions + excluded.transactions,
      successful = t.successful + excluded.successful, failed = t.failed + excluded.failed,
      amount = t.amount + excluded.amount,
      ${unionList(sql, "networks")}, ${unionList(sql, "schemes")}, ${unionList(sql, "facilitators")},
      first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at)`

const writePairs = (sql: Sql, rows: string): WriteEffect =>
  sql`insert into analytics_pairs as t (payer, pay_to, asset, transactions, successful, amount, first_at, last_at)
    select payer, pay_to, asset, transactions, successful, amount, first_at, last_at
    from jsonb_to_recordset(${rows}::jsonb) as r (payer text, pay_to text, asset text, transactions bigint,
      successful bigint, amount numeric, first_at timestamptz, last_at timestamptz)
    on conflict (payer, pay_to, asset) do update set transactions = t.transactions + excluded.transactions,
      successful = t.successful + excluded.successful, amount = t.amount + excluded.amount,
      first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at)`

const writeResources = (sql: Sql, rows: string): WriteEffect =>
  sql`insert into analytics_resources as t (resource_id, origin, asset, transactions, successful, amount, first_at,
      last_at)
    select resource_id, origin, asset, transactions, successful, amount, first_at, last_at
    from jsonb_to_recordset(${rows}::jsonb) as r (resource_id bigint, origin text, asset text, transactions bigint,
      successful bigint, amount numeric, first_at timestamptz, last_at timestamptz)
    on conflict (resource_id, asset) do update set transactions = t.transactions + excluded.transactions,
      successful = t.successful + excluded.successful, amount = t.amount + excluded.amount,
      first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at)`

const writeReasons = (sql: Sql, rows: string): WriteEffect =>
  sql`insert into analytics_reasons as t (day, reason, asset, status, transactions, fee_stroops)
    select day, reason, asset, status, transactions, fee_stroops
    from jsonb_to_recordset(${rows}::jsonb) as r (day date, reason text, asset text, status text, transactions bigint,
      fee_stroops numeric)
    on conflict (day, reason, asset, status) do update set transactions = t.transactions + excluded.transactions,
      fee_stroops = t.fee_stroops + excluded.fee_stroops`

const writers: Readonly<Record<Rollup, (sql: Sql, rows: string) => WriteEffect>> = {
  totals: writeTotals,
  standings: writeStandings,
  pairs: writePairs,
  resources: writeResources,
  reasons: writeReasons
}

/**
 * Counts members that are new in an hour or day. A settlement that becomes visible now is either missing in the table,
 * or open there.
 */
const attend = Effect.fnUntraced(function* (sql: Sql, shown: ReadonlyArray<SettlementFact>) {
  for (const [role, column, addressOf] of [
    ["buyer", "payer", ({ payer }: SettlementFact) => payer],
    ["seller", "pay_to", ({ payTo }: SettlementFact) => payTo]
  ] as const) {
    const seen = new Map<string, { readonly width: string; readonly starts_at: string; readonly address: string }>()
    for (const known of shown) {
      for (const width of ["hour", "day"] as const) {
        const row = { width, starts_at: startOf(width, known.occurredAt), address: addressOf(known) }
        seen.set(JSON.stringify(row), row)
      }
    }
    yield* sql`insert into analytics_attendance as t (width, starts_at, role, members)
      select width, starts_at, ${role}, count(*) from jsonb_to_recordset(${JSON.stringify([...seen.values()])}::jsonb)
        as r (width text, starts_at timestamptz, address text)
      where not exists (select 1 from analytics_settlements s where s.${sql.literal(column)} = r.address
        and s.status <> 'open' and s.occurred_at >= r.starts_at
        and s.occurred_at < r.starts_at + case r.width when 'hour' then interval '1 hour' else interval '24 hours' end)
      group by width, starts_at
      on conflict (width, starts_at, role) do update set members = t.members + excluded.members`.unprepared
  }
})

interface Member {
  readonly kind: MemberKind
  readonly name: string
  readonly pseudonym: string | null
  last_day: string
}

/** Moves the last days of members. */
const enrol = Effect.fnUntraced(function* (
  sql: Sql,
  pseudonymOf: (address: string) => string,
  shown: ReadonlyArray<SettlementFact>
) {
  const latest = new Map<string, Member>()
  for (const known of shown) {
    const day = dayOf(known.occurredAt)
    for (const [kind, name] of membersOf(known)) {
      const key = `${kind} ${name}`
      const member = latest.get(key)
      const pseudonym = kind === "buyer" || kind === "seller" ? pseudonymOf(name) : null
      if (member === undefined) latest.set(key, { kind, name, pseudonym, last_day: day })
      else if (day > member.last_day) member.last_day = day
    }
  }
  const rows = JSON.stringify([...latest.values()])
  yield* sql`with given as (
      select * from jsonb_to_recordset(${rows}::jsonb) as r (kind text, name text, pseudonym text, last_day date)
    ), moved as (
      select g.kind, g.name, g.pseudonym, g.last_day, k.last_day as before from given g
      left join lateral (
        select m.last_day from analytics_members m where m.kind = g.kind and m.name = g.name) k on true
      where k.last_day is null or k.last_day < g.last_day
    ), kept as (
      insert into analytics_members (kind, name, pseudonym, last_day)
      select kind, name, pseudonym, last_day from moved
      on conflict (kind, name) do update set last_day = excluded.last_day
    )
    insert into analytics_member_days as t (kind, last_day, members)
    select kind, day, sum(change) from (
      select kind, last_day as day, 1 as change from moved
      union all select kind, before, -1 from moved where before is not null) c
    group by kind, day
    on conflict (kind, last_day) do update set members = t.members + excluded.members`.unprepared
})

export class Rollups extends Context.Service<
  Rollups,
  {
    /** In the caller's transaction, by the only writer, before the settlements themselves are written. */
    readonly write: (changes: ReadonlyArray<Change>) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Rollups") {
  static readonly layer = Layer.effect(
    Rollups,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pseudonymOf } = yield* Pseudonyms

      const write = Effect.fn("Rollups.write")(function* (changes: ReadonlyArray<Change>) {
        const fresh = ({ before }: Change) => !isShown(before)
        const shown = changes.filter((change) => fresh(change) && isShown(change.after)).map(({ after }) => after)
        if (shown.length > 0) yield* countPartners(sql, shown)
        for (const rollup of ["totals", "standings", "pairs", "resources", "reasons"] as const) {
          const deltas = deltasOf(rollup, changes)
          if (deltas.length === 0) continue
          yield* writers[rollup](sql, rowsOf(deltas))
          if (rollup === "standings") yield* rank(sql, rowsOf(deltas))
        }
        if (shown.length > 0) yield* attend(sql, shown)
        // A resource that is attributed later counts as a member from then on.
        const enrolled = changes
          .filter(({ after }) => isShown(after))
          .filter((change) => fresh(change) || change.before?.resourceId !== change.after.resourceId)
          .map(({ after }) => after)
        if (enrolled.length > 0) yield* enrol(sql, pseudonymOf, enrolled)
      })

      return Rollups.of({ write })
    })
  )
}
