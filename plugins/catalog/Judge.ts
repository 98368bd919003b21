// Reads a declaration and has it recorded, in turns: declarations are read in a share of the process's time, and
// recorded a few at once. Who has too many waiting is told so at once; a database that fails is the seller's
// `catalog_unavailable` and the operator's log.
import { Context, Effect, Layer, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import type { PaymentObservation } from "../../kernel/payment/Extension.ts"
import { Config } from "./Config.ts"
import { type Declaration, type Identity, isRejection, type Rejection } from "./declaration/Declaration.ts"
import { offerOf, readDeclaration } from "./declaration/DeclarationWire.ts"
import { makePace } from "./declaration/paceWork.ts"
import { makeValidator } from "./declaration/validateInfo.ts"
import { Hints } from "./ownership/Hints.ts"
import { Listings } from "./store/Listings.ts"
import { type Carrier, type Recorded, rejected, unavailable } from "./store/Recorded.ts"

/** Recordings at once, and how many may wait for their turn. */
const recordingsMax = 4
const waitingMax = 64

/**
 * Declarations are read in a share of the process's time, whoever sends how many of whatever kind; and so many of one
 * payer may wait.
 */
const readingPace = { share: 0.2, burstMillis: 1_000 }
const waitingPerPayerMax = 8

export interface Judged {
  /** What was declared, as far as it could be read. */
  readonly identity: Identity | undefined
  readonly recorded: Recorded
}

const crowded = unavailable("too many declarations at once")

const failed = (error: SqlError.SqlError) =>
  Effect.as(
    Effect.logError("a declaration could not be recorded", error),
    unavailable(`database: ${error.reason._tag}`)
  )

/** Who waits for its declaration to be read, in all and by payer. */
class ReadingQueue {
  #all = 0
  readonly #byPayer = new Map<string, number>()

  /** False when there is no place. */
  enter(payer: string): boolean {
    const mine = this.#byPayer.get(payer) ?? 0
    if (this.#all >= waitingMax || mine >= waitingPerPayerMax) return false
    this.#all += 1
    this.#byPayer.set(payer, mine + 1)
    return true
  }

  leave(payer: string): void {
    this.#all -= 1
    const left = this.#byPayer.get(payer)! - 1
    if (left === 0) this.#byPayer.delete(payer)
    else this.#byPayer.set(payer, left)
  }
}

export class Judge extends Context.Service<
  Judge,
  {
    readonly judge: (
      observation: PaymentObservation,
      sentKey: string,
      value: unknown,
      grade: Carrier["grade"],
      now: Date
    ) => Effect.Effect<Judged>
  }
>()("tollkeeper/catalog/Judge") {
  static readonly layer = Layer.effect(
    Judge,
    Effect.gen(function* () {
      const config = yield* Config
      const listings = yield* Listings
      const hints = yield* Hints
      const permits = yield* Semaphore.make(recordingsMax)
      const validate = makeValidator()
      const pace = makePace(readingPace)
      const queue = new ReadingQueue()
      let waiting = 0

      const read = (
        { payer, payment }: PaymentObservation,
        sentKey: string,
        value: unknown
      ): Effect.Effect<Declaration | Rejection | undefined> =>
        Effect.suspend(() =>
          queue.enter(payer)
            ? pace(() => readDeclaration(offerOf(payment), sentKey, value, { config, validate })).pipe(
                Effect.ensuring(Effect.sync(() => queue.leave(payer)))
              )
            : Effect.succeed(undefined)
        )

      const judge = Effect.fnUntraced(function* (
        observation: PaymentObservation,
        sentKey: string,
        value: unknown,
        grade: Carrier["grade"],
        now: Date
      ) {
        const declaration = yield* read(observation, sentKey, value)
        if (declaration === undefined) return { identity: undefined, recorded: crowded }
        const { identity } = declaration
        if (isRejection(declaration)) return { identity, recorded: rejected(declaration.reason, declaration.detail) }
        if (waiting >= waitingMax) return { identity, recorded: crowded }
        waiting += 1
        const { payer, stage } = observation
        const recorded = yield* listings
          .record(declaration, { stage, payer, grade, now })
          .pipe(permits.withPermits(1), Effect.ensuring(Effect.sync(() => (waiting -= 1))), Effect.catch(failed))
        if (recorded.isHint === true) yield* hints.ask(declaration.identity, declaration.operation.method, payer)
        return { identity, recorded }
      })

      return Judge.of({ judge })
    })
  )
}
