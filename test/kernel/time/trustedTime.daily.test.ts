// Expiry by age uses two clocks: a replica on a machine that is years ahead deletes nothing and hides nothing.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Clock, Context, Effect, Layer } from "effect"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { trustedTimeLayer } from "../../../kernel/ledger/ledgerTrustedTime.ts"
import { ageMillis, oldBefore, trustedMillis, TrustedTime } from "../../../kernel/time/trustedTime.ts"
import { declaring } from "../../plugins/catalog/support.ts"
import { sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { skewedClock } from "../../support/skewedClock.ts"

const years = 3 * 365 * 86_400_000

/** Rows that a sweep may delete, and resources that are shown. */
const kept = Effect.fnUntraced(function* ({ ask, sql }: Facilitator) {
  const [rows] = yield* sql<
    Record<"active" | "analytics" | "budget" | "facts" | "observations" | "sales" | "settlements", number>
  >`
    select (select count(*)::int from kernel_settlements where state = 'settled') as settlements,
    (select count(*)::int from kernel_sponsor_budget) as budget, (select count(*)::int from kernel_facts) as facts,
    (select count(*)::int from analytics_settlements) as analytics,
    (select count(*)::int from catalog_observations) as observations,
    (select count(*)::int from catalog_sales) as sales,
    (select count(*)::int from catalog_resources where state = 'active') as active`
  return { ...rows!, shown: (yield* ask("/discovery/resources")).json.items.length as number }
})

it.live("a replica with a fast clock deletes nothing and marks nothing stale", () =>
  Effect.gen(function* () {
    const opened = yield* Context.get(yield* Layer.build(sourceLayer("pglite")), DatabaseSource).open
    const database = Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
    const environment = { SPONSOR_SECRET: Keypair.random().secret() }
    const right = yield* startFacilitator({ channels: 1, database, environment })
    const [payer, payTo] = [yield* right.account(), (yield* right.account(0n)).publicKey()]
    const body = yield* declaring(right, { payer, payTo, url: "http://127.0.0.1:9/almanac" })
    expect((yield* right.settle(body)).json).toMatchObject({ success: true })
    yield* eventually(Effect.map(kept(right), ({ observations, shown }) => shown > 0 && observations > 0))
    yield* eventually(Effect.map(kept(right), ({ analytics }) => analytics > 0))
    const before = yield* kept(right)
    // Each sweep's first turn is at its start.
    const fast = yield* startFacilitator({
      channels: 1,
      database,
      environment,
      ledgerUrl: right.ledgerUrl,
      set: ["plugins=[x402-exact,catalog,search-lexical,search-semantic,analytics,dashboard]"]
    }).pipe(Effect.provideServiceEffect(Clock.Clock, skewedClock(years)))
    yield* Effect.sleep("3 seconds")
    const after = yield* kept(right)
    expect(after).toEqual({ ...before, facts: expect.any(Number) })
    expect(after.facts).toBeGreaterThanOrEqual(before.facts)
    // It dates its own observations today, and postpones nothing for years on any replica.
    const again = yield* declaring(fast, { payer, payTo, url: "http://127.0.0.1:9/almanac" })
    expect((yield* fast.settle(again)).json).toMatchObject({ success: true })
    const other = yield* declaring(fast, { payer, payTo, url: "http://127.0.0.1:9/calendar" })
    expect((yield* fast.settle(other)).json).toMatchObject({ success: true })
    yield* eventually(Effect.map(kept(right), ({ active }) => active === before.active + 1))
    yield* eventually(Effect.map(kept(right), ({ sales }) => sales === 3))
    const [latest] = yield* right.sql<{ days: number }>`select extract(day from max(at) - now())::int as days from (
      select last_seen_at as at from catalog_activity union all select due_at from catalog_probes
      union all select at from catalog_sales union all select last_at from catalog_observations
      union all select first_seen_at from catalog_resources) as times`
    expect(latest!.days).toBeLessThan(30)
  }).pipe(Effect.scoped)
)

it.effect("trusted time is the machine's unless far ahead of the ledger's", () =>
  Effect.gen(function* () {
    let closedAtSeconds: number | undefined
    const status = Effect.sync(() => ({ time: closedAtSeconds === undefined ? undefined : { closedAtSeconds } }))
    const layer = trustedTimeLayer.pipe(Layer.provide(Layer.succeed(LedgerClock, { status } as never)))
    const time = Context.get(yield* Layer.build(layer), TrustedTime)
    const machine = 5_000_000
    const reported = <A>(effect: Effect.Effect<A>) =>
      effect.pipe(
        Effect.provideService(TrustedTime, time),
        Effect.provideServiceEffect(Clock.Clock, skewedClock(machine))
      )
    expect([yield* reported(trustedMillis), yield* reported(ageMillis)]).toEqual([machine, 0])
    for (const [ledger, trusted] of [
      [4_400_000, machine],
      [4_399_000, 4_399_000],
      [9_000_000, machine]
    ] as const) {
      closedAtSeconds = ledger / 1_000
      expect([yield* reported(trustedMillis), yield* reported(ageMillis)]).toEqual([trusted, trusted])
    }
    expect(yield* reported(oldBefore(1_000))).toEqual(new Date(machine - 1_000))
  }).pipe(Effect.scoped)
)
