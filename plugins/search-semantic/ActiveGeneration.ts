// Which generation answers in this process: the active one, by a word that may be a second old, and whole in memory
// before it is searched. A copy from before it was complete is not used.
import { Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { type Generation, Generations, embeddingColumnOf } from "./Generations.ts"
import { VectorIndex } from "./index/VectorIndex.ts"

/** How long a process may take another's word for which generation is active. */
const activeForMillis = 1_000

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class ActiveGeneration extends Context.Service<
  ActiveGeneration,
  {
    readonly current: Sql<Option.Option<Generation>>
    /** The current one, ready to be searched. */
    readonly answering: Sql<Option.Option<Generation>>
    /** Another one has become active. */
    readonly changed: Effect.Effect<void>
  }
>()("tollkeeper/search-semantic/ActiveGeneration") {
  static readonly layer = Layer.effect(
    ActiveGeneration,
    Effect.gen(function* () {
      const generations = yield* Generations
      const index = yield* VectorIndex
      let cached: { readonly generation: Option.Option<Generation>; readonly at: number } | undefined
      let warmed: bigint | undefined

      const current = Effect.gen(function* () {
        const now = yield* monotonicMillis
        if (cached !== undefined && now - cached.at < activeForMillis) return cached.generation
        const generation = yield* generations.active
        cached = { generation, at: now }
        return generation
      })
      const answering = Effect.gen(function* () {
        const generation = yield* current
        if (Option.isSome(generation) && generation.value.id !== warmed) {
          yield* index.warm(embeddingColumnOf(generation.value))
          warmed = generation.value.id
        }
        return generation
      })
      const changed = Effect.sync(() => {
        cached = undefined
      })
      return ActiveGeneration.of({ current, answering, changed })
    })
  )
}
