// The place where branches of search and observers of answers are registered, each for as long as its plugin lives.
import { Effect, Layer } from "effect"
import { type Impression, Search, type SearchBranch } from "../contract.ts"

/** A second branch of one mode: a bug of whoever wires the plugins. */
const twice = (mode: string) => new Error(`the ${mode} branch of search is registered twice`)

export interface Registered {
  readonly observers: ReadonlySet<(impression: Impression) => Effect.Effect<void>>
}

export const makeBranches = (): Search["Service"] & Registered => {
  const branches = new Map<string, SearchBranch>()
  const observers = new Set<(impression: Impression) => Effect.Effect<void>>()
  return {
    observers,
    branches: () => [...branches.values()],
    register: (branch) =>
      branches.has(branch.mode)
        ? Effect.die(twice(branch.mode))
        : Effect.asVoid(Effect.acquireRelease(Effect.sync(() => branches.set(branch.mode, branch)), () => Effect.sync(() => branches.delete(branch.mode)))),
    observe: (observer) => Effect.asVoid(Effect.acquireRelease(Effect.sync(() => observers.add(observer)), () => Effect.sync(() => observers.delete(observer))))
  }
}

export const layerTest = Layer.sync(Search, makeBranches)
