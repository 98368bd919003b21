// Applies a probe of an origin in one transaction: to the resource's owner, its listed text, and whether it is alive.
// The origin's own words replace any others. A resource goes stale if no endpoint asks to be paid, twice in a row,
// until its origin answers again. Dead probes belong to the operation and the words that were probed, and a settled
// payment refutes them for a day. The fence of the probe's lease is checked in the same
// transaction, so an answer that comes too late changes nothing.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { type CatalogValues, Config, documentBytesMax } from "../Config.ts"
import { declaredText, type DeclaredText } from "../store/mergeDeclaration.ts"
import { lockResource, moveState, type ResourceRow, publishChange } from "../store/Resources.ts"
import { Versions } from "../store/Versions.ts"
import { decideOwnership, type Verdict } from "./decideOwnership.ts"
import { type ClaimRow, Execution } from "./Execution.ts"
import type { Life, OriginAnswer } from "./Origins.ts"

/** Consecutive probes that found no endpoint that asks to be paid, after which a resource is stale. */
const deadProbesMax = 2

/** Listings that one look settles by their domain's records. */
const domainListingsMax = 100

interface Probe {
  readonly attempts: number
  readonly dead: number
  readonly goneAt: Date | null
  readonly soldAt: Date | null
}

const isDead = (life: Life): boolean => life !== "alive" && life !== "unknown"

/** Time between two probes of a resource whose owner is proven. */
const provenAgainSeconds = 86_400

/** A resource that was just sold is probed again after this time, so that a seller that ends is noticed in minutes. */
const soldAgainSeconds = 300

/**
 * Time until the next probe: short while no owner is proven, then with back-off. After a sale the time doubles from
 * probe to probe.
 */
const waitSeconds = (
  attempts: number,
  isProven: boolean,
  soldSecondsAgo: number,
  { probePauseSeconds }: CatalogValues
): number => {
  const again = Math.min(provenAgainSeconds, Math.max(soldAgainSeconds, soldSecondsAgo))
  return isProven ? again : Math.min(again, Math.max(probePauseSeconds, [1, 600, 3_600][attempts] ?? again))
}

/**
 * When the next probe is due. A request that arrived during this probe may know of something that the probe did not
 * see.
 */
const nextProbe = (sql: SqlClient.SqlClient, now: Date, seconds: number, pauseSeconds: number) => {
  const after = (wait: number) => new Date(now.getTime() + wait * 1_000)
  return sql`free = free and coalesce(due_at < leased_until, false),
    due_at = case when due_at < leased_until then greatest(due_at, ${after(pauseSeconds)})
      else ${after(seconds)} end`
}

/** The subject of a probe: the listed operations, and the source of the words that name them. */
const subjectOf = ({ declaration, grade }: Pick<ResourceRow, "declaration" | "grade">): string =>
  [grade, ...declaration.operations.map(({ method }) => method)].join(" ")

export type Probed = Pick<ResourceRow, "type" | "resource" | "tool_name" | "declaration" | "grade">

const identityOf = ({ resource, tool_name, type }: Probed): string => [type, resource, tool_name].join(" ")

const claimsOf = (sql: SqlClient.SqlClient, id: bigint) =>
  sql<ClaimRow>`select pay_to, declaration from catalog_claims where resource_id = ${id} order by last_seen_at desc`

const isHeld = ({ state, state_reason }: ResourceRow): boolean =>
  state === "removed" || (state === "quarantined" && state_reason === "operator")

const verdictOn = (row: ResourceRow, claims: ReadonlyArray<ClaimRow>, word: OriginAnswer["word"]): Verdict =>
  isHeld(row)
    ? { _tag: "Nothing" }
    : decideOwnership(
        {
          state: row.state,
          reason: row.state_reason,
          ownership: row.ownership,
          payTos: row.pay_tos,
          claimants: claims.map(({ pay_to }) => pay_to)
        },
        word
      )

/** The origin's words in the listing's own spelling. */
const wordsIn = (row: ResourceRow, { declarations }: OriginAnswer, config: CatalogValues): DeclaredText | undefined => {
  const words = declaredText(declarations, "origin", documentBytesMax(config))
  const { resource, tool_name: toolName, type } = row
  return words === undefined
    ? undefined
    : { ...words, identity: { type, resource, toolName, origin: row.origin ?? undefined } }
}

export class Verdicts extends Context.Service<
  Verdicts,
  {
    /** True when discovery has changed. */
    readonly apply: (
      id: bigint,
      fence: bigint,
      asked: OriginAnswer,
      now: Date,
      /** The resource's state when it was probed; default: its current row. */
      probed?: Probed
    ) => Effect.Effect<boolean, SqlError.SqlError>
    /** Applies the recipients that the origin's domain names. True when discovery has changed. */
    readonly applyDomain: (
      origin: string,
      payTos: ReadonlyArray<string>,
      now: Date
    ) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Verdicts") {
  static readonly layer = Layer.effect(
    Verdicts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config
      const { carryOut } = yield* Execution
      const { count, list, take, weigh } = yield* aftermath

      const apply = (id: bigint, fence: bigint, given: OriginAnswer, now: Date, probed?: Probed) =>
        inTransaction(
          Effect.gen(function* () {
            const [probe] = yield* sql<Probe>`select attempts, dead, gone_at as "goneAt", (select last_settled_at
                from catalog_activity a where a.resource_id = p.resource_id) as "soldAt"
              from catalog_probes p where resource_id = ${id} and fence = ${fence} for update`
            const row = yield* lockResource(sql, { id })
            if (probe === undefined || row === undefined) return false
            // A database that lost its last commits reuses ids and fences, for other resources.
            if (probed !== undefined && identityOf(probed) !== identityOf(row)) return false
            // The words or operations changed during the probe, so a dead result does not apply to the new ones.
            const isOutdated = probed !== undefined && subjectOf(probed) !== subjectOf(row)
            const asked = isOutdated && isDead(given.life) ? { ...given, life: "unknown" as const } : given
            const claims = yield* claimsOf(sql, id)
            const verdict = verdictOn(row, claims, asked.word)
            const words = isHeld(row) || verdict._tag === "Removed" ? undefined : wordsIn(row, asked, config)
            yield* carryOut(row, verdict, { claims, words }, now)
            const changed = words === undefined ? false : yield* list(row, words, now)
            const leadsInside = yield* take(row, asked, now)
            const dead = isDead(asked.life) ? probe.dead + 1 : asked.life === "alive" ? 0 : probe.dead
            const mayMove = (verdict._tag === "Nothing" || verdict._tag === "Proven") && !leadsInside
            yield* count(row, asked.life, now)
            const moved = mayMove && (yield* weigh(row, asked.life, dead, now))
            const isProven = row.ownership === "proven" || verdict._tag !== "Nothing"
            const isUncertain = dead > 0 && dead < deadProbesMax
            const soldSecondsAgo = (now.getTime() - (probe.soldAt?.getTime() ?? 0)) / 1_000
            const seconds = isUncertain
              ? config.probePauseSeconds
              : waitSeconds(probe.attempts, isProven, soldSecondsAgo, config)
            const goneAt = asked.life === "origin_gone" ? now : asked.life === "unknown" ? probe.goneAt : null
            yield* sql`update catalog_probes set asked_at = ${now}, leased_until = null, dead = ${dead},
              gone_at = ${goneAt},
              attempts = ${isProven ? 0 : probe.attempts + 1}, outcome = ${verdict._tag}, detail = ${asked.detail},
              stands = (select standing_at is not null from catalog_resources where id = ${id}),
              ${nextProbe(sql, now, seconds, config.probePauseSeconds)} where resource_id = ${id}`
            return verdict._tag !== "Nothing" || leadsInside || changed || moved
          })
        ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

      return Verdicts.of({ apply, applyDomain: yield* domainVerdicts })
    })
  )
}

/**
 * DNS names recipients without a signature or a certificate. So it proves a provisional listing's owner, and a claimant
 * displaces the owner only after a probe in which the origin named no recipient. It contradicts no listing, and changes
 * none that is proven.
 */
const domainVerdicts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { carryOut } = yield* Execution

  const applyTo = Effect.fnUntraced(function* (id: bigint, payTos: ReadonlyArray<string>, now: Date) {
    const row = yield* lockResource(sql, { id })
    if (row === undefined || row.ownership === "proven") return false
    const claims = yield* claimsOf(sql, id)
    const verdict = verdictOn(row, claims, { payTos, delisted: false })
    if (verdict._tag !== "Proven" && verdict._tag !== "Displaced") return false
    yield* carryOut(row, verdict, { claims, words: undefined }, now)
    return true
  })

  return Effect.fnUntraced(
    function* (origin: string, payTos: ReadonlyArray<string>, now: Date) {
      if (payTos.length === 0) return false
      const rows = yield* sql<{ id: bigint }>`select id from catalog_resources r
      where origin = ${origin} and ownership = 'provisional' and state <> 'removed' and (pay_tos && ${payTos}::text[]
        or exists (select 1 from catalog_claims c join catalog_probes p using (resource_id)
          where c.resource_id = r.id and c.pay_to = any(${payTos}::text[]) and p.asked_at is not null))
      order by standing_at nulls last, id limit ${domainListingsMax}`
      const changed = yield* Effect.forEach(rows, ({ id }) => inTransaction(applyTo(id, payTos, now)))
      return changed.includes(true)
    },
    Effect.provideService(SqlClient.SqlClient, sql)
  )
})

/** Further effects of a probe, in the same transaction as its verdict; each is true if discovery shows a change. */
const aftermath = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const facts = yield* Facts
  const config = yield* Config
  const versions = yield* Versions

  /** The origin's words become the newest version, when they differ. */
  const list = Effect.fnUntraced(function* (row: ResourceRow, words: DeclaredText, now: Date) {
    if (versions.bodyOf(words).hash === row.version_hash) {
      if (row.grade !== "origin") yield* versions.keep(row.id, words, now)
      return row.grade !== "origin"
    }
    yield* versions.apply(row, words, now)
    yield* publishChange(facts, row.id, "version")
    return true
  })

  /**
   * If the origin's name resolves to a private address and the settings do not allow that, the listing is quarantined.
   */
  const take = Effect.fnUntraced(function* (row: ResourceRow, { detail, isLocal }: OriginAnswer, now: Date) {
    if (!isLocal || config.allowLocalOrigins || (row.state !== "active" && row.state !== "stale")) return false
    const move = { by: "facilitator", move: "quarantined", to: "quarantined", reason: "local_origin" } as const
    yield* moveState(sql, facts, row.id, now, { ...move, from: row.state, detail })
    return true
  })

  const count = Effect.fnUntraced(function* (row: ResourceRow, life: Life, now: Date) {
    if (life === "unknown") return
    const alive = life === "alive" ? 1 : 0
    const day = now.toISOString().slice(0, 10)
    yield* sql`insert into catalog_looks (resource_id, day, looks, alive) values (${row.id}, ${day}::date, 1, ${alive})
      on conflict (resource_id, day) do update set looks = catalog_looks.looks + 1,
        alive = catalog_looks.alive + excluded.alive`
    yield* sql`update catalog_resources r set last_look_at = ${now}, uptime = (
        select sum(l.alive)::real / sum(l.looks) from catalog_looks l
        where l.resource_id = r.id and l.day > ${day}::date - 30)
      where r.id = ${row.id}`
  })

  /** A payment that counts was settled for it lately: the paid seller has served it. */
  const wasSold = Effect.fnUntraced(function* ({ id }: ResourceRow, now: Date) {
    const since = new Date(now.getTime() - provenAgainSeconds * 1_000)
    const sales = yield* sql`select 1 from catalog_sales where resource_id = ${id} and counts and at > ${since} limit 1`
    return sales.length > 0
  })

  /** Changes the state of a resource that died or is alive again. */
  const weigh = Effect.fnUntraced(function* (row: ResourceRow, life: Life, dead: number, now: Date) {
    const isStale = row.state === "stale"
    // A listing that went stale for lack of payments stays stale, however healthy its origin is.
    if (life === "alive" && isStale && row.state_reason !== "not_seen") {
      const move = { by: "origin", move: "returned", from: "stale", to: "active", reason: "origin_answers" } as const
      yield* moveState(sql, facts, row.id, now, move)
      return true
    }
    if (
      !isDead(life) ||
      dead < deadProbesMax ||
      (row.state !== "active" && !(isStale && row.state_reason === "not_seen"))
    )
      return false
    if (row.grade !== "origin" && (yield* wasSold(row, now))) return false
    const gone = { by: "facilitator", move: "went_stale", from: row.state, to: "stale", reason: life } as const
    yield* moveState(sql, facts, row.id, now, gone)
    return true
  })

  return { count, list, take, weigh }
})
