// Counterparties of each payer and recipient, by the last day: a pair moves to the day of its newest settlement, so
// that an address's counterparties in a window that ends now are the sum of its days (S157, S158).
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { dayOf } from "./contributions.ts"
import type { SettlementFact } from "./SettlementFact.ts"

interface DailyPair {
  readonly payer: string
  readonly pay_to: string
  readonly day: string
}

/** For settlements that become visible; before their pairs are written. */
export const countPartners = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  shown: ReadonlyArray<SettlementFact>
) {
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
