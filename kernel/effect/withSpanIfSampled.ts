// Spans of internal steps. They are made for traced requests only: without an exporting tracer, outside of a request,
// and below a span that is not sampled, the effect runs unchanged. No span captures a stack trace: its name says where
// it is from.
import { Effect, type Fiber, type Tracer } from "effect"

type AnyFiber = Fiber.Fiber<unknown, unknown>

/** Whether spans are exported. */
export const isTracing = ({ cache }: AnyFiber): boolean => cache.tracer !== undefined && cache.tracerEnabled

/** The step as a span of this name, where spans are sent. */
export const withSpanIfSampled =
  (name: string, options: { readonly kind?: Tracer.SpanKind; readonly attributes?: Record<string, unknown> } = {}) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      isTracing(fiber) && fiber.cache.span?.sampled === true
        ? (Effect.withSpan(effect, name, { ...options, captureStackTrace: false }) as typeof effect)
        : effect
    )
