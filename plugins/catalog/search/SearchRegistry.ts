// The registry of search branches and of observers of its answers, each for as long as its plugin lives, and of the
// similar terms that one branch provides to another. Observers run outside of the request: a failure is logged, and no
// observer delays or changes an answer.
import { Context, Effect, Layer, type Scope } from "effect"
import { type Impression, Search, type SearchBranch } from "../contract.ts"
import type { SimilarTerms } from "./rank/SimilarTerms.ts"

type Observer = (impression: Impression) => Effect.Effect<void>

/** Adds to a set for as long as the Scope lives. */
const heldIn = <A>(set: Set<A>, one: A): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => set.add(one)),
      () => Effect.sync(() => set.delete(one))
    )
  )

export class Observers extends Context.Service<
  Observers,
  {
    readonly add: (observer: Observer) => Effect.Effect<void, never, Scope.Scope>
    /** Notifies all of them, in a fiber of the catalog. */
    readonly report: (impression: Impression) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Observers") {
  static readonly layer = Layer.effect(
    Observers,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const observers = new Set<Observer>()
      const reportOne = (impression: Impression) => (observer: Observer) =>
        Effect.catchCause(observer(impression), (cause) => Effect.logWarning("an observer of search failed", cause))
      return Observers.of({
        add: (observer) => heldIn(observers, observer),
        report: (impression) =>
          Effect.asVoid(Effect.forkIn(Effect.forEach(observers, reportOne(impression), { discard: true }), scope))
      })
    })
  )
}

export const searchRegistry = Layer.effect(
  Search,
  Effect.gen(function* () {
    const observers = yield* Observers
    const branches = new Map<string, SearchBranch>()
    const leased = new Set<SimilarTerms>()
    return Search.of({
      register: (branch) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.suspend(() =>
              branches.has(branch.mode)
                ? Effect.die(new Error(`two search branches have the mode ${branch.mode}`))
                : Effect.sync(() => branches.set(branch.mode, branch))
            ),
            () => Effect.sync(() => branches.delete(branch.mode))
          )
        ),
      observe: observers.add,
      branches: () => [...branches.values()],
      registerSimilarTerms: (words) => heldIn(leased, words),
      similarTerms: (word, likenessMin) => [...leased][0]?.(word, likenessMin) ?? Effect.succeed(undefined)
    })
  })
)
