// The generations and their queue on a real database: which one answers, and which worker holds a job.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { EmbeddingJobs } from "../../../plugins/search-semantic/provider/EmbeddingJobs.ts"
import { Generations, type EmbeddingConfig } from "../../../plugins/search-semantic/Generations.ts"
import { SqlClient } from "effect/sql"
import { describeDatabases } from "../../support/databases.ts"

const meaning = (model: string): EmbeddingConfig => ({
  provider: "openai",
  url: "http://127.0.0.1:1",
  model,
  revision: "1",
  dimension: 16,
  pooling: "model",
  queryPrefix: "",
  documentPrefix: ""
})

const made = Effect.provide(
  Effect.map(Effect.all([Generations, EmbeddingJobs]), ([generations, jobs]) => ({ ...generations, ...jobs })),
  Layer.merge(Generations.layer, EmbeddingJobs.layer)
)

const activeModel = (generations: Generations["Service"]) =>
  Effect.map(
    generations.active,
    Option.map(({ model }) => model)
  )

describeDatabases(
  "generations of embeddings",
  (layer) => {
    it.effect("generations switch in one step, never to an abandoned one [S105, S319]", () =>
      Effect.gen(function* () {
        const generations = yield* made
        const one = yield* generations.begin(meaning("one"), "1", "scan")
        expect((yield* generations.begin(meaning("one"), "1", "scan")).id).toBe(one.id)
        expect(yield* generations.activate(one.id)).toBe(true)
        const two = yield* generations.begin(meaning("two"), "2", "scan")
        expect(yield* activeModel(generations)).toEqual(Option.some("one"))
        // A replica with other settings boots while this one is about to switch.
        const three = yield* generations.begin(meaning("three"), "3", "scan")
        yield* generations.abandonOthers(three.id)
        expect(yield* generations.activate(two.id)).toBe(false)
        expect(yield* activeModel(generations)).toEqual(Option.some("one"))
        expect(yield* generations.activate(three.id)).toBe(true)
        expect(yield* generations.activate(three.id)).toBe(false)
        expect(yield* activeModel(generations)).toEqual(Option.some("three"))
        expect((yield* generations.history).map(({ model, status }) => `${model} ${status}`)).toEqual([
          "three active",
          "two retired",
          "one retired"
        ])
        // The database allows only one active generation, even if the program is wrong.
        const sql = yield* SqlClient.SqlClient
        const second = yield* Effect.flip(
          sql`update search_semantic_generations set status = 'active' where model = 'two'`
        )
        expect(second.reason._tag).toBe("UniqueViolation")
        // Searches may still be reading the retired generation.
        expect(yield* generations.droppable).toEqual([])
        yield* TestClock.adjust("61 seconds")
        const droppable = yield* generations.droppable
        expect(droppable.map(({ model }) => model).toSorted()).toEqual(["one", "two"])
        for (const { id } of droppable) yield* generations.dropped(id)
        expect(yield* generations.droppable).toEqual([])
      }).pipe(Effect.provide(layer))
    )

    it.effect("a job has one holder; a late one loses it", () =>
      Effect.gen(function* () {
        const generations = yield* made
        const { id } = yield* generations.begin(meaning("one"), "1", "scan")
        yield* generations.enqueue(id, [1n, 2n, 3n])
        const first = yield* generations.lease(2, 10_000)
        const second = yield* generations.lease(2, 10_000)
        expect([...first, ...second].map((job) => job.id).toSorted()).toEqual([1n, 2n, 3n])
        expect(yield* generations.lease(2, 10_000)).toEqual([])
        yield* TestClock.adjust("11 seconds")
        const taken = yield* generations.lease(3, 10_000)
        expect(taken).toHaveLength(3)
        expect(yield* generations.finish(first)).toEqual(new Set())
        expect(yield* generations.finish(taken)).toEqual(new Set([1n, 2n, 3n]))
        expect(yield* generations.counts(id)).toEqual({ due: 0, dead: 0 })
      }).pipe(Effect.provide(layer))
    )

    it.effect("a job stays queued if its resource changed during embedding", () =>
      Effect.gen(function* () {
        const generations = yield* made
        const { id } = yield* generations.begin(meaning("one"), "1", "scan")
        yield* generations.enqueue(id, [1n])
        const jobs = yield* generations.lease(1, 10_000)
        yield* generations.enqueue(id, [1n])
        expect(yield* generations.finish(jobs)).toEqual(new Set())
        expect(yield* generations.lease(1, 10_000)).toHaveLength(1)
      }).pipe(Effect.provide(layer))
    )

    it.effect("failed jobs back off and retry alone; the cause is set aside", () =>
      Effect.gen(function* () {
        const generations = yield* made
        const { id } = yield* generations.begin(meaning("one"), "1", "scan")
        yield* generations.enqueue(id, [1n, 2n])
        const options = { counts: true, attemptsMax: 2 }
        yield* generations.fail(yield* generations.lease(2, 10_000), "no", options)
        expect(yield* generations.lease(2, 10_000)).toEqual([])
        yield* TestClock.adjust("1001 millis")
        const alone = yield* generations.lease(2, 10_000)
        expect(alone.map(({ attempts }) => attempts)).toEqual([1])
        yield* generations.fail(alone, "no", { ...options, counts: false })
        expect(yield* generations.counts(id)).toEqual({ due: 2, dead: 0 })
        const other = yield* generations.lease(2, 10_000)
        yield* generations.fail(other, "no", options)
        expect(yield* generations.counts(id)).toEqual({ due: 1, dead: 1 })
        yield* generations.enqueue(
          id,
          other.map((job) => job.id)
        )
        expect(yield* generations.counts(id)).toEqual({ due: 2, dead: 0 })
      }).pipe(Effect.provide(layer))
    )
  },
  ["kernel", "search-semantic"]
)
