// A facilitator that is asked to stop while a client holds its connection open, a payment waits for its outcome and
// another for a ledger that says nothing.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { connect } from "node:net"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"

/** A client that sends request after request on one connection, each when the one before is answered. */
const keepAlive = (url: string) =>
  Effect.callback<{ readonly answers: number; readonly afterLast: number }>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    let answers = 0
    let afterLast = 0
    let isLast = false
    const ask = () => socket.write("GET /health/live HTTP/1.1\r\nhost: facilitator\r\n\r\n")
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      answers += 1
      if (isLast) afterLast += 1
      isLast ||= /^connection: close\r$/im.test(chunk)
      ask()
    })
    socket.on("error", () => {}).on("close", () => resume(Effect.succeed({ answers, afterLast })))
    ask()
  })

const eventually = <A>(look: Effect.Effect<A, unknown>, holds: (seen: A) => boolean) =>
  Effect.gen(function* () {
    while (!holds(yield* look)) yield* Effect.sleep("20 millis")
  }).pipe(Effect.timeout("30 seconds"), Effect.orDie)

const payment = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const seller = (yield* facilitator.account(0n)).publicKey()
  return yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n, maxTimeoutSeconds: 300 })
})

it.live("answers what it has begun, each answer the last of its connection, and lets nobody hold it up", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ set: ["limits.rpc_timeout_ms=20000"] })
      const { body } = yield* payment(facilitator)
      const other = yield* payment(facilitator)
      yield* facilitator.ledger.setFaults([{ drops: () => true }])
      const settling = yield* Effect.forkScoped(facilitator.settle(body))
      const client = yield* Effect.forkScoped(keepAlive(facilitator.url))
      yield* eventually(
        facilitator.sql<{ count: number }>`select count(*)::int as count from kernel_settlements`,
        ([row]) => row!.count === 1
      )
      let asked = false
      const silent = { kind: "silent" } as const
      yield* facilitator.ledger.setFaults([
        {
          drops: () => true,
          onRpc: (method) => {
            if (method !== "simulateTransaction") return undefined
            asked = true
            return silent
          }
        }
      ])
      const verifying = yield* Effect.forkScoped(facilitator.verify(other.body))
      yield* eventually(
        Effect.sync(() => asked),
        (asked) => asked
      )
      yield* facilitator.stop
      const { answers, afterLast } = yield* Fiber.join(client)
      expect(answers).toBeGreaterThan(1)
      expect(afterLast).toBe(0)
      const told = yield* Fiber.join(settling)
      expect([told.status, told.json]).toMatchObject([
        200,
        {
          success: false,
          errorReason: "settle_ledger_transaction_status_unknown",
          transaction: expect.stringMatching(/^[0-9a-f]{64}$/)
        }
      ])
      const judged = yield* Fiber.join(verifying)
      expect([judged.status, judged.json]).toMatchObject([503, { isValid: false, invalidReason: "ledger_unavailable" }])
    })
  )
)
