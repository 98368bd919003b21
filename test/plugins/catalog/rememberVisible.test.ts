// Who is visible, remembered: no statement for what is known, and nothing known that may have changed.
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { changedFact } from "../../../plugins/catalog/contract.ts"
import { visibleCandidatesCache } from "../../../plugins/catalog/discovery/visibleCandidatesCache.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { describeDatabases } from "../../support/databases.ts"
import { makePlace } from "./countedPlace.ts"

const config = Layer.succeed(Config, { includeStale: false, includeUnverified: false } as CatalogValues)

/** Resources 1 to 3, the last hidden. */
const prepare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate catalog_resources restart identity cascade`
  yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at, verification,
    pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
    select gen_random_uuid()::text, 'k', 'http', 'https://a.example.com/',
      case n when 3 then 'removed' else 'active' end, now(), 'payment_observed', array['G'], 1, 'h', '{}'::jsonb,
        array['catalog'], '{}', now(), now()
      from generate_series(1, 3) n`
  const { edition, visible } = yield* visibleCandidatesCache
  const place = yield* makePlace
  const hide = (id: number) => sql`update catalog_resources set state = 'quarantined' where id = ${id}`
  return { ...place, hide, ask: (...ids: ReadonlyArray<bigint>) => place.from(visible(ids, 100n)), edition, visible }
})

/** As another replica does it: the fact, and nobody tells this process. */
const report = Effect.fnUntraced(function* (id: number) {
  const sql = yield* SqlClient.SqlClient
  const { end, publish } = yield* Facts
  yield* sql.withTransaction(publish({ type: changedFact, version: 1, subject: String(id), data: {} }))
  // It has its place in the journal, which a replica gives to none.
  yield* end
})

describeDatabases(
  "who is visible",
  (database) => {
    const parts = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(Layer.mergeAll(parts, config, Changes.layer), { timeout: "240 seconds" })((it) => {
      it.effect("is asked once, with the journal, and then known; of later than a snapshot none is", () =>
        Effect.gen(function* () {
          const { ask, from, told: reported, visible } = yield* prepare
          expect(yield* ask(3n, 2n, 1n, 99n)).toEqual([2n, 1n])
          expect(reported.statements).toBe(2)
          expect(yield* ask(1n, 2n, 3n)).toEqual([1n, 2n])
          expect(yield* from(visible([1n, 2n], 1n))).toEqual([1n])
          expect(reported.statements).toBe(2)
          // What no byte is kept for is asked each time.
          expect(yield* ask(5_000_000n, 1n)).toEqual([1n])
          expect(yield* ask(5_000_000n, 1n)).toEqual([1n])
          expect(reported.statements).toBe(4)
        })
      )

      it.effect("holds for a second after another replica's change, which makes strange what it is about alone", () =>
        Effect.gen(function* () {
          const { ask, hide, told: notified } = yield* prepare
          expect(yield* ask(1n, 2n, 3n)).toEqual([1n, 2n])
          yield* hide(1)
          yield* hide(2)
          yield* report(1)
          expect(yield* ask(1n, 2n)).toEqual([1n, 2n])
          yield* TestClock.adjust("1 second")
          // Of the second one nobody said anything.
          expect(yield* ask(1n, 2n)).toEqual([2n])
          expect(notified.statements).toBe(4)
          // After a long rest nothing is believed.
          yield* TestClock.adjust("2 minutes")
          expect(yield* ask(1n, 2n)).toEqual([])
        })
      )

      it.effect("follows this process's own changes at once", () =>
        Effect.gen(function* () {
          const { ask, hide } = yield* prepare
          const { moved } = yield* Changes
          expect(yield* ask(1n, 2n)).toEqual([1n, 2n])
          yield* hide(1)
          yield* report(1)
          yield* moved
          expect(yield* ask(1n, 2n)).toEqual([2n])
        })
      )

      it.effect("is of an edition that ends with any change, within a second, and of each place by itself", () =>
        Effect.gen(function* () {
          const { edition, from, told: received } = yield* prepare
          const { moved } = yield* Changes
          const first = yield* from(edition)
          expect(yield* edition).not.toBe(first)
          expect(yield* from(edition)).toBe(first)
          expect(received.statements).toBe(1)
          yield* report(1)
          expect(yield* from(edition)).toBe(first)
          yield* TestClock.adjust("1 second")
          const second = yield* from(edition)
          expect(second).not.toBe(first)
          yield* TestClock.adjust("1 second")
          expect(yield* from(edition)).toBe(second)
          yield* moved
          expect(yield* from(edition)).not.toBe(second)
        })
      )

      it.effect("is not kept from an answer that was under way when something changed", () =>
        Effect.gen(function* () {
          const { ask, hide, open: letGo, shut } = yield* prepare
          const { moved } = yield* Changes
          expect(yield* ask(2n)).toEqual([2n])
          const answered = yield* shut
          const during = yield* Effect.forkChild(ask(1n), { startImmediately: true })
          yield* answered
          yield* hide(1)
          yield* moved
          yield* letGo
          expect(yield* Fiber.join(during)).toEqual([1n])
          expect(yield* ask(1n, 2n)).toEqual([2n])
        })
      )

      it.effect("is remembered of each place that is read from by itself", () =>
        Effect.gen(function* () {
          const { ask, hide, visible } = yield* prepare
          expect(yield* ask(1n, 2n)).toEqual([1n, 2n])
          yield* hide(1)
          expect(yield* visible([1n, 2n], 100n)).toEqual([2n])
          expect(yield* ask(1n, 2n)).toEqual([1n, 2n])
        })
      )
    })
  },
  ["kernel", "catalog"]
)
