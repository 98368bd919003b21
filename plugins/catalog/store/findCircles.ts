// Circles of payments: addresses that pay each other in a ring, so that each pays and is paid, never earn rank by it. A
// circle is a strongly connected component of the payments between recipients: each reaches each, so a payment between
// members can come back. Up to `membersMax` addresses that is enough. A larger component is a circle if more than half
// of the payers that count for its members are members; otherwise it is a market, and only pairs in it are circles
// (`storeSightings.ts` finds those on storing). We count payers and not money, because a large payment from outside
// that goes back elsewhere costs nothing and would hide any ring. A recipient that pays no one is in no component and
// is not followed, so that payments to hundreds of sellers cannot hide a ring. The input is the sales of listed
// resources; money that goes back outside of them is not seen here. Circles are found in the background, within the
// minute: each turn starts from some of the recipients that have paid lately, and takes no more than `stepsMax` steps
// in one statement.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { TrustedTime } from "../../../kernel/time/trustedTime.ts"
import { Changes } from "./Changes.ts"
import { fullRisk } from "./weighEvidence.ts"

const membersMax = 32
const startsMax = 64
const stepsMax = 50_000
/** The recent period of `catalog_activity`. */
const recentMillis = 30 * 86_400_000
/** The period that is read when the process starts, and the overlap with the last turn. */
const firstMillis = 86_400_000
const againMillis = 120_000

interface Turn {
  readonly now: Date
  readonly since: Date
  /** Payers behind this one, in their order. */
  readonly after: string
}

/** The payers that were examined, and how many resources lost rank. */
export const findCircles = Effect.fnUntraced(function* ({ after, now, since }: Turn) {
  const sql = yield* SqlClient.SqlClient
  const recently = new Date(now.getTime() - recentMillis)
  // Lock activity before changing payers, in the same order as a batch of sales.
  const [found] = yield* sql<{
    starts: number
    last: string | null
    lost: number
  }>`with recursive starts as materialized (
      select distinct s.payer as start from catalog_sales s where s.at > ${since} and s.payer > ${after}
        and exists (select 1 from catalog_options o where o.pay_to = s.payer and o.retired_at is null)
      order by 1 limit ${startsMax}
    ), walk (start, node) as (
      select start, start from starts
      union
      select w.start, t.pay_to from walk w join catalog_payers p on p.payer = w.node
        join catalog_resources r on r.id = p.resource_id cross join unnest(r.pay_tos) t (pay_to)
        where exists (select 1 from catalog_payers o where o.payer = t.pay_to)
    ), reached as materialized (
      select start, node from walk limit ${stepsMax}
    ), edges as materialized (
      select distinct w.start, w.node as payer, t.pay_to from reached w join catalog_payers p on p.payer = w.node
        join catalog_resources r on r.id = p.resource_id cross join unnest(r.pay_tos) t (pay_to)
        join reached o on o.start = w.start and o.node = t.pay_to
    ), back (start, node) as (
      select start, start from starts
      union
      select b.start, e.payer from back b join edges e on e.start = b.start and e.pay_to = b.node
    ), components as materialized (
      select distinct array_agg(node order by node) as members from back group by start having count(*) > 1
    ), circles as materialized (
      select c.members from components c where cardinality(c.members) <= ${membersMax} or (
        select 2 * count(m.node) > count(*) from catalog_resources r join catalog_payers p on p.resource_id = r.id
          left join unnest(c.members) m (node) on m.node = p.payer
        where r.pay_tos && c.members and (p.counts or p.circle) and p.payer <> all(r.pay_tos))
    ), touched as materialized (
      select distinct p.resource_id, p.payer from circles c cross join unnest(c.members) m (payer)
        join catalog_payers p on p.payer = m.payer join catalog_resources r on r.id = p.resource_id
        where not p.circle and r.pay_tos && c.members and p.payer <> all(r.pay_tos)
    ), locked as materialized (
      select array(select a.resource_id from catalog_activity a
        where a.resource_id in (select resource_id from touched) order by a.resource_id for update) as ids
    ), lost as (
      update catalog_payers p set counts = false, circle = true from touched t, catalog_payers o, locked l
        where p.resource_id = t.resource_id and p.payer = t.payer and o.resource_id = t.resource_id
          and o.payer = t.payer and p.resource_id = any(l.ids)
      returning p.resource_id, p.payer, p.last_settled_at > ${recently} as recent, o.counts as counted, o.risked
    ), unsold as (
      update catalog_sales s set counts = false from lost l
        where s.resource_id = l.resource_id and s.payer = l.payer and s.counts
      returning s.resource_id, s.at > ${recently} as recent
    ), each as (
      select l.resource_id, count(*) filter (where l.counted) as earned,
        count(*) filter (where l.counted and l.recent) as payers, sum(l.risked) as risked,
        (select count(*) from unsold u where u.resource_id = l.resource_id and u.recent) as sales
      from lost l group by l.resource_id
    ), lowered as (
      update catalog_activity a set earned = greatest(0, a.earned - e.earned),
        recent_payers = greatest(0, a.recent_payers - e.payers),
        recent_settled = greatest(0, a.recent_settled - e.sales), risked = greatest(0, a.risked - e.risked)
      from each e where a.resource_id = e.resource_id returning a.resource_id, a.earned, a.risked
    ), fallen as (
      update catalog_resources r set established_at = null, standing_at = case when l.earned > 0 then r.standing_at end
        from lowered l where r.id = l.resource_id and r.grade = 'claimed' and (l.earned = 0 or l.risked < ${fullRisk})
      returning 1
    )
    select (select count(*)::int from starts) as starts, (select max(start) from starts) as last,
      (select count(*)::int from lowered) + 0 * (select count(*)::int from fallen) as lost`
  return found!
})

/** Searches for circles for as long as the Scope lives. */
export const startCircles = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { moved } = yield* Changes
  const trusted = yield* TrustedTime
  /** End of the period that was read, if the time was sure: sales are dated by the same time. */
  let readTo: number | undefined

  const turn = Effect.gen(function* () {
    const { isSure, now } = yield* trusted
    // A clock that was set back moves the beginning back too.
    const since = readTo === undefined ? now - firstMillis : Math.min(readTo, now) - againMillis
    let after = ""
    while (true) {
      const { last, lost, starts } = yield* Effect.provideService(
        findCircles({ after, now: new Date(now), since: new Date(since) }),
        SqlClient.SqlClient,
        sql
      )
      if (lost > 0) yield* moved
      if (starts < startsMax || last === null) break
      after = last
    }
    if (isSure) readTo = now
  })

  yield* reconciler({ id: "circles", every: "1 minute", turn })
})
