// Identical requests of one principal in one process share a flight: one of them settles, the others wait for what is
// decided and hear it: pending with the hash as soon as the payment is recorded, or the same refusal. A flight lasts
// until the request that leads it has its answer and the work it started has reported. When its leader goes away and
// leaves nothing behind, one of those that wait leads the next.
import { Context, Deferred, Effect, Layer } from "effect"
import type { SettleAnswer } from "../Answer.ts"

/** What the others hear; `Abandoned` when nothing was decided. */
export type Told = { readonly _tag: "Told"; readonly answer: SettleAnswer } | { readonly _tag: "Abandoned" }

/** A success is given to one request alone. */
const shared = (answer: SettleAnswer): SettleAnswer =>
  answer._tag === "Settled" ? { _tag: "Pending", payer: answer.payer, transaction: answer.transaction } : answer

export class Flight {
  readonly #told = Deferred.makeUnsafe<Told>()
  readonly #landed: () => void
  #answer: SettleAnswer | undefined
  #holds = 0

  /** `landed` is called once nobody holds it any more. */
  constructor(landed: () => void) {
    this.#landed = landed
  }

  /** What the others are told, when it is decided. */
  get answer(): SettleAnswer | undefined {
    return this.#answer
  }

  /** What the others hear, when it is decided. */
  readonly told: Effect.Effect<Told> = Effect.suspend(() => Deferred.await(this.#told))

  /** Decides what the others hear, unless that is decided. */
  tell(answer: SettleAnswer): void {
    this.#answer ??= shared(answer)
    Deferred.doneUnsafe(this.#told, Effect.succeed<Told>({ _tag: "Told", answer: this.#answer }))
  }

  hold(): void {
    this.#holds += 1
  }

  letGo(): void {
    this.#holds -= 1
    if (this.#holds === 0) this.end()
  }

  /** Whoever comes later finds it no more. */
  end(): void {
    this.#landed()
    Deferred.doneUnsafe(this.#told, Effect.succeed<Told>({ _tag: "Abandoned" }))
  }
}

export interface Boarded {
  readonly flight: Flight
  /** Whoever begins a flight leads it, and holds it. */
  readonly isLeader: boolean
}

export class Flights extends Context.Service<
  Flights,
  {
    /** The flight of a name that is in the air, or a new one. */
    readonly board: (name: string) => Boarded
  }
>()("tollkeeper/payment/Flights") {
  static readonly layer = Layer.sync(Flights, () => {
    const flights = new Map<string, Flight>()
    return Flights.of({
      board: (name) => {
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
