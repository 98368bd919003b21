// The ledger's time: its pace, measured by looks that saw news, and the follower that keeps it while nodes are silent,
// lag or lie behind; who waits for a ledger and who is told.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { LedgerClock, paceOf } from "../../../kernel/ledger/LedgerClock.ts"
import { type LatestLedger, LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { LedgerUnavailable } from "../../../kernel/ledger/LedgerUnavailable.ts"
import { Supervisor } from "../../../kernel/Supervisor.ts"

const steady = (millis: number, count = 20) => Array.from({ length: count }, () => ({ ledgers: 1, millis }))

it("takes the shortest pace a client may assume until it has seen three looks", () => {
  expect(paceOf([])).toBe(1)
  expect(paceOf(steady(5_000, 2))).toBe(1)
  expect(paceOf(steady(5_000, 3))).toBe(5)
})

it("measures a steady pace exactly, and a jittered one within two hundredths", () => {
  expect(paceOf(steady(5_000))).toBe(5)
  const jittered = [750, 1_000, 1_250, 1_000, 1_250, 750].flatMap((millis) => [
    { ledgers: 1, millis },
    { ledgers: 1, millis: 2_000 - millis }
  ])
  expect(Math.abs(paceOf(jittered) - 1)).toBeLessThan(0.02)
})

it("is not moved by a burst of ledgers in one look", () => {
  expect(paceOf([...steady(1_000, 17), { ledgers: 20, millis: 200 }, { ledgers: 8, millis: 200 }])).toBe(1)
})

it("is not moved by an endpoint that was away", () => {
  expect(paceOf([...steady(1_000, 18), { ledgers: 1, millis: 600_000 }])).toBe(1)
})

it("stays within 0.1 and 60 seconds", () => {
  expect(paceOf(steady(1))).toBe(0.1)
  expect(paceOf(steady(3_600_000))).toBe(60)
})

/** A node whose answer a test sets: a ledger's sequence, or silence. */
interface Node {
  sequence: number | undefined
  fees: bigint | undefined
  asked: number
}

const silent = (operation: string) => Effect.fail(new LedgerUnavailable({ operation, message: "silent" }))

const following = <A, E>(
  node: Node,
  use: (clock: LedgerClock["Service"]) => Effect.Effect<A, E, import("effect").Scope.Scope>
) => {
  const rpc = Layer.succeed(LedgerRpc, {
    latestLedger: Effect.suspend(() => {
      node.asked += 1
      return node.sequence === undefined
        ? silent("getLatestLedger")
        : Effect.succeed<LatestLedger>({
            sequence: node.sequence,
            closedAtSeconds: node.sequence * 5,
            protocolVersion: 23
          })
    }),
    feeStats: Effect.suspend(() =>
      node.fees === undefined
        ? silent("getFeeStats")
        : Effect.succeed({ p50: node.fees, p90: node.fees, p99: node.fees })
    )
  } as unknown as LedgerRpc["Service"])
  return Effect.scoped(Effect.flatMap(LedgerClock, use)).pipe(
    Effect.provide(
      LedgerClock.layer.pipe(Layer.provide(rpc), Layer.provide(Supervisor.layer)) as Layer.Layer<LedgerClock>
    )
  )
}

const nodeAt = (sequence: number | undefined): Node => ({ sequence, fees: undefined, asked: 0 })

it.effect("knows the newest ledger, never an older one, and asks nobody when it is read", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      expect((yield* clock.now).sequence).toBe(100)
      node.sequence = 101
      yield* TestClock.adjust("1 second")
      expect(yield* clock.now).toMatchObject({ sequence: 101, closedAtSeconds: 505 })
      node.sequence = 90
      yield* TestClock.adjust("2 seconds")
      const { asked } = node
      expect((yield* clock.now).sequence).toBe(101)
      expect(node.asked).toBe(asked)
    })
  )
})

it.effect("says nothing rather than something older than 30 seconds, and heals by itself", () => {
  const node = nodeAt(undefined)
  return following(node, (clock) =>
    Effect.gen(function* () {
      expect((yield* Effect.flip(clock.now))._tag).toBe("LedgerUnavailable")
      node.sequence = 100
      yield* TestClock.adjust("2 seconds")
      expect((yield* clock.now).sequence).toBe(100)
      node.sequence = undefined
      yield* TestClock.adjust("29 seconds")
      expect((yield* clock.now).sequence).toBe(100)
      yield* TestClock.adjust("3 seconds")
      expect((yield* Effect.flip(clock.now))._tag).toBe("LedgerUnavailable")
      node.sequence = 107
      yield* TestClock.adjust("2 seconds")
      expect((yield* clock.now).sequence).toBe(107)
    })
  )
})

it.effect("takes a reading of this moment when asked to, and fails when it cannot", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      node.sequence = 120
      expect((yield* clock.fresh).sequence).toBe(120)
      node.sequence = undefined
      expect((yield* Effect.flip(clock.fresh))._tag).toBe("LedgerUnavailable")
    })
  )
})

it.effect("wakes who waits for the next ledger, and tells subscribers for as long as they live", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      let told = 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* clock.subscribe(Effect.sync(() => void (told += 1)))
          const waiting = yield* Effect.forkChild(clock.nextLedger)
          yield* TestClock.adjust("5 seconds")
          expect([told, waiting.pollUnsafe()]).toEqual([0, undefined])
          node.sequence = 101
          yield* TestClock.adjust("1 second")
          yield* Fiber.join(waiting)
          expect(told).toBe(1)
        })
      )
      node.sequence = 102
      yield* TestClock.adjust("1 second")
      expect(told).toBe(1)
    })
  )
})

it.effect("knows what inclusion costs, and keeps the last figures while none come", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      expect((yield* clock.fees).p90).toBe(100n)
      node.fees = 5_000n
      yield* TestClock.adjust("6 seconds")
      expect((yield* clock.fees).p90).toBe(5_000n)
      node.fees = undefined
      yield* TestClock.adjust("20 seconds")
      expect((yield* clock.fees).p90).toBe(5_000n)
    })
  )
})
