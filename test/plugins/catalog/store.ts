// The catalog's write path over a database, without a facilitator: declarations in the form of payments, probes in the
// form of origins' answers, and the resulting tables. Uses a test clock.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { AccountSignatures } from "../../../kernel/accounts/AccountSignatures.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import type { Declaration } from "../../../plugins/catalog/declaration/Declaration.ts"
import { Challenges } from "../../../plugins/catalog/ownership/Challenges.ts"
import { Hints } from "../../../plugins/catalog/ownership/Hints.ts"
import type { OriginAnswer } from "../../../plugins/catalog/ownership/Origins.ts"
import { Recipients } from "../../../plugins/catalog/ownership/Recipients.ts"
import { leaseProbes } from "../../../plugins/catalog/ownership/reconcileProbes.ts"
import { Verdicts } from "../../../plugins/catalog/ownership/Verdicts.ts"
import { writing } from "../../../plugins/catalog/plugin.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { Listings } from "../../../plugins/catalog/store/Listings.ts"
import type { Carrier } from "../../../plugins/catalog/store/Recorded.ts"
import { ageCatalog } from "../../../plugins/catalog/store/reconcileAge.ts"
import { Sightings } from "../../../plugins/catalog/store/Sightings.ts"

export const start = Date.parse("2031-03-01T00:00:00Z")

export const values = {
  indexOn: "verified",
  staleAfterHours: 168,
  newResourcesPerDayMax: 16,
  versionsPerDayMax: 3,
  freeListingsPerHourMax: 10_000,
  declaredBytesPerDayMax: 1_000_000,
  metadataBytesMax: 131_072,
  probeOrigins: true,
  probePauseSeconds: 60,
  foreignCatalogs: [],
  allowLocalOrigins: false,
  recipients: { bound: ["GBOUND"] }
} as unknown as CatalogValues

export interface Said {
  readonly resource?: string
  readonly payTo?: string
  readonly description?: string
  readonly amount?: string
  readonly asset?: string
  readonly method?: string
  readonly extensions?: ReadonlyArray<string>
}

export const shop = "https://shop.example.com"

export const declarationOf = (said: Said = {}): Declaration => {
  const method = said.method ?? "GET"
  const resource = said.resource ?? `${shop}/a`
  return {
    identity: { type: "http", resource, toolName: "", origin: new URL(resource).origin },
    about: { description: said.description ?? "A thing" },
    operation: { method, info: { input: { type: "http", method } }, schema: undefined },
    sentKey: "catalog",
    dialect: "ledger",
    extensions: said.extensions ?? ["catalog"],
    terms: {
      scheme: "exact",
      network: "ledger:testnet",
      asset: said.asset ?? "CASSET",
      amount: Option.some(BigInt(said.amount ?? "5")),
      amountText: said.amount ?? "5",
      payTo: said.payTo ?? "GOWNER",
      maxTimeoutSeconds: 60,
      extra: {}
    } as unknown as Declaration["terms"]
  }
}

/** An origin's answer: its statements, their source, and whether it is alive. */
export const answerOf = (more: Partial<OriginAnswer> & { readonly said?: ReadonlyArray<Said> } = {}): OriginAnswer => {
  const declarations = (more.said ?? []).map(declarationOf)
  const payTos = [...new Set(declarations.map(({ terms }) => terms.payTo))]
  return {
    word: more.word ?? { payTos, delisted: false },
    declarations,
    life: more.life ?? "alive",
    detail: more.detail ?? "asked",
    isLocal: more.isLocal ?? false
  }
}

/** Signatures of classic accounts, which need no ledger. */
const classicSignatures = AccountSignatures.layer.pipe(
  Layer.provide(Network.layerTest({ assets: new Map() } as never)),
  Layer.provide(Layer.succeed(LedgerRpc, {} as never))
)

export const openStore = Effect.fnUntraced(function* (changed: Partial<CatalogValues> = {}) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate catalog_resources, catalog_observations, catalog_quotas, catalog_sales, catalog_recipients,
    catalog_authorizations, kernel_facts restart identity cascade`
  yield* TestClock.setTime(start)
  const config = Layer.succeed(Config, { ...values, ...changed })
  const parts = yield* Layer.build(
    Layer.mergeAll(writing, Sightings.layer, Recipients.layer, Challenges.layer, Hints.layer).pipe(
      Layer.provide(classicSignatures),
      Layer.provideMerge(Layer.merge(Changes.layer, config))
    )
  )
  const now = Effect.map(
    Effect.clockWith((clock) => clock.currentTimeMillis),
    (millis) => new Date(millis)
  )
  const { record } = Context.get(parts, Listings)
  const { apply } = Context.get(parts, Verdicts)
  const sightings = Context.get(parts, Sightings)
  const declare = Effect.fnUntraced(function* (said: Said = {}, carrier: Partial<Carrier> = {}) {
    const full: Carrier = {
      stage: "verified",
      payer: "GPAYER",
      grade: "claimed",
      authorization: () => Option.none(),
      now: yield* now,
      ...carrier
    }
    return yield* record(declarationOf(said), full)
  })
  let sales = 0
  /** A settled payment that carries the declaration, in the observer's form; `dollars` is the amount at risk. */
  const settle = Effect.fnUntraced(function* (
    said: Said,
    { dollars = 0, ...carrier }: Partial<Carrier> & { readonly payer: string; readonly dollars?: number }
  ) {
    const recorded = yield* declare(said, { ...carrier, stage: "settled" })
    const sale = {
      transaction: `sale ${sales++}`,
      payer: carrier.payer,
      payTo: said.payTo ?? "GOWNER",
      amount: said.amount ?? "5",
      risked: String(Math.round(dollars * 1e7)),
      ...(recorded.claim === undefined ? {} : { claim: recorded.claim })
    }
    if (recorded.decision !== "rejected") yield* sightings.touch(recorded.resourceId!, yield* now, sale)
    else if (recorded.isContender === true) yield* sightings.contend(recorded.resourceId!, yield* now, sale)
    yield* sightings.flush
    return recorded
  })
  /** A probe of the only due resource, or of any. */
  const probe = Effect.fnUntraced(function* (answer: OriginAnswer) {
    yield* sql`update catalog_probes set due_at = ${yield* now}, leased_until = null`
    const leased = yield* Effect.forEach([true, false], (stands) =>
      Effect.flatMap(now, (now) => leaseProbes(sql, now, stands))
    )
    const [due] = leased.flat()
    return yield* apply(due!.id, due!.fence, answer, yield* now)
  })
  /** A probe of this resource, due or not. */
  const probeAt = Effect.fnUntraced(function* (resource: string, answer: OriginAnswer) {
    const [due] = yield* sql<{ id: bigint; fence: bigint }>`update catalog_probes p set fence = p.fence + 1
      from catalog_resources r where r.id = p.resource_id and r.resource = ${resource}
      returning p.resource_id as id, p.fence`
    return yield* apply(due!.id, due!.fence, answer, yield* now)
  })
  const listing = Effect.map(
    sql<{
      state: string
      state_reason: string | null
      grade: string
      ownership: string
      verification: string
      version: number
      description: string
      extensions: ReadonlyArray<string>
      uptime: number | null
      pay_tos: ReadonlyArray<string>
    }>`select state, state_reason, grade, ownership, verification, version, extensions, uptime, pay_tos,
      document::jsonb->>'description' as description from catalog_resources order by id limit 1`,
    ([row]) => row!
  )
  const prices = Effect.map(
    sql<{ amount: string }>`select amount::text as amount from catalog_options where retired_at is null order by id`,
    (rows) => rows.map(({ amount }) => amount)
  )
  const activity = Effect.map(
    sql<{ settled: bigint; payers: bigint; earned: bigint; recent_settled: bigint; recent_payers: bigint }>`
      select settled, payers, earned, recent_settled, recent_payers from catalog_activity order by resource_id limit 1`,
    ([row]) => ({
      settled: Number(row!.settled),
      payers: Number(row!.payers),
      earned: Number(row!.earned),
      recent: [Number(row!.recent_settled), Number(row!.recent_payers)]
    })
  )
  return {
    sql,
    now,
    declare,
    probe,
    probeAt,
    listing,
    prices,
    activity,
    apply,
    age: Effect.provideContext(ageCatalog, parts),
    parts,
    sightings,
    settle,
    recipients: Context.get(parts, Recipients),
    challenges: Context.get(parts, Challenges),
    hints: Context.get(parts, Hints)
  }
})
