// Calls that agents have begun: each is a fiber of the plugin's own, so that one whose client hangs up goes on, and the
// process waits a bounded time for those that are left when it ends.
import { Context, Effect, FiberSet, Layer } from "effect"

/** Calls that have begun when stdin ends, or when the process is asked to stop, are waited for this long. */
const drainTimeout = "25 seconds"

/** Runs an effect in the plugin's scope; the promise rejects only when the process stops. */
export type Run = <A>(effect: Effect.Effect<A>, options?: { readonly signal?: AbortSignal }) => Promise<A>

export class Calls extends Context.Service<
  Calls,
  {
    readonly run: Run
    /** Runs a call of a session, which is busy meanwhile. */
    readonly within: <A, E, R>(session: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    readonly isBusy: (session: string) => boolean
    /** Ends when no call is left, or when it has waited long enough. */
    readonly drained: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Calls") {
  static readonly layer = Layer.effect(
    Calls,
    Effect.gen(function* () {
      const calls = yield* FiberSet.make<unknown, unknown>()
      const busy = new Map<string, number>()
      const count = (session: string, by: 1 | -1) =>
        Effect.sync(() => {
          const now = (busy.get(session) ?? 0) + by
          if (now === 0) busy.delete(session)
          else busy.set(session, now)
        })
      return Calls.of({
        within: (session, call) =>
          Effect.acquireUseRelease(
            count(session, 1),
            () => call,
            () => count(session, -1)
          ),
        isBusy: (session) => busy.has(session),
        run: (yield* FiberSet.runtimePromise(calls)<never>()) as Run,
        drained: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(calls), drainTimeout))
      })
    })
  )
}
