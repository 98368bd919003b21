import { expect, layer } from "@effect/vitest"
import { Duration, Effect, Exit, Layer, Option, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { ChannelStore } from "../../../kernel/settlement/channels/ChannelStore.ts"
import { Leases } from "../../../kernel/settlement/Leases.ts"
import { Settlements } from "../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../support/databases.ts"
import { channelName, emptyStore, endLeases, newSettlement, storeLayer, takeOne } from "./store.ts"

/** The leases of one more replica over the same database, and its orderly stop. */
const replica = Effect.gen(function* () {
  const scope = yield* Scope.make()
  const services = yield* Layer.buildWithScope(Layer.fresh(Leases.layer), scope)
  return { leases: yield* Effect.provide(Leases, services), stop: Scope.close(scope, Exit.void) }
})

const addressOf = (lease: Option.Option<{ readonly address: string }>) =>
  Option.getOrUndefined(Option.map(lease, ({ address }) => address))

for (const kind of databaseKinds) {
  describe(`leases on ${kind}`, () =>
    layer(storeLayer(kind), { timeout: "240 seconds" })((it) => {
      it.effect("one replica holds a lease until it expires or stops [S92]", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const sql = yield* SqlClient.SqlClient
          const first = yield* replica
          const second = yield* replica
          expect(yield* first.leases.hold("settlements", Duration.seconds(10))).toBe(true)
          expect(yield* second.leases.hold("settlements", Duration.seconds(10))).toBe(false)
          expect(yield* first.leases.hold("settlements", Duration.seconds(10))).toBe(true)
          expect(yield* second.leases.hold("channels", Duration.seconds(10))).toBe(true)
          yield* sql`update kernel_leases set until = clock_timestamp() - interval '1 millisecond'
        where name = 'settlements'`
          expect(yield* second.leases.hold("settlements", Duration.seconds(10))).toBe(true)
          // Half of the lease has passed, even of the longer lease of an embedded database.
          yield* TestClock.adjust("301 seconds")
          expect(yield* first.leases.hold("settlements", Duration.seconds(10))).toBe(false)
          const [lease] = yield* sql<{ fence: bigint }>`select fence from kernel_leases where name = 'settlements'`
          expect(lease?.fence).toBe(2n)
          yield* second.stop
          expect(yield* first.leases.hold("settlements", Duration.seconds(10))).toBe(true)
          yield* first.stop
        })
      )

      it.effect("a lease is renewed at half its life, without earlier statements", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const sql = yield* SqlClient.SqlClient
          const { leases, stop } = yield* replica
          const held = leases.hold("settlements", Duration.seconds(10))
          const half = kind === "postgres" ? 5_000 : 300_000
          const until = Effect.map(
            sql<{ seconds: number }>`select extract(epoch from until - clock_timestamp())::float8 as seconds
              from kernel_leases where name = 'settlements'`,
            ([row]) => row?.seconds
          )
          expect(yield* held).toBe(true)
          const seconds = (yield* until)!
          expect(seconds).toBeGreaterThan(half / 1_000)
          expect(seconds).toBeLessThanOrEqual((2 * half) / 1_000)
          yield* sql`delete from kernel_leases`
          yield* TestClock.adjust(half - 1)
          expect(yield* held).toBe(true)
          expect(yield* until).toBeUndefined()
          yield* TestClock.adjust(1)
          expect(yield* held).toBe(true)
          expect(yield* until).toBeGreaterThan(half / 1_000)
          yield* stop
          expect(yield* until).toBeUndefined()
        })
      )

      it.effect("leases the longest-idle free channel, each once [S340]", () =>
        Effect.gen(function* () {
          yield* emptyStore(4)
          const store = yield* ChannelStore
          const settlements = yield* Settlements
          const taken = yield* Effect.forEach(Array.from({ length: 6 }), () => takeOne, { concurrency: "unbounded" })
          expect(
            taken
              .map(addressOf)
              .filter((address) => address !== undefined)
              .sort()
          ).toEqual([0, 1, 2, 3].map(channelName))
          expect(yield* store.counts).toEqual({ ready: 4, free: 0 })
          yield* Effect.forEach(taken.flatMap(Option.toArray), store.release)
          // Several concurrent ones are the same, and no more than there are.
          const several = yield* Effect.forEach([3, 3], store.take, { concurrency: "unbounded" })
          expect(several.flatMap((leases) => leases.map(({ address }) => address)).sort()).toEqual(
            [0, 1, 2, 3].map(channelName)
          )
          const [held, ...others] = several.flat()
          yield* settlements.record(newSettlement(1, held!))
          yield* endLeases
          yield* store.release(held!)
          // Only the three free ones come back, each with a new fence.
          const again = yield* Effect.forEach(Array.from({ length: 4 }), () => takeOne)
          expect(
            again
              .flatMap(Option.toArray)
              .map(({ address, fence }) => ({ address, fence }))
              .sort((a, b) => (a.address < b.address ? -1 : 1))
          ).toEqual(
            others
              .map(({ address, fence }) => ({ address, fence: fence + 1n }))
              .sort((a, b) => (a.address < b.address ? -1 : 1))
          )
        })
      )

      it.effect("a channel lease is released only by its holder", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const store = yield* ChannelStore
          const stale = Option.getOrThrow(yield* takeOne)
          yield* endLeases
          const current = Option.getOrThrow(yield* takeOne)
          yield* store.release(stale)
          expect(addressOf(yield* takeOne)).toBeUndefined()
          yield* store.release(current)
          expect(addressOf(yield* takeOne)).toBe(channelName(0))
        })
      )

      it.effect("does not lease channels without sequence, foreign, or retired", () =>
        Effect.gen(function* () {
          yield* emptyStore(4)
          const sql = yield* SqlClient.SqlClient
          yield* sql`update kernel_channels set sequence = null where number = 0`
          yield* sql`update kernel_channels set address = 'elsewhere' where number = 1`
          yield* sql`update kernel_channels set state = 'retired' where number = 2`
          const store = yield* ChannelStore
          expect([addressOf(yield* takeOne), addressOf(yield* takeOne)]).toEqual([channelName(3), undefined])
          expect(yield* store.counts).toEqual({ ready: 1, free: 0 })
        })
      )
    }))
}
