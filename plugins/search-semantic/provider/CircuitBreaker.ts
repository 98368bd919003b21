// Circuit breaker of the embedding endpoint: opens after failures, so that a dead provider costs a search nothing but
// its semantic half, and then lets one trial request through. Errors caused by the input do not count. A slow endpoint
// is skipped by searches that have other branches to answer with: it is probed in the background, now and then, until
// an answer comes in time.
import { Context, Effect, Exit, Layer } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { EmbeddingFailed } from "./Embedder.ts"

export interface CircuitBreakerOptions {
  /** Failures in a row after which it opens. */
  readonly failures: number
  /** How long it stays open; then one request tries. */
  readonly millis: number
}

/** A slow endpoint is asked again after so long. */
const probeMillis = 1_000

export class CircuitBreaker extends Context.Service<
  CircuitBreaker,
  {
    readonly run: <A>(effect: Effect.Effect<A, EmbeddingFailed>) => Effect.Effect<A, EmbeddingFailed>
    /** The last failure, while there is one. */
    readonly trouble: () => string | undefined
    readonly isOpen: Effect.Effect<boolean>
    /** Whether a search that cannot wait may wait: it may not, or may ask beside itself without waiting. */
    readonly pace: Effect.Effect<"fast" | "slow" | "probe">
    /** An answer came in time or did not. */
    readonly answered: (inTime: boolean) => Effect.Effect<void>
  }
>()("tollkeeper/search-semantic/Breaker") {
  static readonly layer = ({ failures, millis }: CircuitBreakerOptions) =>
    Layer.sync(CircuitBreaker, () => {
      let inRow = 0
      let openUntil = 0
      let trouble: string | undefined
      /** Undefined while the endpoint answers in time. */
      let probeAt: number | undefined
      const succeeded = (): void => {
        inRow = 0
        openUntil = 0
        trouble = undefined
      }
      const failed = Effect.fnUntraced(function* (error: EmbeddingFailed) {
        inRow += 1
        trouble = error.message
        if (inRow >= failures) openUntil = (yield* monotonicMillis) + millis
      })
      return CircuitBreaker.of({
        isOpen: Effect.map(monotonicMillis, (now) => now < openUntil),
        trouble: () => trouble ?? (probeAt === undefined ? undefined : "the endpoint is slow"),
        pace: Effect.map(monotonicMillis, (now) => {
          if (probeAt === undefined) return "fast"
          if (now < probeAt) return "slow"
          probeAt = now + probeMillis
          return "probe"
        }),
        answered: (inTime) =>
          Effect.map(monotonicMillis, (now) => {
            probeAt = inTime ? undefined : now + probeMillis
          }),
        run: Effect.fnUntraced(function* (effect) {
          const now = yield* monotonicMillis
          if (now < openUntil) {
            const message = `the endpoint is left alone: ${trouble}`
            return yield* new EmbeddingFailed({ message, perhapsTheTexts: false })
          }
          // While it is half open, one request tries and the others are still kept away.
          if (inRow >= failures) openUntil = now + millis
          const exit = yield* Effect.exit(effect)
          if (Exit.isSuccess(exit)) {
            succeeded()
            return exit.value
          }
          const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
          if (error !== undefined && !error.perhapsTheTexts) yield* failed(error)
          return yield* Effect.failCause(exit.cause)
        })
      })
    })
}
