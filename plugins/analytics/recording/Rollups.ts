// Adds changes to the rollups, in the caller's transaction. The sums follow from the changes. Distinct members need a
// read of the table: members that are new in an hour or day, and members with a later last day. The caller is the only
// writer, and calls this before it writes the settlements themselves (S147, S151, S157).
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Change, type Delta, deltasOf, dayOf, type Rollup, startOf } from "./contributions.ts"
import { Pseudonyms } from "./Pseudonyms.ts"
import { rank } from "./Rankings.ts"
import type { SettlementFact } from "./SettlementFact.ts"

/**
 * Counterparties of each payer and recipient, by the last day: a pair moves to the day of its newest settlement, so
 * that an address's counterparties in a window that ends now are the sum of its days (S157, S158).
 */
interface DailyPair {
  readonly payer: string
  readonly pay_to: string
  readonly day: string
}

/** For settlements that become visible; before their pairs are written. */
const countPartners = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, shown: ReadonlyArray<SettlementFact>) {
  const latest = new Map<string, DailyPair>()
  for (const { occurredAt, payTo, payer } of shown) {
    const [key, day] = [`${payer} ${payTo}`, dayOf(occurredAt)]
    if ((latest.get(key)?.day ?? "") < day) latest.set(key, { payer, pay_to: payTo, day })
  }
  yield* sql`with moved as (
      select g.payer, g.pay_to, g.day, k.before
      from jsonb_to_recordset(${JSON.stringify([...latest.values()])}::jsonb) as g (payer text, pay_to text, day date)
      cross join lateral (select (max(p.last_at) at time zone 'UTC')::date as before from analytics_pairs p
        where p.payer = g.payer and p.pay_to = g.pay_to) k
      where k.before is null or k.before < g.day
    )
    insert into analytics_partner_days as t (role, address, last_day, members)
    select r.role, r.address, c.day, sum(c.change) from moved m
    cross join lateral (values ('buyer', m.payer), ('seller', m.pay_to)) as r (role, address)
    cross join lateral (values (m.day, 1), (m.before, -1)) as c (day, change)
    where c.day is not null group by r.role, r.address, c.day
    on conflict (role, address, last_day) do update set members = t.members + excluded.members`.unprepared
})

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

/** A rollup's table: its primary key, other columns, sums and lists, with their types. */
interface RollupTable {
  readonly key: string
  readonly others?: string
  readonly sums: string
  readonly lists?: ReadonlyArray<string>
  /** Rows have the first and the last time. */
  readonly hasTimes: boolean
}

const counted = "transactions bigint, successful bigint, amount numeric"

const tables: Readonly<Record<Rollup, RollupTable>> = {
  totals: {
    key: "width text, starts_at timestamptz, network text, scheme text, asset text, status text",
    sums: `transactions bigint, amount numeric, fee_stroops numeric, organic_transactions bigint,
      organic_amount numeric`,
    hasTimes: false
  },
  standings: {
    key: "role text, day date, address text, asset text",
    sums: `${counted}, failed bigint`,
    lists: ["networks", "schemes", "facilitators"],
    hasTimes: true
  },
  pairs: { key: "payer text, pay_to text, asset text", sums: counted, hasTimes: true },
  resources: { key: "resource_id bigint, asset text", others: "origin text", sums: counted, hasTimes: true },
  reasons: {
    key: "day date, reason text, asset text, status text",
    sums: "transactions bigint, fee_stroops numeric",
    hasTimes: false
  }
}

const namesIn = (typed: string): ReadonlyArray<string> => typed.split(",").map((column) => column.trim().split(" ")[0]!)

/** Adds rows to a rollup: sums are added, lists united, times widened. */
const addTo = (sql: Sql, rollup: Rollup, rows: string): WriteEffect => {
  const { hasTimes, key, lists = [], others, sums } = tables[rollup]
  const typed = [
    key,
    ...(others === undefined ? [] : [others]),
    sums,
    ...lists.map((list) => `${list} text[]`),
    ...(hasTimes ? ["first_at timestamptz, last_at timestamptz"] : [])
  ].join(", ")
  const names = namesIn(typed).join(", ")
  const updates = [
    ...namesIn(sums).map((column) => `${column} = t.${column} + excluded.${column}`),
    ...lists.map(
      (list) => `${list} = case when excluded.${list} <@ t.${list} then t.${list}
        else array(select unnest(t.${list}) union select unnest(excluded.${list}) order by 1) end`
    ),
    ...(hasTimes
      ? ["first_at = least(t.first_at, excluded.first_at)", "last_at = greatest(t.last_at, excluded.last_at)"]
      : [])
  ].join(", ")
  return sql`insert into ${sql(`analytics_${rollup}`)} as t (${sql.literal(names)})
    select ${sql.literal(names)} from jsonb_to_recordset(${rows}::jsonb) as r (${sql.literal(typed)})
    on conflict (${sql.literal(namesIn(key).join(", "))}) do update set ${sql.literal(updates)}`
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
          yield* addTo(sql, rollup, rowsOf(deltas))
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
