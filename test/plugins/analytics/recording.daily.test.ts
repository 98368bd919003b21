import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { rebuild } from "../../../plugins/analytics/recording/rebuild.ts"
import { sweepSettlements } from "../../../plugins/analytics/recording/sweepSettlements.ts"
import { describeDatabases } from "../../support/databases.ts"
import { historyOf, randomFrom } from "./recount.ts"
import { type JournalFact, makeWorld, owners, windowOf, type World, worldServices } from "./world.ts"

const everything = { limit: 1_000, offset: 0 }
const people = { buyers: ["B1", "B2", "B3", "X1"], sellers: ["S1", "S2", "X1"] }
const idOf = (number: number) => `00000000-0000-4000-a000-${String(number).padStart(12, "0")}`
const hashOf = (number: number) => String(number).padStart(64, "0")
const long = () => new Date(Date.now() - 3_600_000)

const recorded = (number: number, more: Readonly<Record<string, unknown>> = {}): JournalFact => ({
  type: "settlement.recorded",
  subject: idOf(number),
  at: long(),
  data: {
    network: "ledger:testnet",
    scheme: "exact",
    asset: "CUSDC",
    payer: "B1",
    payTo: "S1",
    amountMax: "10",
    amount: "10",
    facilitator: "one",
    transaction: hashOf(number),
    resourceUrl: null,
    principal: "p",
    ...more
  }
})
const ended = (number: number, state = "settled", more: Readonly<Record<string, unknown>> = {}): JournalFact => ({
  type: `settlement.${state}`,
  subject: idOf(number),
  data: {
    transaction: hashOf(number),
    moved: state === "settled" ? "10" : null,
    feeChargedStroops: "7",
    ledger: 5,
    reason: state === "settled" ? null : "settle_ledger_transaction_failed",
    ...more
  }
})

/** Every report that sums something, as text. */
const everyReport = Effect.fnUntraced(function* ({ participants, resources, totals, transactions }: World) {
  const all = windowOf(0)
  return JSON.stringify([
    yield* totals.overview(all, undefined),
    yield* totals.series(all, "hour", undefined),
    yield* totals.breakdowns(all, undefined),
    yield* totals.daily(all, everything),
    yield* transactions.list({}, all, everything),
    yield* participants.leaderboard("buyer", all, everything, undefined),
    yield* participants.leaderboard("seller", windowOf(30), everything, undefined),
    yield* resources.origins(everything, undefined)
  ])
})

describeDatabases(
  "the records of analytics",
  (database) => {
    layer(worldServices(database), { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a rebuild from the journal reproduces all rows and keeps verification counts [S96]",
        () =>
          Effect.gen(function* () {
            const world = yield* makeWorld
            yield* world.empty
            const url = "https://shop.example.com/item"
            const listings = [{ id: yield* world.list(url, "S1"), url, payTo: "S1" }]
            const { facts } = historyOf(randomFrom(11), 80, people, listings)
            yield* world.publish(facts)
            yield* world.follow(40)
            yield* world.sql`insert into analytics_verifications (day, valid, refused) values (current_date, 5, 2)`
            const before = yield* everyReport(world)
            yield* rebuild
            expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
              total_transactions: "0",
              unique_buyers: "0",
              total_verifications: "7"
            })
            yield* world.follow(33)
            expect(yield* everyReport(world)).toBe(before)
          }),
        240_000
      )

      it.effect("a rebuild is refused when the journal's beginning was pruned", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([recorded(1), ended(1), recorded(2), ended(2)])
          yield* world.follow(10)
          const before = yield* everyReport(world)
          yield* world.sql`delete from kernel_facts where position <= 2`
          expect((yield* Effect.flip(rebuild)).message).toContain("retention.fact_days")
          yield* world.follow(10)
          expect(yield* everyReport(world)).toBe(before)
        })
      )

      it.effect("the next overdue time is one maximum settlement time after recording [S96]", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          expect(yield* world.recorder.lapse).toBe(25_000)
          yield* world.publish([recorded(1)])
          yield* world.follow(10)
          const due = (interval: string) =>
            world.sql`update analytics_settlements
              set status = 'open', due_at = clock_timestamp() + ${interval}::interval`
          yield* due("1 minute")
          expect(yield* world.recorder.lapse).toBe(25_000)
          yield* due("4 seconds")
          const pause = yield* world.recorder.lapse
          expect(pause).toBeGreaterThan(0)
          expect(pause).toBeLessThanOrEqual(4_000)
          yield* due("-1 seconds")
          expect(yield* world.recorder.lapse).toBe(1)
          const [row] = yield* world.sql<{ status: string }>`select status from analytics_settlements`
          expect(row?.status).toBe("unknown")
        })
      )

      it.effect("pruning by age drops settlements, keeps their sums and what is unknown", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([recorded(1), ended(1), recorded(2), ended(2, "failed"), recorded(3)])
          yield* world.follow(10)
          yield* world.recorder.lapse
          const summed = JSON.stringify(yield* world.totals.breakdowns(windowOf(0), undefined))
          const ids = Effect.map(
            world.sql<{ id: string }>`select id::text as id from analytics_settlements order by 1`,
            (rows) => rows.map(({ id }) => id)
          )
          yield* sweepSettlements(2 * 3_600_000)
          expect(yield* ids).toEqual([idOf(1), idOf(2), idOf(3)])
          yield* sweepSettlements(1_800_000)
          expect(yield* ids).toEqual([idOf(3)])
          expect(JSON.stringify(yield* world.totals.breakdowns(windowOf(0), undefined))).toBe(summed)
        })
      )

      it.effect(
        "two replicas reading concurrently count each fact once, overdue ones included [S96]",
        () =>
          Effect.gen(function* () {
            const world = yield* makeWorld
            yield* world.empty
            const count = 60
            const facts = Array.from({ length: count }, (_, number) =>
              number % 3 === 0 ? [recorded(number)] : [recorded(number), ended(number)]
            ).flat()
            yield* world.publish(facts, 20)
            const sql = yield* SqlClient.SqlClient
            const replica = Effect.gen(function* () {
              const reader = yield* (yield* Facts).consume({
                consumer: "analytics",
                batchMax: 3,
                handle: world.recorder.handle
              })
              for (let read = 0; read < 400; read++) {
                yield* reader.wake
                yield* world.recorder.lapse
                const [row] = yield* sql<{
                  count: bigint
                }>`select count(*) as count from analytics_settlements where status <> 'open'`
                if (row!.count === BigInt(count)) return
                yield* Effect.sleep("10 millis")
              }
            }).pipe(
              Effect.scoped,
              Effect.provide(Layer.fresh(Facts.layer.pipe(Layer.provideMerge(Layer.fresh(Supervisor.layer)))))
            )
            yield* Effect.all([replica, replica], { concurrency: "unbounded" })
            yield* world.follow(50)
            expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
              total_transactions: "60",
              successful_transactions: "40",
              unknown_transactions: "20",
              total_amount: "400",
              total_sponsored_fee_stroops: "280",
              unique_buyers: "1",
              unique_sellers: "1"
            })
            const { items } = yield* world.participants.leaderboard("buyer", windowOf(0), everything, undefined)
            expect(items).toMatchObject([{ address: "B1", tx_count: "60", total_amount: "400" }])
          }),
        240_000
      )

      it.effect("recording skips an unreadable fact and an outcome without a start [S143]", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([
            recorded(1),
            { ...recorded(2), version: 2 },
            recorded(3, { amountMax: "-1" }),
            recorded(4, { payer: null }),
            { ...recorded(5), subject: "not an id" },
            ended(6),
            ended(1, "settled", { moved: "ten" }),
            { type: "catalog.sold", subject: "1", data: { sales: [{ transaction: "x" }] } },
            {
              type: "catalog.sold",
              subject: "1",
              data: { sales: [{ transaction: hashOf(99), resourceId: "1", origin: null }] }
            },
            { type: "other.plugin", subject: "x", data: {} },
            ended(1)
          ])
          yield* world.follow(4)
          expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
            total_transactions: "1",
            successful_transactions: "1",
            total_amount: "10"
          })
        })
      )

      it.effect("outcomes are immutable except unresolved, which an operator may resolve [S96]", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([
            recorded(1),
            ended(1),
            ended(1, "failed"),
            ended(1, "unresolved"),
            recorded(1, { payer: "B2" }),
            recorded(2),
            ended(2, "unresolved", { feeChargedStroops: "3" })
          ])
          yield* world.follow(2)
          expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
            successful_transactions: "1",
            unknown_transactions: "1",
            failed_transactions: "0",
            total_sponsored_fee_stroops: "10",
            unique_buyers: "1"
          })
          yield* world.publish([ended(2, "failed", { feeChargedStroops: "100", by: "operator" })])
          yield* world.follow(2)
          expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
            successful_transactions: "1",
            unknown_transactions: "0",
            failed_transactions: "1",
            total_sponsored_fee_stroops: "107"
          })
        })
      )

      it.effect("a failure that a later use corrects counts once, by its transaction", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          const resource = yield* world.list("https://a.example.com/x", "S1")
          const corrects = { corrects: "failed", confirmations: 2 }
          const [used, refused] = [hashOf(91), hashOf(92)]
          yield* world.publish([
            recorded(1),
            ended(1, "failed"),
            recorded(2),
            ended(2, "failed"),
            ended(1, "settled", { ...corrects, transaction: used }),
            ended(2, "spent", { ...corrects, spentBy: refused, reason: "settle_ledger_authorization_spent" }),
            {
              type: "catalog.sold",
              subject: String(resource),
              data: {
                sales: [{ transaction: used, resourceId: String(resource), origin: "https://a.example.com" }]
              }
            }
          ])
          const check = Effect.gen(function* () {
            expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
              total_transactions: "2",
              successful_transactions: "1",
              failed_transactions: "1",
              total_amount: "10",
              total_sponsored_fee_stroops: "14",
              unique_buyers: "1"
            })
            expect(Option.getOrThrow(yield* world.transactions.byHash(used))).toMatchObject({
              status: "success",
              amount: "10",
              resource_id: String(resource)
            })
            expect(Option.getOrThrow(yield* world.transactions.byHash(hashOf(2)))).toMatchObject({
              status: "failed",
              error_reason: "settle_ledger_authorization_spent"
            })
          })
          yield* world.follow(1)
          yield* check
          // The same facts in one batch.
          yield* rebuild
          yield* world.follow(20)
          yield* check
        })
      )

      it.effect("facts without an amount count the signed maximum", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([
            recorded(1, { amount: undefined, facilitator: undefined, amountMax: "12" }),
            ended(1, "settled", { moved: null }),
            recorded(2, { amount: "4" }),
            ended(2, "settled", { moved: "3" })
          ])
          yield* world.follow(10)
          expect(Option.getOrThrow(yield* world.transactions.byHash(hashOf(1)))).toMatchObject({
            amount: "12",
            max_amount: "12",
            facilitator_id: "unnamed"
          })
          expect(Option.getOrThrow(yield* world.transactions.byHash(hashOf(2)))).toMatchObject({
            amount: "3",
            max_amount: "10"
          })
        })
      )

      it.effect("a settlement that is still awaited appears in no report [S155]", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          yield* world.publish([{ ...recorded(1), at: new Date() }])
          yield* world.follow(10)
          expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({
            total_transactions: "0",
            unique_buyers: "0",
            first_activity: null
          })
          expect((yield* world.transactions.list({}, windowOf(0), everything)).items).toEqual([])
          expect((yield* world.transactions.ofAddress("B1", windowOf(0), everything)).items).toEqual([])
          expect(Option.isNone(yield* world.transactions.byHash(hashOf(1)))).toBe(true)
          expect(Option.isNone(yield* world.participants.one("buyer", "B1", windowOf(0), undefined))).toBe(true)
        })
      )

      it.effect("a resource is named by its URL only for its own recipient [S167]", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          const [site, first, second] = [
            yield* world.list("https://a.example.com/x", "S1"),
            yield* world.list("https://a.example.com/mcp", "S1", "mcp", "add"),
            yield* world.list("https://a.example.com/mcp", "S1", "mcp", "subtract")
          ]
          yield* world.publish([
            recorded(1, { resourceUrl: "https://A.example.com/x?city=Riga#top" }),
            ended(1),
            recorded(2, { resourceUrl: "https://a.example.com/x", payTo: "S2" }),
            ended(2),
            recorded(3, { resourceUrl: "https://a.example.com/mcp" }),
            ended(3),
            recorded(4, { resourceUrl: "not a url" }),
            ended(4)
          ])
          yield* world.follow(3)
          const resourceOf = (number: number) =>
            Effect.map(world.transactions.byHash(hashOf(number)), (found) => Option.getOrThrow(found).resource_id)
          expect(yield* Effect.forEach([1, 2, 3, 4], resourceOf)).toEqual([String(site), null, null, null])
          const sold = (resource: bigint) => ({
            type: "catalog.sold",
            subject: String(resource),
            data: {
              sales: [{ transaction: hashOf(3), resourceId: String(resource), origin: "https://a.example.com" }]
            }
          })
          yield* world.publish([sold(second), sold(first)])
          yield* world.follow(3)
          expect(yield* resourceOf(3)).toBe(String(second))
          expect(yield* world.totals.overview(windowOf(0), undefined)).toMatchObject({ unique_resources: "2" })
          expect((yield* world.resources.origins(everything, undefined)).items).toMatchObject([
            { origin: "https://a.example.com", resource_count: "3", settlement_count: "2" }
          ])
        })
      )

      it.effect("a payment is organic unless its recipient had paid its payer before", () =>
        Effect.gen(function* () {
          const world = yield* makeWorld
          yield* world.empty
          const paying = (number: number, payer: string, payTo: string) => [
            recorded(number, { payer, payTo }),
            ended(number)
          ]
          yield* world.publish([
            ...paying(1, "B1", "S1"),
            ...paying(2, "S1", "B1"),
            ...paying(3, "B1", "S1"),
            ...paying(4, "B2", "S1")
          ])
          yield* world.follow(8)
          expect((yield* world.totals.overview(windowOf(0), undefined))["organic"]).toMatchObject({
            successful_transactions: "2",
            total_amount: "20"
          })
        })
      )
    })
  },
  owners
)
