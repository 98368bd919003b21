// The cost of a repeated declaration: nothing is validated again while the resource's state is unchanged; the state is
// read in the batch that stores the sighting. The clock is the test's, the database a real one.
import { expect, it, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { OutcomeCache } from "../../../plugins/catalog/OutcomeCache.ts"
import type { Recorded } from "../../../plugins/catalog/store/Recorded.ts"
import { readStates } from "../../../plugins/catalog/store/Resources.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore } from "./store.ts"

const unchanged: Recorded = { decision: "unchanged", resourceId: 1n, versionHash: "v1", stateHash: "as it was" }
const seconds = 1_000

const cachedAt = (at: number, recorded: Recorded = unchanged) => {
  const cached = new OutcomeCache()
  cached.keep("digest", recorded, at)
  return {
    confirm: (state: string, at: number) => cached.confirm(new Map([[1n, state]]), at),
    isKnown: (at: number) => cached.recall("digest", at) !== undefined
  }
}

it("a declaration is cached for half a minute after each unchanged read", () => {
  const { isKnown, confirm } = cachedAt(0)
  expect([isKnown(30 * seconds), isKnown(30 * seconds + 1)]).toEqual([true, false])
  confirm("as it was", 20 * seconds)
  expect([isKnown(50 * seconds), isKnown(50 * seconds + 1)]).toEqual([true, false])
  confirm("as it was", 50 * seconds)
  expect(isKnown(80 * seconds)).toBe(true)
})

it("a declaration is validated again once its resource's state changes", () => {
  const { isKnown, confirm } = cachedAt(10 * seconds)
  // This state was read before the validation, so it does not invalidate it.
  confirm("otherwise", 9 * seconds)
  expect(isKnown(11 * seconds)).toBe(true)
  confirm("otherwise", 12 * seconds)
  expect(isKnown(13 * seconds)).toBe(false)
})

it("a declaration is validated again every ten minutes, even if unchanged", () => {
  const { isKnown, confirm } = cachedAt(0)
  confirm("as it was", 599 * seconds)
  expect([isKnown(600 * seconds), isKnown(600 * seconds + 1)]).toEqual([true, false])
})

it("a changed, held or failed declaration is validated again after 30 seconds", () => {
  const outcomes: ReadonlyArray<Recorded> = [
    { decision: "listed", resourceId: 1n, versionHash: "v1" },
    { decision: "updated", resourceId: 1n, versionHash: "v1" },
    { decision: "held", reason: "awaits_origin", resourceId: 1n },
    { decision: "rejected", reason: "payto_conflict", resourceId: 1n }
  ]
  for (const recorded of outcomes) {
    const { isKnown, confirm } = cachedAt(0, recorded)
    confirm("as it was", 20 * seconds)
    expect([recorded.decision, isKnown(30 * seconds), isKnown(31 * seconds)]).toEqual([recorded.decision, true, false])
  }
})

it("the declaration cache holds sixteen million characters, evicting the oldest", () => {
  const cached = new OutcomeCache()
  const texts = Array.from({ length: 17 }, (_, at) => `${at}`.padEnd(1_000_000, "x"))
  for (const text of texts) cached.keep(text, unchanged, 0)
  const isKnown = (at: number) => cached.recall(texts[at]!, 0) !== undefined
  expect([isKnown(0), isKnown(1), isKnown(16)]).toEqual([false, true, true])
  cached.keep(texts[16]!, unchanged, 0)
  expect(isKnown(1)).toBe(true)
  cached.forget()
  for (const text of texts.slice(1)) cached.keep(text, unchanged, 0)
  expect(isKnown(1)).toBe(true)
})

describeDatabases(
  "sightings of a listing",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a resource's state differs exactly when the same declaration would change it",
        timed(
          Effect.gen(function* () {
            const { declare, probe, sightings, sql } = yield* openStore()
            yield* declare()
            const [id] = (yield* sql<{ id: bigint }>`select id from catalog_resources`).map(({ id }) => id)
            const state = Effect.map(readStates(sql, [id!]), (all) => all.get(id!))
            const confirmed: Array<string | undefined> = []
            yield* sightings.onStates((stateHashes) => confirmed.push(stateHashes.get(id!)))
            const same = yield* declare()
            expect(same).toMatchObject({ decision: "unchanged", stateHash: yield* state })
            yield* sightings.touch(id!, new Date(0), undefined)
            yield* sightings.flush
            expect(confirmed).toEqual([same.stateHash])
            const changes: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
              ["the same words by its owner", declare({}, { grade: "declared" })],
              ["other words by its owner", declare({ description: "Another thing" }, { grade: "declared" })],
              ["those words by its origin", probe(answerOf({ said: [{ description: "Another thing" }] }))],
              ["another recipient", sql`update catalog_resources set pay_tos = '{GOTHER}'`],
              ["quarantined", sql`update catalog_resources set state = 'quarantined', state_reason = 'operator'`],
              ["no payer has paid", sql`update catalog_resources set verification = 'unverified'`]
            ]
            const seen = [yield* state]
            for (const [what, change] of changes) {
              yield* Effect.orDie(change)
              const now = yield* state
              expect(seen, what).not.toContain(now)
              seen.push(now)
            }
            yield* sql`update catalog_resources set last_look_at = now(), uptime = 0.5, updated_at = now()`
            expect(yield* state).toBe(seen.at(-1))
          })
        )
      )

      it.effect(
        "sightings alone are stored every ten seconds, other changes within one",
        timed(
          Effect.gen(function* () {
            const { declare, now, sightings, sql } = yield* openStore()
            const { resourceId } = yield* declare()
            let wakes = 0
            yield* sightings.onFirst(Effect.sync(() => void wakes++))
            const seen = Effect.map(
              sql<{ observed: bigint; settled: bigint }>`select observed, settled from catalog_activity`,
              ([row]) => [Number(row!.observed), Number(row!.settled)]
            )
            const touch = Effect.flatMap(now, (at) => sightings.touch(resourceId!, at, undefined))
            const dueIn = Effect.map(sightings.dueIn, Duration.toMillis)
            const [before] = yield* seen
            sightings.seen(resourceId!, yield* now)
            yield* touch
            expect([wakes, yield* dueIn]).toEqual([0, 10_000])
            const sale = { transaction: "t", payer: "GPAYER", payTo: "GOWNER", amount: "5" }
            yield* Effect.flatMap(now, (at) => sightings.touch(resourceId!, at, sale))
            expect([wakes, yield* dueIn]).toEqual([1, 1_000])
            yield* Effect.flatMap(now, (at) => sightings.touch(resourceId!, at, { ...sale, transaction: "u" }))
            expect(wakes).toBe(1)
            yield* sightings.flush
            expect([yield* seen, yield* dueIn]).toEqual([[before! + 4, 2], 10_000])
          })
        )
      )

      it.effect(
        "text that no database stores fails no other sale of its batch",
        timed(
          Effect.gen(function* () {
            const { declare, now, sightings, sql } = yield* openStore()
            const { resourceId } = yield* declare()
            const at = yield* now
            yield* sightings.touch(resourceId!, at, { transaction: "t", payer: "GPAYER", payTo: "GOWNER", amount: "5" })
            yield* sightings.observe({
              ...{ resourceKey: undefined, resourceId: undefined, url: "https://shop.example.com", type: "mcp" },
              ...{
                payTo: "GOWNER",
                payer: "GPAYER",
                stage: "verified",
                decision: "rejected",
                reason: "schema_invalid"
              },
              ...{ toolName: `t${"\u{1f600}"}`.slice(0, 2), detail: "info/a\u0000b: type", at, lagMillis: 0 }
            } as const)
            yield* sightings.flush
            const [row] = yield* sql<{ settled: bigint; detail: string; tool_name: string }>`select settled,
              detail, tool_name from catalog_activity, catalog_observations`
            expect(row).toMatchObject({ settled: 1n, detail: "info/a\ufffdb: type", tool_name: "t\ufffd" })
          })
        )
      )

      it.effect(
        "an observation that the database refuses keeps back no sale",
        timed(
          Effect.gen(function* () {
            const { declare, now, sightings, sql } = yield* openStore()
            const { resourceId } = yield* declare()
            const at = yield* now
            const observed = { resourceKey: undefined, url: "https://shop.example.com/a", type: "http" }
            const of = { payTo: "GOWNER", payer: "GPAYER", stage: "verified", decision: "rejected" } as const
            const observe = (detail: string, about: bigint | undefined, lagMillis = 1) =>
              sightings.observe({
                ...observed,
                ...of,
                ...{ resourceId: about, at, toolName: "", reason: "schema_invalid", detail, lagMillis }
              })
            const sale = { transaction: "t", payer: "GPAYER", payTo: "GOWNER", amount: "5" }
            yield* observe("refused", 2n ** 70n)
            yield* sightings.touch(resourceId!, at, sale)
            yield* sightings.flush
            yield* observe("whole", resourceId, 30 * 86_400_000)
            yield* sightings.flush
            expect(yield* sql`select settled from catalog_activity`).toEqual([{ settled: 1n }])
            expect(yield* sql`select detail from catalog_observations`).toEqual([{ detail: "whole" }])
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
