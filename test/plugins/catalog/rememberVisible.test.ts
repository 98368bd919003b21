// The cache of visible resources: no statement for cached ids, and no cached id that may have changed.
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

/** Writes the fact as another replica does, without notifying this process. */
const report = Effect.fnUntraced(function* (id: number) {
  const sql = yield* SqlClient.SqlClient
  const { end, publish } = yield* Facts
  yield* sql.withTransaction(publish({ type: changedFact, version: 1, subject: String(id), data: {} }))
  // It has a position in the journal, which a replica never assigns.
  yield* end
})

describeDatabases(
  "the visibility cache",
  (database) => {
    const parts = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(Layer.mergeAll(parts, config, Changes.layer), { timeout: "240 seconds" })((it) => {
      it.effect("visibility is queried once per resource and never later than the snapshot", () =>
        Effect.gen(function* () {
          const { ask, from, counter, visible } = yield* prepare
          expect(yield* ask(3n, 2n, 1n, 99n)).toEqual([2n, 1n])
          expect(counter.statements).toBe(2)
          expect(yield* ask(1n, 2n, 3n)).toEqual([1n, 2n])
          expect(yield* from(visible([1n, 2n], 1n))).toEqual([1n])
          expect(counter.statements).toBe(2)
          // An id beyond the cache's range is queried each time.
          expect(yield* ask(5_000_000n, 1n)).toEqual([1n])
          expect(yield* ask(5_000_000n, 1n)).toEqual([1n])
          expect(counter.statements).toBe(4)
        })
      )

      it.effect("another replica's change invalidates only its own resource within a second", () =>
        Effect.gen(function* () {
          const { ask, hide, counter } = yield* prepare
          expect(yield* ask(1n, 2n, 3n)).toEqual([1n, 2n])
          yield* hide(1)
          yield* hide(2)
          yield* report(1)
          expect(yield* ask(1n, 2n)).toEqual([1n, 2n])
          yield* TestClock.adjust("1 second")
          // No change was reported for the second one.
          expect(yield* ask(1n, 2n)).toEqual([2n])
          expect(counter.statements).toBe(4)
          // After a long idle time the cache is not trusted.
          yield* TestClock.adjust("2 minutes")
          expect(yield* ask(1n, 2n)).toEqual([])
        })
      )

      it.effect("this process's own changes invalidate visibility immediately", () =>
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

      it.effect("any change ends the visibility edition within a second, per read target", () =>
        Effect.gen(function* () {
          const { edition, from, counter } = yield* prepare
          const { moved } = yield* Changes
          const first = yield* from(edition)
          expect(yield* edition).not.toBe(first)
          expect(yield* from(edition)).toBe(first)
          expect(counter.statements).toBe(1)
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

      it.effect("a read that overlaps a change is not cached", () =>
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

      it.effect("visibility is cached separately for each read target", () =>
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
