// Which steps a tracer is asked about: those below a span that is sent, and no others, since it is asked at each.
import { expect, it } from "@effect/vitest"
import { Effect, Tracer } from "effect"
import { forRequests } from "../../../runtime/platform/sampler.ts"

for (const [name, isSampled] of [
  ["a tracer surrounds each step of a request that is sent", true],
  ["a tracer is asked about no step of a request that is not sent", false]
] as const)
  it.effect(name, () =>
    Effect.gen(function* () {
      let asked = 0
      const tracer = Tracer.make({
        span: (options) => Tracer.nativeTracer.span({ ...options, sampled: isSampled }),
        context: (primitive, fiber) => {
          asked += 1
          return primitive["~effect/Effect/evaluate"](fiber)
        }
      })
      const request = Effect.yieldNow.pipe(
        Effect.andThen(Effect.succeed("answered")),
        Effect.withSpan("POST /verify", { kind: "server", root: true })
      )
      expect(yield* Effect.provideService(request, Tracer.Tracer, forRequests(tracer))).toBe("answered")
      expect(asked > 0).toBe(isSampled)
    })
  )
