import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { SettleAnswer } from "../../../kernel/payment/Answer.ts"
import { busy } from "../../../kernel/payment/answers.ts"
import { Flights } from "../../../kernel/payment/settle/Flights.ts"

const settled: SettleAnswer = { _tag: "Settled", payer: "payer", transaction: "hash", amount: 1n }
const pending: SettleAnswer = { _tag: "Pending", payer: "payer", transaction: "hash" }

const flying = <A, E>(use: (flights: Flights["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(Flights, use), Flights.layer)

it.effect("one request leads, and those of its name hear what it was told, never a success [S96]", () =>
  flying((flights) =>
    Effect.gen(function* () {
      const leader = flights.board("one")
      const twin = flights.board("one")
      expect([leader.isLeader, twin.isLeader, flights.board("another").isLeader]).toEqual([true, false, true])
      const heard = yield* Effect.forkChild(twin.flight.told, { startImmediately: true })
      leader.flight.tell(settled)
      leader.flight.tell(busy())
      expect(yield* Fiber.join(heard)).toEqual({ _tag: "Told", answer: pending })
      // While the leader waits, whoever comes later is told at once.
      expect(flights.board("one").isLeader).toBe(false)
      leader.flight.letGo()
      expect(flights.board("one").isLeader).toBe(true)
    })
  )
)

it.effect("a flight lasts until leader and work have let go, and one that decided nothing is abandoned", () =>
  flying((flights) =>
    Effect.gen(function* () {
      const { flight } = flights.board("one")
      flight.hold()
      flight.letGo()
      expect(flights.board("one").isLeader).toBe(false)
      const heard = yield* Effect.forkChild(flight.told, { startImmediately: true })
      flight.letGo()
      expect(yield* Fiber.join(heard)).toEqual({ _tag: "Abandoned" })
      const next = flights.board("one")
      expect(next.isLeader).toBe(true)
      // An end that comes late takes nobody else's flight away.
      flight.end()
      expect(flights.board("one").isLeader).toBe(false)
    })
  )
)
