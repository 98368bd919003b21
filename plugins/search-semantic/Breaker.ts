// Leaves a failing endpoint alone for a while, so that a dead provider costs a search nothing but its semantic half,
// and then lets one request try. What is the fault of the texts is not held against the endpoint.
import { Clock, Context, Effect, Exit, Layer } from "effect"
import { EmbeddingFailed } from "./Embedder.ts"

export interface BreakerOptions {
  /** Failures in a row after which it opens. */
  readonly failures: number
  /** How long it stays open; then one request tries. */
  readonly millis: number
}

export class Breaker extends Context.Service<
  Breaker,
  {
    readonly run: <A>(effect: Effect.Effect<A, EmbeddingFailed>) => Effect.Effect<A, EmbeddingFailed>
    /** The last failure, while there is one. */
    readonly trouble: () => string | undefined
    readonly isOpen: Effect.Effect<boolean>
  }
>()("tollkeeper/search-semantic/Breaker") {
  static readonly layer = ({ failures, millis }: BreakerOptions) =>
    Layer.sync(Breaker, () => {
      let inRow = 0
      let openUntil = 0
      let trouble: string | undefined
      const succeeded = (): void => {
        inRow = 0
        openUntil = 0
        trouble = undefined
      }
      const failed = Effect.fnUntraced(function* (error: EmbeddingFailed) {
        inRow += 1
        trouble = error.message
        if (inRow >= failures) openUntil = (yield* Clock.currentTimeMillis) + millis
      })
      return Breaker.of({
        isOpen: Effect.map(Clock.currentTimeMillis, (now) => now < openUntil),
        trouble: () => trouble,
        run: Effect.fnUntraced(function* (effect) {
          const now = yield* Clock.currentTimeMillis
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
