// Spans of internal steps. Only traced requests get them: without an exporting tracer, outside a request, and below an
// unsampled span, the effect runs unchanged. No span captures a stack trace, because its name already shows the place
// in the code.
import { Effect, type Fiber, type Tracer } from "effect"

type AnyFiber = Fiber.Fiber<unknown, unknown>

/** Whether spans are exported. */
export const isTracing = ({ cache }: AnyFiber): boolean => cache.tracer !== undefined && cache.tracerEnabled

/** Wraps the step in a span of this name, if spans are exported. */
export const withSpanIfSampled =
  (name: string, options: { readonly kind?: Tracer.SpanKind; readonly attributes?: Record<string, unknown> } = {}) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      isTracing(fiber) && fiber.cache.span?.sampled === true
        ? (Effect.withSpan(effect, name, { ...options, captureStackTrace: false }) as typeof effect)
        : effect
    )
