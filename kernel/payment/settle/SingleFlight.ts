// Single flight: identical requests of one principal in one process share a flight. One of them settles, the others
// wait for its decision and receive it: pending with the hash as soon as the payment is recorded, or the same refusal.
// A flight lasts until its leader has its answer and the work that it started has reported. When the leader leaves
// without a result, one of the waiters leads the next flight.
import { Context, Deferred, Effect, Layer } from "effect"
import type { SettleAnswer } from "../Answer.ts"

/** The result for the waiters; `Abandoned` if nothing was decided. */
export type FlightResult = { readonly _tag: "Decided"; readonly answer: SettleAnswer } | { readonly _tag: "Abandoned" }

/** Only one request receives a success. */
const shared = (answer: SettleAnswer): SettleAnswer =>
  answer._tag === "Settled" ? { _tag: "Pending", payer: answer.payer, transaction: answer.transaction } : answer

export class Flight {
  readonly #result = Deferred.makeUnsafe<FlightResult>()
  readonly #onComplete: () => void
  #answer: SettleAnswer | undefined
  #holds = 0

  /** `onComplete` is called as soon as no request and no work holds the flight. */
  constructor(onComplete: () => void) {
    this.#onComplete = onComplete
  }

  /** The waiters' answer, once it is decided. */
  get answer(): SettleAnswer | undefined {
    return this.#answer
  }

  readonly result: Effect.Effect<FlightResult> = Effect.suspend(() => Deferred.await(this.#result))

  /** Sets the waiters' answer, unless it is set. */
  publish(answer: SettleAnswer): void {
    this.#answer ??= shared(answer)
    Deferred.doneUnsafe(this.#result, Effect.succeed<FlightResult>({ _tag: "Decided", answer: this.#answer }))
  }

  hold(): void {
    this.#holds += 1
  }

  release(): void {
    this.#holds -= 1
    if (this.#holds === 0) this.end()
  }

  /** Closes the flight to later requests. */
  end(): void {
    this.#onComplete()
    Deferred.doneUnsafe(this.#result, Effect.succeed<FlightResult>({ _tag: "Abandoned" }))
  }
}

export interface Joined {
  readonly flight: Flight
  /** The request that begins a flight leads it, and holds it. */
  readonly isLeader: boolean
}

export class SingleFlight extends Context.Service<
  SingleFlight,
  {
    /** The existing flight of a name, or a new one. */
    readonly join: (name: string) => Joined
  }
>()("tollkeeper/payment/SingleFlight") {
  static readonly layer = Layer.sync(SingleFlight, () => {
    const flights = new Map<string, Flight>()
    return SingleFlight.of({
      join: (name) => {
        const underWay = flights.get(name)
        if (underWay !== undefined) return { flight: underWay, isLeader: false }
        const flight: Flight = new Flight(() => {
          if (flights.get(name) === flight) flights.delete(name)
        })
        flight.hold()
        flights.set(name, flight)
        return { flight, isLeader: true }
      }
    })
  })
}
