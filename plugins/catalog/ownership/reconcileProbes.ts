// The actors that probe origins. Each turn leases a few resources that are due, asks, and decides; a lease that expires
// is taken by the next holder, and the late holder's answer is void. Separate actors serve listings with evidence, so
// that neither a flood of claims nor their slow origins delay a seller's new price. They never run on a payment's path.
import { Duration, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { ageMillis, trustedMillis } from "../../../kernel/time/trustedTime.ts"
import type { StoredBody } from "../store/ResourceWire.ts"
import type { Grade } from "../declaration/Grade.ts"
import type { ResourceType } from "../contract.ts"
import { Config } from "../Config.ts"
import { Changes } from "../store/Changes.ts"
import { makeIsFull } from "../store/FreeSpace.ts"
import { Origins } from "./Origins.ts"
import { Verdicts } from "./Verdicts.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { loosePath } from "../declaration/resourceUrl.ts"
import { originsMax } from "./OriginDocuments.ts"

// The paths in origins' documents. We keep them so that no other recipient's template resolves for them. A probe writes
// them when the documents' paths have changed. A path that has been absent for a month is deleted.

const pathsMax = 2_000
/** An index's entry holds no longer ones; a path of the longest URL may become longer by its normalization. */
const pathBytesMax = 2_048
const encoder = new TextEncoder()
/** Interval between two writes of an unchanged path. */
const againMillis = 86_400_000

const keepNamedPaths = (sql: SqlClient.SqlClient, isFull: Effect.Effect<boolean, SqlError.SqlError>) => {
  const written = new LruCache<string, { readonly text: string; readonly at: number }>({
    name: "named-paths",
    capacity: originsMax
  })
  return Effect.fnUntraced(function* (origin: string, named: ReadonlyArray<string>, now: Date) {
    const concrete = named.filter((resource) => !/[:*{[]/.test(resource.slice(origin.length)))
    const all = new Set(concrete.map((resource) => loosePath(resource.slice(origin.length))))
    const paths = [...all].filter((path) => encoder.encode(path).length <= pathBytesMax).slice(0, pathsMax)
    const text = paths.join("\n")
    const isWritten = (before: { readonly text: string; readonly at: number }) =>
      before.text === text && now.getTime() - before.at < againMillis
    if (paths.length === 0 || written.get(origin, isWritten) !== undefined || (yield* isFull)) return
    yield* sql`insert into catalog_named_paths (origin, path, at)
      select ${origin}, value, ${now} from jsonb_array_elements_text(${JSON.stringify(paths.toSorted())}::jsonb)
      on conflict (origin, path) do update set at = excluded.at`
    written.set(origin, { text, at: now.getTime() })
  })
}

/** Leases of one turn. */
const batchMax = 8
const concurrency = 4
const leaseSeconds = 60
/** Delay from a request for a probe to the turn that runs it. */
const gather = Duration.seconds(1)
/** Between two turns; doubled with each that finds nothing due. */
const restMin = Duration.seconds(2)
/** Maximum delay of requests from other replicas; an embedded database has a single process. */
const restMax = { server: Duration.seconds(16), embedded: Duration.seconds(64) }
export const restAfter = (
  rest: Duration.Duration,
  wasDue: boolean,
  kind: Database["Service"]["kind"]
): Duration.Duration => (wasDue ? restMin : Duration.min(restMax[kind], Duration.times(rest, 2)))
/** Delay of a probe that exceeded its origin's request limit. */
const laterSeconds = 60

interface DueRow {
  readonly id: bigint
  readonly fence: bigint
  readonly stands: boolean
  /** It is due because of a payment that cost its payer nothing. */
  readonly free: boolean
  readonly type: ResourceType
  readonly resource: string
  readonly tool_name: string
  readonly origin: string | null
  readonly declaration: StoredBody
  readonly grade: Grade
  /** HTTP methods that other recipients claim of a resource without evidence. */
  readonly claimed: ReadonlyArray<string>
}

/**
 * Leases due rows for a minute, unless another holder has leased them; the fence separates this holder from the next
 * one. The row is due again when the lease ends; an earlier due time means that a request arrived during the probe.
 */
export const leaseProbes = (sql: SqlClient.SqlClient, now: Date, hasEvidence: boolean) => {
  const until = new Date(now.getTime() + leaseSeconds * 1_000)
  return sql<DueRow>`with due as (
      update catalog_probes set fence = fence + 1, leased_until = ${until}, due_at = ${until}
      where resource_id in (
        select resource_id from catalog_probes
        where stands = ${hasEvidence} and due_at <= ${now} and (leased_until is null or leased_until < ${now})
        order by due_at limit ${batchMax} for update skip locked)
      returning resource_id, fence, stands, free)
    select r.id, due.fence, due.stands, due.free, r.type, r.resource, r.tool_name, r.origin, r.declaration, r.grade,
      array(select distinct c.declaration->'operation'->>'method' from catalog_claims c
        where c.resource_id = r.id and r.standing_at is null) as claimed
    from due join catalog_resources r on r.id = due.resource_id`
}

/** An actor that polls for due probes, soon after a request and less often while it finds none. */
const startActor = Effect.fnUntraced(function* <E>(id: string, askDue: Effect.Effect<boolean, E>) {
  const { onAsked } = yield* Changes
  const { kind } = yield* Database
  let rest: Duration.Duration = restMin
  const turn = Effect.map(askDue, (wasDue) => {
    rest = restAfter(rest, wasDue, kind)
  })
  const actor = yield* reconciler({ id, every: Effect.sync(() => rest), gather, turn })
  // A turn follows soon, and others after it should the transaction that asked for it end late.
  const begin = Effect.sync(() => {
    rest = restMin
  })
  yield* onAsked(Effect.andThen(begin, actor.wake))
})

/** Probes for as long as the Scope lives. */
export const startProbes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { ask } = yield* Origins
  const { apply } = yield* Verdicts
  const { moved } = yield* Changes
  const { freeBytesMax } = yield* Config
  const keepNamed = keepNamedPaths(sql, yield* makeIsFull(sql, freeBytesMax))

  const validate = Effect.fnUntraced(function* (row: DueRow) {
    const identity = {
      type: row.type,
      resource: row.resource,
      toolName: row.tool_name,
      origin: row.origin ?? undefined
    }
    const asked = yield* ask({
      identity,
      methods: row.declaration.operations.map(({ method }) => method),
      claimedMethods: row.claimed,
      isDynamic: row.declaration.about.routeTemplate !== undefined,
      share: !row.stands ? "claimed" : row.free ? "free" : "own"
    })
    const now = new Date(yield* trustedMillis)
    if (asked === "later") {
      // A probe that the seller's own payment requested during the free one does not wait for it.
      const later = new Date(now.getTime() + laterSeconds * 1_000)
      yield* sql`update catalog_probes set leased_until = null,
          due_at = case when ${row.free} and not free and due_at < leased_until then due_at else ${later} end
        where resource_id = ${row.id} and fence = ${row.fence}`
    } else {
      yield* keepNamed(row.origin ?? "", asked.named ?? [], now)
      if (yield* apply(row.id, row.fence, asked, now, row)) yield* moved
    }
  })

  /** Whether anything was due. */
  const askDue = Effect.fnUntraced(function* (hasEvidence: boolean) {
    for (let isFirst = true; ; isFirst = false) {
      const due = yield* leaseProbes(sql, new Date(yield* ageMillis), hasEvidence)
      yield* Effect.forEach(
        due,
        (row) =>
          Effect.catch(validate(row), (error) => Effect.logWarning("an origin's statement could not be stored", error)),
        { concurrency, discard: true }
      )
      if (due.length < batchMax) return !isFirst || due.length > 0
    }
  })

  yield* startActor("probes", askDue(true))
  yield* startActor("probes-of-claims", askDue(false))
})
