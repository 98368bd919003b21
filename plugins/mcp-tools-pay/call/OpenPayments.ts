// Payments that are signed and whose result is not delivered yet, by invocation, so that the same call sends the same
// payment again. They live in memory alone, so many and so long; one that is being sent is not sent a second time.
import { Clock, Context, Effect, Layer } from "effect"
import type { OpenPayment } from "./Invocation.ts"

/** How many are remembered, and how long each: longer than any authorization lives. */
const openMax = 1_000
const openMillis = 3_900_000

interface Remembered {
  readonly open: OpenPayment
  readonly at: number
  isBusy: boolean
}

export class OpenPayments extends Context.Service<
  OpenPayments,
  {
    readonly remember: (open: OpenPayment) => Effect.Effect<void>
    readonly forget: (key: string) => Effect.Effect<void>
    readonly has: (key: string) => boolean
    /** One that is not being sent now. */
    readonly idle: (key: string) => OpenPayment | undefined
    /** Marks it as being sent for as long as the effect runs. */
    readonly whileBusy: <A, E, R>(key: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("tollkeeper/mcp-tools-pay/OpenPayments") {
  static readonly layer = Layer.sync(OpenPayments, () => {
    const opens = new Map<string, Remembered>()
    const mark = (key: string, isBusy: boolean) =>
      Effect.sync(() => {
        const one = opens.get(key)
        if (one !== undefined) one.isBusy = isBusy
      })
    return OpenPayments.of({
      remember: (open) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          for (const [key, { at }] of opens) if (now - at > openMillis || opens.size >= openMax) opens.delete(key)
          opens.set(open.invocation.key, { open, at: now, isBusy: false })
        }),
      forget: (key) => Effect.sync(() => void opens.delete(key)),
      has: (key) => opens.has(key),
      idle: (key) => {
        const one = opens.get(key)
        return one === undefined || one.isBusy ? undefined : one.open
      },
      whileBusy: (key, effect) => Effect.ensuring(Effect.andThen(mark(key, true), effect), mark(key, false))
    })
  })
}
