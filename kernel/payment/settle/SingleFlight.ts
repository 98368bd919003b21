// Identical requests of one principal in one process share a flight: one of them settles, the others wait for what is
// decided and hear it: pending with the hash as soon as the payment is recorded, or the same refusal. A flight lasts
// until the request that leads it has its answer and the work it started has reported. When its leader goes away and
// leaves nothing behind, one of those that wait leads the next.
import { Context, Deferred, Effect, Layer } from "effect"
import type { SettleAnswer } from "../Answer.ts"

/** What the others hear; `Abandoned` when nothing was decided. */
export type FlightResult = { readonly _tag: "Told"; readonly answer: SettleAnswer } | { readonly _tag: "Abandoned" }

/** A success is given to one request alone. */
const shared = (answer: SettleAnswer): SettleAnswer =>
  answer._tag === "Settled" ? { _tag: "Pending", payer: answer.payer, transaction: answer.transaction } : answer

export class Flight {
  readonly #result = Deferred.makeUnsafe<FlightResult>()
  readonly #onComplete: () => void
  #answer: SettleAnswer | undefined
  #holds = 0

  /** `landed` is called once nobody holds it any more. */
  constructor(onComplete: () => void) {
    this.#onComplete = onComplete
  }

  /** What the others are told, when it is decided. */
  get answer(): SettleAnswer | undefined {
    return this.#answer
  }

  /** What the others hear, when it is decided. */
  readonly result: Effect.Effect<FlightResult> = Effect.suspend(() => Deferred.await(this.#result))

  /** Decides what the others hear, unless that is decided. */
  publish(answer: SettleAnswer): void {
    this.#answer ??= shared(answer)
    Deferred.doneUnsafe(this.#result, Effect.succeed<FlightResult>({ _tag: "Told", answer: this.#answer }))
  }

  hold(): void {
    this.#holds += 1
  }

  release(): void {
    this.#holds -= 1
    if (this.#holds === 0) this.end()
  }

  /** Whoever comes later finds it no more. */
  end(): void {
    this.#onComplete()
    Deferred.doneUnsafe(this.#result, Effect.succeed<FlightResult>({ _tag: "Abandoned" }))
  }
}

export interface Joined {
  readonly flight: Flight
  /** Whoever begins a flight leads it, and holds it. */
  readonly isLeader: boolean
}

export class SingleFlight extends Context.Service<
  SingleFlight,
  {
    /** The flight of a name that is in the air, or a new one. */
    readonly join: (name: string) => Joined
  }
>()("tollkeeper/payment/SingleFlight") {
  static readonly layer = Layer.sync(SingleFlight, () => {
    const flights = new Map<string, Flight>()
    return SingleFlight.of({
      join: (name) => {
        const known = flights.get(name)
        if (known !== undefined) return { flight: known, isLeader: false }
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
