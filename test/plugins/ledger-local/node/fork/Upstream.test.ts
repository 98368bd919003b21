// Retries of a busy upstream RPC, for every form of its busy answer: their number, their pauses, and the error when it
// stays busy. The upstream is a small server behind a real socket.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type HttpAnswered, HttpCalls } from "../../../../../kernel/platform/HttpCalls.ts"
import { Listeners } from "../../../../../kernel/platform/Listeners.ts"
import { Upstream } from "../../../../../plugins/ledger-local/node/fork/Upstream.ts"
import { platform } from "../../platform.ts"

const Result = Schema.Struct({ latestLedger: Schema.Int })
const good = { jsonrpc: "2.0", id: 1, result: { latestLedger: 7 } }
const withError = (code: number, message: string) => ({ jsonrpc: "2.0", id: 1, error: { code, message } })
const ask = Effect.flatMap(Upstream, (upstream) => upstream.ask("getLedgerEntries", {}, Result))

interface Said {
  readonly status: number
  readonly body: unknown
}

/** A server that returns these answers in order and repeats the last one; counts its requests. */
const server = Effect.fnUntraced(function* (says: ReadonlyArray<Said>, retryAfter = "0") {
  const listeners = yield* Listeners
  const met = { questions: 0 }
  const answer = Effect.sync(() => {
    const { body, status } = says[Math.min(met.questions++, says.length - 1)]!
    return new Response(JSON.stringify(body), { status, headers: { "retry-after": retryAfter } })
  })
  const { port } = yield* listeners.open({ host: "127.0.0.1", port: 0, bodyBytesMax: 1_000_000 }, () => answer)
  return { met, layer: Upstream.layer(`http://127.0.0.1:${port}`) }
})

const busy: ReadonlyArray<readonly [Said, RegExp]> = [
  [{ status: 429, body: "" }, /getLedgerEntries with HTTP 429, asked 4 times$/],
  [{ status: 502, body: "" }, /HTTP 502, asked 4 times$/],
  [{ status: 503, body: "<html>" }, /HTTP 503, asked 4 times$/],
  [{ status: 504, body: "" }, /HTTP 504, asked 4 times$/],
  [{ status: 503, body: withError(-32_603, "no node") }, /HTTP 503, asked 4 times$/],
  [{ status: 200, body: withError(-32_005, "daily quota") }, /error -32005: daily quota, asked 4 times$/],
  [{ status: 200, body: withError(-32_029, "x") }, /error -32029: x, asked 4 times$/],
  [{ status: 200, body: withError(429, "slow down") }, /error 429: slow down, asked 4 times$/],
  [
    { status: 200, body: withError(-32_000, "Rate limit exceeded") },
    /error -32000: Rate limit exceeded, asked 4 times$/
  ],
  [{ status: 200, body: withError(-32_603, "rpc queue surpassed queue limit") }, /queue limit, asked 4 times$/]
]

const refused: ReadonlyArray<readonly [Said, RegExp]> = [
  [{ status: 403, body: "" }, /HTTP 403$/],
  [{ status: 500, body: "" }, /HTTP 500$/],
  [{ status: 200, body: withError(-32_602, "too many keys") }, /error -32602: too many keys$/],
  [{ status: 200, body: withError(-32_603, "no database") }, /error -32603: no database$/]
]

describe("a busy network", () => {
  it.live("retries a busy network until it answers", () =>
    Effect.gen(function* () {
      for (const [said] of busy) {
        const { layer, met } = yield* server([said, said, { status: 200, body: { ...good, error: null } }])
        expect(yield* Effect.provide(ask, layer)).toEqual({ latestLedger: 7 })
        expect(met.questions).toBe(3)
      }
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("asks a busy network at most four times, then fails with its message", () =>
    Effect.gen(function* () {
      for (const [said, words] of busy) {
        const { layer, met } = yield* server([said])
        const { message } = yield* Effect.flip(Effect.provide(ask, layer))
        expect(message).toMatch(words)
        expect(met.questions).toBe(4)
      }
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("does not retry after a refusal or an excessive Retry-After", () =>
    Effect.gen(function* () {
      const patient = yield* server([{ status: 503, body: "" }], "60")
      expect((yield* Effect.flip(Effect.provide(ask, patient.layer))).message).toMatch(/HTTP 503$/)
      expect(patient.met.questions).toBe(1)
      for (const [said, words] of refused) {
        const { layer, met } = yield* server([said])
        expect((yield* Effect.flip(Effect.provide(ask, layer))).message).toMatch(words)
        expect(met.questions).toBe(1)
      }
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.effect("all attempts of a request share ten seconds", () =>
    Effect.gen(function* () {
      const given: Array<number> = []
      const answered: HttpAnswered = { status: 503, retryAfter: undefined, body: "" }
      const slow = HttpCalls.of({
        post: ({ timeoutMillis }) => {
          given.push(timeoutMillis)
          return Effect.delay(Effect.succeed(answered), "4 seconds")
        }
      })
      const layer = Upstream.layer("http://upstream").pipe(Layer.provide(Layer.succeed(HttpCalls, slow)))
      const fiber = yield* Effect.forkChild(Effect.flip(Effect.provide(ask, layer)))
      yield* TestClock.adjust("1 minute")
      expect((yield* Fiber.join(fiber)).message).toMatch(/HTTP 503, asked 3 times$/)
      // Pauses of a quarter and of half a second lie between them.
      expect(given).toEqual([10_000, 5_750, 1_250])
    })
  )
})
