// The actor that asks origins. Each turn leases a few resources that are due, asks, and decides; a lease that its
// holder does not return in time is taken by the next one, and the late holder's word is void. Listings that somebody
// stands for have half of every turn to themselves, so that a flood of claims delays no seller's new price. It never
// runs on a payment's path.
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/Actor.ts"
import type { Kept } from "../store/ResourceWire.ts"
import type { ResourceType } from "../contract.ts"
import { Changes } from "../store/Changes.ts"
import { Origins } from "./Origins.ts"
import { Verdicts } from "./Verdicts.ts"

/** Of each queue, in one turn. */
const batchMax = 8
const atOnce = 4
const leaseSeconds = 60

interface DueRow {
  readonly id: bigint
  readonly fence: bigint
  /** Somebody stands for it. */
  readonly stands: boolean
  readonly type: ResourceType
  readonly resource: string
  readonly tool_name: string
  readonly origin: string | null
  readonly declaration: Kept
}

/** Takes what is due and nobody else asks about, for a minute; the fence tells this holder from the next one. */
export const leaseProbes = (sql: SqlClient.SqlClient, now: Date) => {
  const queue = (stands: boolean) => sql`select resource_id from catalog_probes
    where stands = ${stands} and due_at <= ${now} and (leased_until is null or leased_until < ${now})
    order by due_at limit ${batchMax} for update skip locked`
  return sql<DueRow>`with stood as (${queue(true)}), claimed as (${queue(false)}), due as (
      update catalog_probes set fence = fence + 1, leased_until = ${new Date(now.getTime() + leaseSeconds * 1_000)}
      where resource_id in (select resource_id from stood union all select resource_id from claimed)
      returning resource_id, fence, stands)
    select r.id, due.fence, due.stands, r.type, r.resource, r.tool_name, r.origin, r.declaration
    from due join catalog_resources r on r.id = due.resource_id order by due.stands desc`
}

/** Asks for as long as the Scope lives. */
export const startProbes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { ask } = yield* Origins
  const { apply } = yield* Verdicts
  const { moved } = yield* Changes

  const judge = Effect.fnUntraced(function* (row: DueRow) {
    const identity = {
      type: row.type,
      resource: row.resource,
      toolName: row.tool_name,
      origin: row.origin ?? undefined
    }
    const asked = yield* ask({
      identity,
      methods: row.declaration.operations.map(({ method }) => method),
      isDynamic: row.declaration.about.routeTemplate !== undefined,
      stands: row.stands
    })
    const now = new Date(yield* Clock.currentTimeMillis)
    if (asked === "later") {
      yield* sql`update catalog_probes set leased_until = null, due_at = ${new Date(now.getTime() + 60_000)}
        where resource_id = ${row.id} and fence = ${row.fence}`
    } else if (yield* apply(row.id, row.fence, asked, now)) yield* moved
  })

  const turn = Effect.gen(function* () {
    while (true) {
      const due = yield* leaseProbes(sql, new Date(yield* Clock.currentTimeMillis))
      yield* Effect.forEach(
        due,
        (row) => Effect.catch(judge(row), (error) => Effect.logWarning("an origin's word could not be stored", error)),
        { concurrency: atOnce, discard: true }
      )
      if (due.length < batchMax) return
    }
  })

  yield* reconciler({ id: "probes", every: "2 seconds", turn })
})
