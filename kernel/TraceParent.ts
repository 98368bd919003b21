// Trace propagation: the current span as W3C's `traceparent`, for a row that another process reads and for a call to
// another program. Undefined for an untraced fiber.
import { Effect, type Fiber, Option, type Tracer } from "effect"
import { HttpTraceContext } from "effect/http"

const encoded = (span: Tracer.AnySpan): string | undefined =>
  /^[0-9a-f]{16,32}$/.test(span.traceId)
    ? `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`
    : undefined

/**
 * The current span of a traced fiber: the fiber's span, or the caller's, which then passes through with its trace
 * unchanged.
 */
export const traceParentIn = ({ cache: { span } }: Fiber.Fiber<unknown, unknown>): string | undefined =>
  span === undefined ? undefined : encoded(span)

/** `traceparent` of the current fiber. */
export const currentTraceParent: Effect.Effect<string | undefined> = Effect.withFiber((fiber) =>
  Effect.succeed(traceParentIn(fiber))
)

/** Runs the effect as a part of the trace that `traceparent` names; untraced without one. */
export const continueTrace =
  (name: string, traceparent: string | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = HttpTraceContext.fromHeaders({ traceparent: traceparent ?? "" } as never)
    return Option.match(parent, {
      onNone: () => effect,
      onSome: (parent) =>
        effect.pipe(
          Effect.withSpan(name, { parent }, { captureStackTrace: false }),
          Effect.withTracerEnabled(true)
        ) as typeof effect
    })
  }
