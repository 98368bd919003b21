// Single flight per invocation in this process: an identical call waits for the payment in progress and shares its
// result.
import { Context, Deferred, Effect, Layer } from "effect"
import type { ToolError } from "../../mcp-tools/contract.ts"
import { concurrent } from "./heldError.ts"
import type { Output } from "./Invocation.ts"

type Outcome = Effect.Effect<Output, ToolError>
/** Undefined: an earlier payment was proven dead, and no new one was made. */
type EndedOutput = Output | undefined

export class OpenPayments extends Context.Service<
  OpenPayments,
  {
    /** The outcome of the same call, if it is being paid for now. */
    readonly underWay: (key: string) => Outcome | undefined
    /** Pays for a call, or waits for the same call in progress. */
    readonly once: <A extends EndedOutput, R>(
      key: string,
      effect: Effect.Effect<A, ToolError, R>
    ) => Effect.Effect<A | Output, ToolError, R>
  }
>()("tollkeeper/mcp-tools-pay/OpenPayments") {
  static readonly layer = Layer.sync(OpenPayments, () => {
    const flights = new Map<string, Deferred.Deferred<EndedOutput, ToolError>>()
    const underWay = (key: string): Outcome | undefined => {
      const flight = flights.get(key)
      if (flight === undefined) return undefined
      return Effect.flatMap(Deferred.await(flight), (ended) =>
        ended === undefined ? Effect.fail(concurrent) : Effect.succeed(ended)
      )
    }
    return OpenPayments.of({
      underWay,
      // Checked and claimed in one synchronous step, so that no other fiber runs in between.
      once: (key, effect) =>
        Effect.suspend((): Effect.Effect<any, ToolError, any> => {
          const other = underWay(key)
          if (other !== undefined) return other
          const flight = Deferred.makeUnsafe<EndedOutput, ToolError>()
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
