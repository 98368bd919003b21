// The spans that a tracer is asked for, and the lines that go to a collector with the sent traces.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Tracer } from "effect"
import { forRequests, isLineSent, samplerOf } from "../../../runtime/platform/sampler.ts"

/** Sampled or unsampled spans from a tracer that wants to be called at each step. */
const tracerOf = (isSampled: boolean, asked: { steps: number } = { steps: 0 }) =>
  Tracer.make({
    span: (options) => Tracer.nativeTracer.span({ ...options, sampled: isSampled }),
    context: (primitive, fiber) => {
      asked.steps += 1
      return primitive["~effect/Effect/evaluate"](fiber)
    }
  })

const everything = samplerOf({})

/** Within a request's span. */
const requested = <A, E, R>(effect: Effect.Effect<A, E, R>, isSampled: boolean, asked?: { steps: number }) =>
  effect.pipe(
    Effect.withSpan("POST /verify", { kind: "server", root: true }),
    Effect.provideService(Tracer.Tracer, forRequests(tracerOf(isSampled, asked), everything))
  )

describe("what of the traces is sent [S343]", () => {
  /** Names of the spans that the tracer below the sampler was asked for. */
  const sentBy = (variables: Record<string, string>) => {
    const sent: Array<string> = []
    const tracer = forRequests(
      Tracer.make({
        span: (options) => {
          sent.push(options.name)
          return Tracer.nativeTracer.span(options)
        }
      }),
      samplerOf(variables)
    )
    return { sent, run: <A>(effect: Effect.Effect<A>) => Effect.provideService(effect, Tracer.Tracer, tracer) }
  }
  const request = (parent?: Tracer.ExternalSpan) =>
    Effect.void.pipe(
      Effect.withSpan("step"),
      Effect.withSpan("request", { kind: "server", ...(parent === undefined ? { root: true } : { parent }) })
    )
  const called = (sampled: boolean, traceId: string) =>
    Tracer.externalSpan({ traceId, spanId: "00f067aa0ba902b7", sampled })
  const low = "0".repeat(32)
  const high = "f".repeat(32)

  it.effect("begins with a request, and has its steps", () =>
    Effect.gen(function* () {
      const { run, sent } = sentBy({})
      yield* run(Effect.withSpan(Effect.void, "unrelated"))
      expect(sent).toEqual([])
      yield* run(request())
      expect(sent).toEqual(["request", "step"])
    })
  )

  it.effect("keeps the ratio's share of local root spans, each whole or dropped", () =>
    Effect.gen(function* () {
      const { run, sent } = sentBy({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.1" })
      yield* run(Effect.repeat(request(), { times: 1_999 }))
      const requests = sent.filter((name) => name === "request").length
      // Two hundred, give or take seven standard deviations.
      expect(requests).toBeGreaterThan(106)
      expect(requests).toBeLessThan(294)
      expect(sent.length).toBe(2 * requests)
    })
  )

  it.effect("follows its caller's decision where trusted, else its trace id", () =>
    Effect.gen(function* () {
      const decided = Effect.fnUntraced(function* (OTEL_TRACES_SAMPLER: string, OTEL_TRACES_SAMPLER_ARG = "0.5") {
        const { run, sent } = sentBy({ OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG })
        const answers: Array<boolean> = []
        for (const parent of [called(true, low), called(true, high), called(false, low), called(false, high)]) {
          yield* run(request(parent))
          answers.push(sent.splice(0).includes("step"))
        }
        return answers
      })
      for (const name of ["always_on", "always_off", "traceidratio"])
        expect(yield* decided(`parentbased_${name}`)).toEqual([true, true, false, false])
      expect(yield* decided("always_on")).toEqual([true, true, true, true])
      expect(yield* decided("always_off")).toEqual([false, false, false, false])
      expect(yield* decided("traceidratio")).toEqual([true, false, true, false])
      expect(yield* decided("traceidratio", "1")).toEqual([true, true, true, true])
      expect(yield* decided("traceidratio", "no number")).toEqual([true, true, true, true])
      expect(yield* decided("another")).toEqual([true, true, true, true])
    })
  )

  it.effect("begins by the word for it", () =>
    Effect.gen(function* () {
      for (const [name, isSent] of [
        ["always_off", false],
        ["parentbased_always_off", false],
        ["always_on", true],
        ["parentbased_always_on", true]
      ] as const) {
        const { run, sent } = sentBy({ OTEL_TRACES_SAMPLER: name })
        yield* run(request())
        expect(sent.length > 0, name).toBe(isSent)
      }
    })
  )
})

for (const isSampled of [true, false])
  it.effect(`asks the tracer for no step of a request ${isSampled ? "" : "not "}sent`, () =>
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
    const result = Effect.annotateLogs(Effect.logInfo(message), line)
    yield* Effect.provide(requested(result, isSampled), Logger.layer([logger]))
    return sent
  })
  const verified = { method: "POST", path: "/verify", status: 200, payer: "G…" }
  const observed = { method: "GET", path: "/health/ready", status: 200 }

  it.effect("of what went well is sent with its trace, and not without", () =>
    Effect.gen(function* () {
      for (const line of [verified, observed, { ...observed, path: "/health" }]) {
        expect(yield* isSent(line, true)).toEqual([true])
        expect(yield* isSent(line, false)).toEqual([false])
      }
    })
  )

  it.effect("sends spans of refusals, errors and settlements regardless of their trace", () =>
    Effect.gen(function* () {
      for (const line of [
        { ...verified, reason: "invalid_ledger_auth_expired" },
        { ...verified, status: 503 },
        { ...observed, status: 503 },
        { ...verified, path: "/settle" },
        { ...verified, path: "/verify/more" },
        { ...observed, path: "/healthy" }
      ])
        expect(yield* isSent(line, false), JSON.stringify(line)).toEqual([true])
      expect(yield* isSent(verified, false, "an endpoint failed")).toEqual([true])
    })
  )

  it.effect("outside of any trace is sent", () =>
    Effect.gen(function* () {
      const sent: Array<boolean> = []
      const logger = Logger.make((entry) => void sent.push(isLineSent(entry)))
      const outcome = Effect.annotateLogs(Effect.logInfo("request"), verified)
      yield* Effect.provide(outcome, Logger.layer([logger]))
      expect(sent).toEqual([true])
    })
  )
})
