// Counts the SQL statements of an effect by the spans of their driver.
import { Effect, Tracer } from "effect"

export const countStatements = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  let statements = 0
  const tracer = Tracer.make({
    span: (options) => {
      if (options.kind === "client") statements += 1
      return new Tracer.NativeSpan(options)
    }
  })
  const value = yield* Effect.withTracer(effect, tracer)
  return { value, statements }
})
