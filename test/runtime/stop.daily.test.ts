// A facilitator that is asked to stop while a client holds its connection open, a payment waits for its outcome and
// another for a silent ledger.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { connect, type Socket } from "node:net"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { eventually } from "../support/eventually.ts"

/** A connection that stays open, as a client's pool keeps it. */
const openConnection = (url: string) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname, () => resume(Effect.succeed(socket)))
      socket.setEncoding("utf8").on("error", () => {})
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Everything received on the connection until it is closed. */
const answersOn = (socket: Socket, path: string, body: string) =>
  Effect.callback<string>((resume) => {
    let text = ""
    socket.on("data", (chunk) => void (text += String(chunk))).on("close", () => resume(Effect.succeed(text)))
    const head = `POST ${path} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}`
    socket.write(`${head}\r\nhost: 127.0.0.1\r\n\r\n${body}`)
  })

/** Repeats a request on one connection, and returns the last answer before it was closed. */
const lastAnswerOn = (socket: Socket, path: string) =>
  Effect.callback<string>((resume) => {
    const ask = () => socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
    let answer = ""
    socket.on("data", (chunk) => {
      answer = answer.endsWith("}") ? String(chunk) : answer + String(chunk)
      if (answer.endsWith("}")) ask()
    })
    socket.on("close", () => resume(Effect.succeed(answer)))
    ask()
  })

const isRefused = (url: string) =>
  Effect.callback<boolean>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => {
      socket.destroy()
      resume(Effect.succeed(false))
    }).on("error", () => resume(Effect.succeed(true)))
  })

const payment = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const seller = (yield* facilitator.account(0n)).publicKey()
  return yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n, maxTimeoutSeconds: 300 })
})

it.live(
  "answers requests in flight, closes each connection, and is not delayed by clients",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ set: ["limits.rpc_timeout_ms=20000"] })
        const { body } = yield* payment(facilitator)
        const other = yield* payment(facilitator)
        yield* facilitator.ledger.setFaults([{ drops: () => true }])
        const [busy, quiet] = [yield* openConnection(facilitator.url), yield* openConnection(facilitator.url)]
        const settling = yield* Effect.forkScoped(answersOn(busy, "/settle", JSON.stringify(body)))
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
        // From before the stop until the last answer: its clock is the process's own.
        const asking = yield* Effect.forkScoped(lastAnswerOn(quiet, "/health/live"))
        const stopping = yield* Effect.forkScoped(facilitator.stop)
        yield* eventually(isRefused(facilitator.url))
        expect(yield* Fiber.join(asking)).toMatch(/^HTTP\/1.1 200 [^]*^connection: close\r$[^]*"ok"/im)
        const reported = yield* Fiber.join(settling)
        expect(reported).toMatch(/^HTTP\/1.1 200 [^]*^connection: close\r$/im)
        expect(JSON.parse(reported.slice(reported.indexOf("{")))).toMatchObject({
          success: false,
          errorReason: "settle_ledger_transaction_status_unknown",
          transaction: expect.stringMatching(/^[0-9a-f]{64}$/)
        })
        const verified = yield* Fiber.join(verifying)
        expect([verified.status, verified.json]).toMatchObject([
          503,
          { isValid: false, invalidReason: "ledger_unavailable" }
        ])
        yield* Fiber.join(stopping)
      })
    ),
  240_000
)
