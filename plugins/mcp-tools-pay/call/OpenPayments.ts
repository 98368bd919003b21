// Payments that are signed and whose result is not delivered yet, by invocation, so that the same call sends the same
// payment again. They live in memory alone, so many and so long. While a call is being paid for, the same call made
// meanwhile waits for that one and has its result: two calls at once are one purchase.
import { Context, Deferred, Effect, Layer } from "effect"
import { elapsedMillis } from "../../../kernel/elapsed.ts"
import type { ToolFault } from "../../mcp-tools/contract.ts"
import type { OpenPayment, Output } from "./Invocation.ts"

/**
 * How many are remembered, and how long each, by the time that elapses: longer than any authorization lives. What is
 * forgotten sooner is not sent again, and what it paid for never comes.
 */
const openMax = 1_000
const openMillis = 3_900_000

interface Remembered {
  readonly open: OpenPayment
  /** When it was signed, by the time that elapses. */
  readonly at: number
}

type Outcome = Effect.Effect<Output, ToolFault>

export class OpenPayments extends Context.Service<
  OpenPayments,
  {
    readonly remember: (open: OpenPayment) => Effect.Effect<void>
    readonly forget: (key: string) => Effect.Effect<void>
    readonly find: (key: string) => OpenPayment | undefined
    /** What the same call comes to that is being paid for now. */
    readonly underWay: (key: string) => Outcome | undefined
    /** Pays for a call, or waits for the same call that is being paid for. */
    readonly once: <R>(key: string, effect: Effect.Effect<Output, ToolFault, R>) => Effect.Effect<Output, ToolFault, R>
  }
>()("tollkeeper/mcp-tools-pay/OpenPayments") {
  static readonly layer = Layer.sync(OpenPayments, () => {
    const opens = new Map<string, Remembered>()
    const flights = new Map<string, Deferred.Deferred<Output, ToolFault>>()
    const underWay = (key: string): Outcome | undefined => {
      const flight = flights.get(key)
      return flight === undefined ? undefined : Deferred.await(flight)
    }
    return OpenPayments.of({
      remember: (open) =>
        Effect.map(elapsedMillis, (now) => {
          for (const [key, { at }] of opens) if (now - at > openMillis || opens.size >= openMax) opens.delete(key)
          opens.set(open.invocation.key, { open, at: now })
        }),
      forget: (key) => Effect.sync(() => void opens.delete(key)),
      find: (key) => opens.get(key)?.open,
      underWay,
      // Asked and taken in one step of this process, so that nobody comes between.
      once: (key, effect) =>
        Effect.suspend(() => {
          const other = underWay(key)
          if (other !== undefined) return other
          const flight = Deferred.makeUnsafe<Output, ToolFault>()
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
