// Circuit breaker of the embedding endpoint: opens after failures, so that a dead provider costs a search nothing but
// its semantic half, and then lets one trial request through. Errors caused by the input do not count. A slow endpoint
// is skipped by searches that have other branches to answer with: it is probed in the background, now and then, until
// an answer comes in time.
import { Context, Effect, Layer } from "effect"
import { makeCircuitBreaker } from "../../../kernel/effect/circuitBreaker.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { EmbeddingFailed } from "./Embedder.ts"

interface CircuitBreakerOptions {
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
    /**
     * How a search with other branches may use the endpoint: `fast`, it may wait for a short time; `slow`, it must not
     * ask; `probe`, it sends a request without waiting for the answer.
     */
    readonly pace: Effect.Effect<"fast" | "slow" | "probe">
    /** An answer came in time or did not. */
    readonly answered: (inTime: boolean) => Effect.Effect<void>
  }
>()("tollkeeper/search-semantic/Breaker") {
  static readonly layer = ({ failures, millis }: CircuitBreakerOptions) =>
    Layer.effect(
      CircuitBreaker,
      Effect.gen(function* () {
        let trouble: string | undefined
        /** Undefined while the endpoint answers in time. */
        let probeAt: number | undefined
        const { isOpen, run } = yield* makeCircuitBreaker<EmbeddingFailed>({
          failures,
          openMillis: millis,
          isIgnored: ({ perhapsTheTexts }) => perhapsTheTexts,
          refused: () => new EmbeddingFailed({ message: `circuit open: ${trouble}`, perhapsTheTexts: false })
        })
        const noteTrouble = <A>(effect: Effect.Effect<A, EmbeddingFailed>) =>
          Effect.tapError(
            Effect.tap(effect, () => Effect.sync(() => (trouble = undefined))),
            ({ message, perhapsTheTexts }) => Effect.sync(() => (trouble = perhapsTheTexts ? trouble : message))
          )
        return CircuitBreaker.of({
          isOpen,
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
          run: (effect) => run(noteTrouble(effect))
        })
      })
    )
}
