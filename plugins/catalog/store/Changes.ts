// Notifies listeners inside this process that the catalog has changed: caches of counts and of declarations are
// invalidated immediately, instead of after the delay with which another replica's changes are noticed.
import { Context, Effect, Layer } from "effect"

export class Changes extends Context.Service<
  Changes,
  {
    /** Discovery has changed, by a declaration that this process recorded. */
    readonly listed: Effect.Effect<void>
    /** A listing was moved, by an operator, its origin or time: every cached outcome of it is void. */
    readonly moved: Effect.Effect<void>
    /** A probe of an origin was asked for, in a transaction that may not have ended yet. */
    readonly asked: Effect.Effect<void>
    /** Calls back when a probe was asked for; it must not wait. */
    readonly onAsked: (received: Effect.Effect<void>) => Effect.Effect<void>
    /** Calls back after every change; `wasMoved` separates the two kinds. */
    readonly onChange: (observed: (wasMoved: boolean) => void) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Changes") {
  static readonly layer = Layer.sync(Changes, () => {
    const listeners = new Set<(wasMoved: boolean) => void>()
    const report = (wasMoved: boolean) => Effect.sync(() => listeners.forEach((listener) => listener(wasMoved)))
    const probes = new Set<Effect.Effect<void>>()
    return Changes.of({
      asked: Effect.suspend(() => Effect.forEach(probes, (probe) => probe, { discard: true })),
      onAsked: (probe) => Effect.sync(() => void probes.add(probe)),
      listed: report(false),
      moved: report(true),
      onChange: (listener) => Effect.sync(() => void listeners.add(listener))
    })
  })
}
