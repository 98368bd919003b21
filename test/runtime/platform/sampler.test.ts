// What a tracer is asked for, and which lines go to a collector with the traces that are sent.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Tracer } from "effect"
import { forRequests, isLineSent } from "../../../runtime/platform/sampler.ts"

/** Spans that are sent or not, of a tracer that would rather be asked at each step. */
const tracerOf = (isSampled: boolean, asked: { steps: number } = { steps: 0 }) =>
  Tracer.make({
    span: (options) => Tracer.nativeTracer.span({ ...options, sampled: isSampled }),
    context: (primitive, fiber) => {
      asked.steps += 1
      return primitive["~effect/Effect/evaluate"](fiber)
    }
  })

/** Within a request's span. */
const requested = <A, E, R>(effect: Effect.Effect<A, E, R>, isSampled: boolean, asked?: { steps: number }) =>
  effect.pipe(
    Effect.withSpan("POST /verify", { kind: "server", root: true }),
    Effect.provideService(Tracer.Tracer, forRequests(tracerOf(isSampled, asked)))
  )

for (const isSampled of [true, false])
  it.effect(`a tracer is asked about no step of a request that is ${isSampled ? "" : "not "}sent`, () =>
    Effect.gen(function* () {
      const asked = { steps: 0 }
      const span = Effect.andThen(Effect.yieldNow, Effect.currentSpan)
      expect(yield* requested(span, isSampled, asked)).toMatchObject({ name: "POST /verify", sampled: isSampled })
      expect(asked.steps).toBe(0)
    })
  )

describe("a line of the log [S343]", () => {
  /** Whether a line with these annotations is sent. */
  const isSent = Effect.fnUntraced(function* (line: Record<string, unknown>, isSampled: boolean, message = "request") {
    const sent: Array<boolean> = []
    const logger = Logger.make((entry) => void sent.push(isLineSent(entry)))
    const told = Effect.annotateLogs(Effect.logInfo(message), line)
    yield* Effect.provide(requested(told, isSampled), Logger.layer([logger]))
    return sent
  })
  const verified = { method: "POST", path: "/verify", status: 200, payer: "G…" }
  const looked = { method: "GET", path: "/health/ready", status: 200 }

  it.effect("of what went well is sent with its trace, and not without", () =>
    Effect.gen(function* () {
      for (const line of [verified, looked, { ...looked, path: "/health" }]) {
        expect(yield* isSent(line, true)).toEqual([true])
        expect(yield* isSent(line, false)).toEqual([false])
      }
    })
  )

  it.effect("of a refusal, a fault, a settlement and of anything else is sent whatever becomes of its trace", () =>
    Effect.gen(function* () {
      for (const line of [
        { ...verified, reason: "invalid_ledger_auth_expired" },
        { ...verified, status: 503 },
        { ...looked, status: 503 },
        { ...verified, path: "/settle" },
        { ...verified, path: "/verify/more" },
        { ...looked, path: "/healthy" }
      ])
        expect(yield* isSent(line, false), JSON.stringify(line)).toEqual([true])
      expect(yield* isSent(verified, false, "an endpoint failed")).toEqual([true])
    })
  )

  it.effect("outside of any trace is sent", () =>
    Effect.gen(function* () {
      const sent: Array<boolean> = []
      const logger = Logger.make((entry) => void sent.push(isLineSent(entry)))
      const told = Effect.annotateLogs(Effect.logInfo("request"), verified)
      yield* Effect.provide(told, Logger.layer([logger]))
      expect(sent).toEqual([true])
    })
  )
})
