// Which event streams a poll of the journal wakes, and when it reads.
import { expect, it } from "@effect/vitest"
import { Context, Effect, type Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { Facts } from "../../../../kernel/facts/Facts.ts"
import { SettlementEvents } from "../../../../kernel/settlement/operators/SettlementEvents.ts"
import { layerTest } from "../../../support/layerTest.ts"

/** A journal with new facts of one principal, and three streams. */
const world = Effect.gen(function* () {
  const journal = { end: 10n, epoch: 1n, polls: 0, reads: 0, published: Effect.void as Effect.Effect<void> }
  const read = () =>
    Effect.sync(() => {
      journal.reads += 1
      return [{ principal: "shop" }]
    })
  const sql = Object.assign(read, { literal: (text: string) => text })
  const layer = SettlementEvents.layer.pipe(
    Layer.provide([
      Supervisor.layer,
      Layer.succeed(SqlClient.SqlClient, sql as never),
      layerTest(Facts, {
        end: Effect.sync(() => {
          journal.polls += 1
          return { end: journal.end, epoch: journal.epoch }
        }),
        onPublished: (received) => Effect.sync(() => void (journal.published = received))
      })
    ])
  )
  const { attend } = Context.get(yield* Layer.build(layer), SettlementEvents)
  return { attend, journal }
})

it.effect("a poll wakes the streams of new facts' principals and of operators", () =>
  Effect.gen(function* () {
    const { attend, journal } = yield* world
    yield* TestClock.adjust("10 minutes")
    expect(journal.polls).toBe(0)
    const streams = yield* Effect.forEach(["shop", "desk", undefined], (principal) =>
      Effect.map(
        attend(principal === undefined ? {} : { principal }),
        (waiter) => [principal ?? "operator", waiter] as const
      )
    )
    const waiting = new Map<string, Fiber.Fiber<void>>()
    /** The streams that were woken since the last call. */
    const woken = Effect.fnUntraced(function* (time: "1 millis" | "1 second") {
      for (const [name, waiter] of streams)
        if (!waiting.has(name)) waiting.set(name, yield* Effect.forkChild(waiter, { startImmediately: true }))
      yield* TestClock.adjust(time)
      const ended = [...waiting].filter(([, fiber]) => fiber.pollUnsafe() !== undefined).map(([name]) => name)
      for (const name of ended) waiting.delete(name)
      return ended.toSorted()
    })
    // The first waiter has the journal polled: what it holds is new.
    expect(yield* woken("1 second")).toEqual(["desk", "operator", "shop"])
    expect(yield* woken("1 second")).toEqual([])
    expect(journal.reads).toBe(0)
    journal.end = 12n
    expect(yield* woken("1 second")).toEqual(["operator", "shop"])
    expect(journal.reads).toBe(1)
    // A fact of this process does not wait for the poll.
    journal.end = 13n
    yield* journal.published
    expect(yield* woken("1 millis")).toEqual(["operator", "shop"])
    // The journal went back, or began another epoch: every stream reads again.
    journal.end = 12n
    expect(yield* woken("1 second")).toEqual(["desk", "operator", "shop"])
    journal.epoch = 2n
    expect(yield* woken("1 second")).toEqual(["desk", "operator", "shop"])
    expect(journal.reads).toBe(2)
  }).pipe(Effect.scoped)
)

it.effect("without a stream, publications cause no poll", () =>
  Effect.gen(function* () {
    const { attend, journal } = yield* world
    yield* Effect.scoped(Effect.andThen(attend({}), TestClock.adjust("3 seconds")))
    const { polls } = journal
    expect(polls).toBeGreaterThan(0)
    yield* journal.published
    yield* TestClock.adjust("10 minutes")
    expect(journal.polls).toBe(polls)
  }).pipe(Effect.scoped)
)
