// Answers "Why am I not listed?": every observation of one URL or one recipient, the decision with its public reasons,
// the time it took, and the current state of the listings with each change. Details for operators are left out. A
// recipient sees its own observations and the listings that pay it, and nothing that others declared.
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Grade, raisedBy } from "../declaration/Grade.ts"
import { matchesTemplate, spellResourceUrl } from "../declaration/resourceUrl.ts"
import type { ResourceState } from "../contract.ts"
import { isDead } from "../store/Resources.ts"
import { type StoredBody, resourceKey } from "../store/ResourceWire.ts"
import { dollar, fullAgeDays, fullRisk } from "../store/weighEvidence.ts"
import { cleanString } from "../declaration/cleanText.ts"

interface ObservationRow {
  readonly url: string
  readonly type: string | null
  readonly tool_name: string | null
  readonly pay_to: string
  readonly stage: string
  readonly decision: string
  readonly reason: string | null
  readonly first_at: Date
  readonly last_at: Date
  readonly times: bigint
  readonly lag_ms: number
}

interface ListingRow {
  readonly id: bigint
  readonly type: string
  readonly resource: string
  readonly tool_name: string
  readonly state: ResourceState
  readonly declaration: StoredBody
  readonly state_reason: string | null
  readonly verification: string
  readonly ownership: string
  readonly version: number
  readonly version_hash: string
  readonly grade: Grade
  readonly last_look_at: Date | null
  readonly probe_detail: string | null
  readonly has_evidence: boolean
  readonly first_seen_at: Date
  readonly last_seen_at: Date
}

interface WordsRow {
  readonly resource_id: bigint
  readonly grade: Grade
  readonly pay_to: string
  readonly version_hash: string
  readonly at: Date
}

interface DecisionRow {
  readonly resource_id: bigint
  readonly at: Date
  readonly by: string
  readonly move: string
  readonly from_state: string | null
  readonly to_state: string
  readonly reason: string
}

const listingsMax = 100
const decisionsMax = 500

const toObservation = (row: ObservationRow) => ({
  resource: row.url,
  ...(row.type === null ? {} : { type: row.type }),
  ...(row.tool_name === null || row.tool_name === "" ? {} : { toolName: row.tool_name }),
  payTo: row.pay_to,
  stage: row.stage,
  decision: row.decision,
  ...(row.reason === null ? {} : { reason: row.reason }),
  times: row.times.toString(),
  firstAt: row.first_at.toISOString(),
  lastAt: row.last_at.toISOString(),
  lagMs: row.lag_ms
})

const toDecision = ({ at, by, from_state, move, reason, to_state }: DecisionRow) => ({
  at: at.toISOString(),
  by: by.split(":", 1)[0],
  move,
  ...(from_state === null ? {} : { from: from_state }),
  to: to_state,
  reason
})

/**
 * How much a rival must spend to rank above this listing for a query that it answers, as measured by `npm run relevance
 * -- cost-to-fake`.
 */
const costToFake = (hasEvidence: boolean): string =>
  hasEvidence
    ? `faking this rank costs about ${fullRisk / dollar} USDC or ${fullAgeDays} days`
    : "faking this rank costs about 0 USDC: no origin, recipient's key or settled payment confirms it"

const toListing = (row: ListingRow) => ({
  type: row.type,
  resource: row.resource,
  ...(row.tool_name === "" ? {} : { toolName: row.tool_name }),
  status: row.state,
  ...(row.state_reason === null ? {} : { reason: row.state_reason }),
  verification: row.verification,
  ownership: row.ownership,
  grade: row.grade,
  raisedBy: raisedBy({
    grade: row.grade,
    type: row.type as "http" | "mcp",
    methods: row.declaration.operations.map(({ method }) => method),
    isDynamic: row.declaration.about.routeTemplate !== undefined,
    isDead: isDead(row)
  }),
  costToFake: costToFake(row.has_evidence),
  version: row.version,
  versionHash: row.version_hash,
  firstSeenAt: row.first_seen_at.toISOString(),
  lastSeenAt: row.last_seen_at.toISOString(),
  ...(row.last_look_at === null ? {} : { lastLookAt: row.last_look_at.toISOString() }),
  ...(row.probe_detail === null ? {} : { lastLook: row.probe_detail })
})

/** The newest words of each grade; the highest are shown. */
const toWords = ({ at, grade, pay_to, version_hash }: WordsRow) => ({
  grade,
  payTo: pay_to,
  versionHash: version_hash,
  at: at.toISOString()
})

interface Paging {
  readonly limit: number
  readonly offset: number
}

interface ExplainRequest extends Paging {
  readonly url: string
  /** With a principal: observations of the recipients that signed for it, since anyone may pay to any recipient. */
  readonly only?: string | undefined
}

/** A page of observations, newest first. */
const observationsWhere = Effect.fnUntraced(function* (which: Statement.Fragment, { limit, offset }: Paging) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ObservationRow>`select url, type, tool_name, pay_to, stage, decision, reason, first_at,
      last_at, times, lag_ms
    from catalog_observations where ${which} order by last_at desc, id desc limit ${limit} offset ${offset}`
  const [count] = yield* sql<{ total: bigint }>`select count(*) as total from catalog_observations where ${which}`
  return { items: rows.map(toObservation), pagination: { limit, offset, total: Number(count?.total ?? 0n) } }
})

/** Listings, each with its words and its history. */
const listingsWhere = Effect.fnUntraced(function* (which: Statement.Fragment) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ListingRow>`select r.id, r.type, r.resource, r.tool_name, r.state, r.state_reason,
      r.declaration, r.verification, r.ownership, r.version, r.version_hash, r.grade, r.last_look_at,
      p.detail as probe_detail, r.standing_at is not null as has_evidence,
      r.first_seen_at, a.last_seen_at
    from catalog_resources r join catalog_activity a on a.resource_id = r.id
    left join catalog_probes p on p.resource_id = r.id
    where ${which} order by r.id limit ${listingsMax}`
  const ids = rows.map(({ id }) => id)
  const decisions =
    yield* sql<DecisionRow>`select resource_id, at, by, move, from_state, to_state, reason from catalog_decisions
    where resource_id = any(${ids}) order by id desc limit ${decisionsMax}`
  const words = yield* sql<WordsRow>`select resource_id, grade, pay_to, version_hash, at from catalog_words
    where resource_id = any(${ids}) order by at desc`
  return rows.map((row) => ({
    ...toListing(row),
    words: words.filter(({ resource_id }) => resource_id === row.id).map(toWords),
    decisions: decisions.filter(({ resource_id }) => resource_id === row.id).map(toDecision)
  }))
})

export const explainListing = Effect.fn("Catalog.explain")(function* (
  { limit, offset, only, url }: ExplainRequest,
  crypto: Crypto["Service"]
) {
  const sql = yield* SqlClient.SqlClient
  const spelled = spellResourceUrl(/^mcp:/i.test(url) ? "mcp" : "http", url)
  const templates =
    spelled?.origin === undefined
      ? []
      : yield* sql<{ resource_key: string; template: string }>`
    select resource_key, declaration->'about'->>'routeTemplate' as template from catalog_resources
    where origin = ${spelled.origin} and declaration->'about' ? 'routeTemplate' limit 2000`
  const keys =
    spelled === undefined
      ? []
      : [
          resourceKey(crypto, spelled.resource),
          ...templates
            .filter(({ template }) => matchesTemplate(template, spelled.resource.slice(spelled.origin!.length)))
            .map(({ resource_key }) => resource_key)
        ]
  const named = spelled === undefined ? sql`url = ${cleanString(url)}` : sql`resource_key = any(${keys})`
  const about =
    only === undefined
      ? named
      : sql`${named} and pay_to in (select pay_to from catalog_recipients where principal = ${only})`
  return {
    url: spelled?.resource ?? cleanString(url),
    listings: yield* listingsWhere(sql`r.resource_key = any(${keys})`),
    ...(yield* observationsWhere(about, { limit, offset }))
  }
})

/** The same for a recipient: the listings that pay it now, and the observations of payments to it. */
export const explainAccount = Effect.fn("Catalog.explainAccount")(function* (payTo: string, paging: Paging) {
  const sql = yield* SqlClient.SqlClient
  const paid = sql`r.id in (select resource_id from catalog_options where pay_to = ${payTo} and retired_at is null
    order by resource_id desc limit ${listingsMax})`
  const listings = yield* listingsWhere(paid)
  return {
    account: payTo,
    listings: listings.map(({ words, ...listing }) => ({
      ...listing,
      words: words.filter((one) => one.payTo === payTo)
    })),
    ...(yield* observationsWhere(sql`pay_to = ${payTo}`, paging))
  }
})
