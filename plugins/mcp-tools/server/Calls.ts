// Calls that agents have begun. Each is a fiber of the plugin, so that a call continues after its client disconnects,
// and a stopping process waits a bounded time for the remaining ones. A caller that is still waiting then gets a
// request to repeat the call: its payment is in the budget's store and is not made again.
import { Context, Deferred, Effect, FiberSet, Layer } from "effect"

/** How long shutdown waits for calls; the same as for a facilitator's requests. */
const stopTimeout = "3 seconds"
/** How long shutdown waits to send the answers to unfinished calls. */
const cutTimeout = "1 second"

/** Runs an effect in the plugin's scope; the promise rejects only if the process stops. */
type Run = <A>(effect: Effect.Effect<A>, options?: { readonly signal?: AbortSignal }) => Promise<A>

export class Calls extends Context.Service<
  Calls,
  {
    readonly run: Run
    /** Runs a call and marks its session as busy. `cut` is the answer if shutdown does not wait any longer. */
    readonly within: <A, E, R>(session: string, call: Effect.Effect<A, E, R>, cut: A) => Effect.Effect<A, E, R>
    readonly isBusy: (session: string) => boolean
    /** Waits for all calls at shutdown; answers the unfinished ones with their `cut`. */
    readonly stopped: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Calls") {
  static readonly layer = Layer.effect(
    Calls,
    Effect.gen(function* () {
      const calls = yield* FiberSet.make<unknown, unknown>()
      const isCut = yield* Deferred.make<void>()
      const busy = new Map<string, number>()
      const count = (session: string, by: 1 | -1) =>
        Effect.sync(() => {
          const now = (busy.get(session) ?? 0) + by
          if (now === 0) busy.delete(session)
          else busy.set(session, now)
        })
      return Calls.of({
        within: (session, call, cut) =>
          Effect.acquireUseRelease(
            count(session, 1),
            () => Effect.raceFirst(call, Effect.as(Deferred.await(isCut), cut)),
            () => count(session, -1)
          ),
        isBusy: (session) => busy.has(session),
        run: (yield* FiberSet.runtimePromise(calls)<never>()) as Run,
        stopped: Effect.gen(function* () {
          yield* Effect.timeoutOption(FiberSet.awaitEmpty(calls), stopTimeout)
          yield* Deferred.succeed(isCut, undefined)
          yield* Effect.timeoutOption(FiberSet.awaitEmpty(calls), cutTimeout)
        })
      })
    })
  )
}
