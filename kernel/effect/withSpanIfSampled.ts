// Spans of the house's own steps. They are made for a request that somebody traces and for nothing else: without a
// tracer that sends them somewhere, outside of a request, and below a span that is not sent, the effect runs as it is.
// No span takes a stack trace: its name says where it is from.
import { Effect, type Fiber, type Tracer } from "effect"

type AnyFiber = Fiber.Fiber<unknown, unknown>

/** Whether spans are sent anywhere at all. */
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
