// Who hears, inside this process, that the catalog has changed: what is remembered of counts and of declarations is
// made anew at once, instead of after the moment that another replica's changes take to be noticed.
import { Context, Effect, Layer } from "effect"

export class Changes extends Context.Service<
  Changes,
  {
    /** Discovery shows something else now, by a declaration that this process took. */
    readonly listed: Effect.Effect<void>
    /** A listing was moved, by an operator, its origin or time: nothing that was remembered of it is trusted. */
    readonly moved: Effect.Effect<void>
    /** A look at an origin was asked for, in a transaction that may not have ended yet. */
    readonly asked: Effect.Effect<void>
    /** Calls back when a look was asked for; it must not wait. */
    readonly onAsked: (received: Effect.Effect<void>) => Effect.Effect<void>
    /** Calls back after every change; `wasMoved` tells the two kinds apart. */
    readonly onChange: (observed: (wasMoved: boolean) => void) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Changes") {
  static readonly layer = Layer.sync(Changes, () => {
    const listeners = new Set<(wasMoved: boolean) => void>()
    const report = (wasMoved: boolean) => Effect.sync(() => listeners.forEach((heard) => heard(wasMoved)))
    const probes = new Set<Effect.Effect<void>>()
    return Changes.of({
      asked: Effect.suspend(() => Effect.forEach(probes, (heard) => heard, { discard: true })),
      onAsked: (heard) => Effect.sync(() => void probes.add(heard)),
      listed: report(false),
      moved: report(true),
      onChange: (heard) => Effect.sync(() => void listeners.add(heard))
    })
  })
}
