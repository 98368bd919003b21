import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { SettleAnswer } from "../../../kernel/payment/Answer.ts"
import { busy } from "../../../kernel/payment/answers.ts"
import { SingleFlight } from "../../../kernel/payment/settle/SingleFlight.ts"

const settled: SettleAnswer = { _tag: "Settled", payer: "payer", transaction: "hash", amount: 1n }
const pending: SettleAnswer = { _tag: "Pending", payer: "payer", transaction: "hash" }

const flying = <A, E>(use: (flights: SingleFlight["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(SingleFlight, use), SingleFlight.layer)

it.effect("one request leads, and twins receive its result, never a success [S96]", () =>
  flying((flights) =>
    Effect.gen(function* () {
      const leader = flights.join("one")
      const twin = flights.join("one")
      expect([leader.isLeader, twin.isLeader, flights.join("another").isLeader]).toEqual([true, false, true])
      const received = yield* Effect.forkChild(twin.flight.result, { startImmediately: true })
      leader.flight.publish(settled)
      leader.flight.publish(busy())
      expect(yield* Fiber.join(received)).toEqual({ _tag: "Decided", answer: pending })
      // While the leader waits, later callers are answered immediately.
      expect(flights.join("one").isLeader).toBe(false)
      leader.flight.release()
      expect(flights.join("one").isLeader).toBe(true)
    })
  )
)

it.effect("a flight ends when leader and worker release it, abandoned without a result", () =>
  flying((flights) =>
    Effect.gen(function* () {
      const { flight } = flights.join("one")
      flight.hold()
      flight.release()
      expect(flights.join("one").isLeader).toBe(false)
      const received = yield* Effect.forkChild(flight.result, { startImmediately: true })
      flight.release()
      expect(yield* Fiber.join(received)).toEqual({ _tag: "Abandoned" })
      const next = flights.join("one")
      expect(next.isLeader).toBe(true)
      // A late end does not remove a newer flight.
      flight.end()
      expect(flights.join("one").isLeader).toBe(false)
    })
  )
)
