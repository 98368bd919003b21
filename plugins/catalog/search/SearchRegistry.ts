// Where branches of search and observers of its answers are registered, each for as long as its plugin lives.
import { Effect } from "effect"
import type { Impression, Search, SearchBranch } from "../contract.ts"

export const makeSearchRegistry = () => {
  const branches = new Map<string, SearchBranch>()
  const observers = new Set<(impression: Impression) => Effect.Effect<void>>()
  const registry: Search["Service"] = {
    register: (branch) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.suspend(() =>
            branches.has(branch.mode)
              ? Effect.die(new Error(`two branches of search are ${branch.mode}`))
              : Effect.sync(() => branches.set(branch.mode, branch))
          ),
          () => Effect.sync(() => branches.delete(branch.mode))
        )
      ),
    observe: (observer) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => observers.add(observer)),
          () => Effect.sync(() => observers.delete(observer))
        )
      ),
    branches: () => [...branches.values()]
  }
  return { registry, observers }
}
