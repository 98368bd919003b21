// Calls that are being paid for in this process, by invocation. The same call made meanwhile waits for that one and has
// its result: two calls at once are one purchase.
import { Context, Deferred, Effect, Layer } from "effect"
import type { ToolFault } from "../../mcp-tools/contract.ts"
import { concurrent } from "./heldFault.ts"
import type { Output } from "./Invocation.ts"

type Outcome = Effect.Effect<Output, ToolFault>
/** Nothing: an earlier payment was proven dead, and none was made in its place. */
type Ended = Output | undefined

export class OpenPayments extends Context.Service<
  OpenPayments,
  {
    /** What the same call comes to that is being paid for now. */
    readonly underWay: (key: string) => Outcome | undefined
    /** Pays for a call, or waits for the same call that is being paid for. */
    readonly once: <A extends Ended, R>(
      key: string,
      effect: Effect.Effect<A, ToolFault, R>
    ) => Effect.Effect<A | Output, ToolFault, R>
  }
>()("tollkeeper/mcp-tools-pay/OpenPayments") {
  static readonly layer = Layer.sync(OpenPayments, () => {
    const flights = new Map<string, Deferred.Deferred<Ended, ToolFault>>()
    const underWay = (key: string): Outcome | undefined => {
      const flight = flights.get(key)
      if (flight === undefined) return undefined
      return Effect.flatMap(Deferred.await(flight), (ended) =>
        ended === undefined ? Effect.fail(concurrent) : Effect.succeed(ended)
      )
    }
    return OpenPayments.of({
      underWay,
      // Asked and taken in one step of this process, so that nobody comes between.
      once: (key, effect) =>
        Effect.suspend((): Effect.Effect<any, ToolFault, any> => {
          const other = underWay(key)
          if (other !== undefined) return other
          const flight = Deferred.makeUnsafe<Ended, ToolFault>()
          flights.set(key, flight)
          return Effect.onExit(effect, (exit) =>
            Effect.andThen(
              Effect.sync(() => flights.delete(key)),
              Deferred.done(flight, exit)
            )
          )
        })
    })
  })
}
