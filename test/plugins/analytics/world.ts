// Analytics over a fresh database without a facilitator: tests write the journal, the real fact reader follows it, and
// the reports are called directly. The catalog's reads run over its own tables.
import { Duration, Effect, Layer, Option, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Schemes } from "../../../kernel/payment/Scheme.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Config } from "../../../plugins/analytics/Config.ts"
import { recording, reports } from "../../../plugins/analytics/plugin.ts"
import { Pseudonyms } from "../../../plugins/analytics/recording/Pseudonyms.ts"
import { Recorder } from "../../../plugins/analytics/recording/Recorder.ts"
import { Amounts, amountsOf } from "../../../plugins/analytics/reports/Amounts.ts"
import { readWindow } from "../../../plugins/analytics/reports/parameters.ts"
import { Find } from "../../../plugins/analytics/reports/Find.ts"
import { Participants } from "../../../plugins/analytics/reports/Participants.ts"
import { Pulse } from "../../../plugins/analytics/reports/Pulse.ts"
import { ResourceReports } from "../../../plugins/analytics/reports/ResourceReports.ts"
import { SettlementList } from "../../../plugins/analytics/reports/SettlementList.ts"
import { Totals } from "../../../plugins/analytics/reports/Totals.ts"
import { Transactions } from "../../../plugins/analytics/reports/Transactions.ts"
import * as CatalogReads from "../../../plugins/catalog/administration/Records.ts"
import { Catalog } from "../../../plugins/catalog/contract.ts"
import { resourceKey } from "../../../plugins/catalog/store/ResourceWire.ts"

export const owners = ["kernel", "catalog", "analytics"]

/** How long a caller waits in these tests. */
export const waitMillis = 25_000

export interface JournalFact {
  readonly type: string
  readonly subject: string
  readonly data: unknown
  readonly at?: Date
  readonly version?: number
}

export const windowOf = (days: number) => readWindow({ raw: () => String(days) }, Date.now(), 30)

const assets = new Map([["CUSDC", { contract: "CUSDC", symbol: "USDC", decimals: 7, paymentMax: 1n }]])

/** The plugin's own Layers; the catalog contributes its records and treats every resource as listed. */
const analytics = Layer.mergeAll(recording, reports).pipe(
  Layer.provide(
    Layer.mergeAll(
      Config.layer,
      Limits.layer,
      WireVocabulary.layer,
      Pseudonyms.layer,
      CatalogReads.layer,
      Layer.succeed(Amounts, amountsOf(assets)),
      Layer.mock(Catalog)({
        documents: (ids) => Effect.succeed(ids.map((id) => ({ id }) as never)),
        condition: () => {
          throw new Error("not asked for here")
        }
      })
    )
  ),
  Layer.provide(Settings.layerTest({ limits: { settle_timeout_ms: waitMillis } }, () => Option.none()))
)

/** Everything over the database in the context. */
export const makeWorld = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const facts = yield* Facts
  const recorder = yield* Recorder

  /** Appends to the journal, a transaction a chunk. */
  const report = Effect.fnUntraced(function* (reported: ReadonlyArray<JournalFact>, chunk = 50) {
    for (let from = 0; from < reported.length; from += chunk) {
      const rows = reported.slice(from, from + chunk).map(({ at, data, subject, type, version }) => ({
        type,
        subject,
        data,
        version: version ?? 1,
        at: at ?? new Date()
      }))
      yield* sql`insert into kernel_facts (at, type, version, subject, data)
        select at, type, version, subject, data from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as r (at timestamptz, type text, version integer, subject text, data jsonb)`
    }
  })

  /** Reads until nothing is left, then marks overdue settlements. */
  const follow = (batchMax: number): Effect.Effect<void, unknown> =>
    Effect.scoped(
      Effect.gen(function* () {
        const reader = yield* facts.consume({ consumer: "analytics", batchMax, handle: recorder.handle })
        for (;;) {
          yield* reader.wake
          // Only an existing cursor can have nothing left.
          const [left] = yield* sql<{
            left: bigint
          }>`select (select count(*) from kernel_facts f where coalesce(f.position > c.position, true)) as left
          from kernel_fact_cursors c where consumer = 'analytics'`
          if (left?.left === 0n) break
          yield* Effect.sleep("10 millis")
        }
        while ((yield* recorder.lapse) === 0) yield* Effect.yieldNow
      }).pipe(Effect.timeout(Duration.seconds(60))) as Effect.Effect<void, unknown, Scope.Scope>
    )

  /** A listed resource, with its recipient. */
  const list = (resource: string, payTo: string, type: "http" | "mcp" = "http", toolName = "") => {
    const origin = resource.startsWith("mcp:") ? null : new URL(resource).origin
    return Effect.map(
      sql<{ id: bigint }>`with listed as (
        insert into catalog_resources (key, resource_key, type, resource, tool_name, origin, state, state_changed_at,
          verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
        values (${`${type} ${resource} ${toolName}`}, ${resourceKey(crypto, resource)}, ${type}, ${resource},
          ${toolName}, ${origin}, 'active', now(), 'payment_observed', ${[payTo]}, 1, 'h',
          '{"about":{},"operations":[],"sentKey":"catalog","extensions":["catalog"]}'::jsonb, ${["catalog"]}, '{}',
          now(), now()) returning id
      ), active as (insert into catalog_activity (resource_id, last_seen_at) select id, now() from listed)
      select id from listed`,
      ([row]) => row!.id
    )
  }

  /** A settlement as the kernel keeps it, with its payment identifier. */
  const identify = (identifier: string, hash: string) =>
    sql`insert into kernel_settlements (id, network, scheme, authorization_key, authorization_expires_ledger,
        fingerprint, principal, identifier, payer, pay_to, asset, amount_max, amount, inner_hash, sponsor, channel,
        channel_sequence, resource_fee_stroops, recorded_ledger, deadline_at, budget_day, budget_stroops,
        budget_shard, budget_keyed, state)
      values (gen_random_uuid(), 'ledger:testnet', 'exact', ${hash}, 2000, ${hash}, 'key:shop', ${identifier}, 'GPAYER',
        'GSHOP', 'CUSDC', 1, 1, ${hash}, 'GSPONSOR', 'GCHANNEL', 1, 1, 1000, now(), now()::date, 1, 0, false,
        'settled')`

  const empty = Effect.gen(function* () {
    yield* sql`delete from kernel_settlements`
    yield* sql`truncate kernel_facts, kernel_fact_cursors, catalog_resources restart identity cascade`
    for (const table of [
      "settlements",
      "totals",
      "attendance",
      "members",
      "member_days",
      "standings",
      "rankings",
      "pairs",
      "partner_days",
      "resources",
      "reasons",
      "verifications"
    ])
      yield* sql`delete from ${sql(`analytics_${table}`)}`
    yield* sql`delete from analytics_ranking_windows where since <> '-infinity'`
  })

  return {
    sql,
    facts,
    recorder,
    publish: report,
    follow,
    list,
    identify,
    empty,
    totals: yield* Totals,
    transactions: yield* Transactions,
    participants: yield* Participants,
    resources: yield* ResourceReports,
    settlements: yield* SettlementList,
    found: yield* Find,
    pulse: yield* Pulse
  }
}).pipe(Effect.provide(analytics, { local: true }))

export type World = Effect.Success<typeof makeWorld>

export const worldServices = <A, E, R>(database: Layer.Layer<A, E, R>) =>
  Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Layer.merge(Supervisor.layer, Schemes.layer)))
