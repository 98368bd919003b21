// A fair scheduler: bounded concurrency, in all and by caller, and a bounded queue, served round-robin across callers,
// so that a flood delays only itself. When the queue is full, a newcomer that holds fewer places evicts the last place
// of the caller that holds most, and work that is free for its payer is evicted before paid work or an owner's. An
// evicted waiter is refused immediately.
import { Deferred, Effect, Option } from "effect"

interface FairCaller {
  readonly name: string
  /** It cost its caller nothing. */
  readonly isFree: boolean
}

interface Place {
  readonly isFree: boolean
  /** It is running. */
  isGiven: boolean
  /** Resolves to true when it may run, to false when it was evicted. */
  readonly turn: Deferred.Deferred<boolean>
}

const countFree = (places: ReadonlyArray<Place>): number => places.filter(({ isFree }) => isFree).length

export class FairScheduler {
  readonly #concurrentMax: number
  readonly #perCallerMax: number
  readonly #waitingMax: number
  #atWork = 0
  readonly #working = new Map<string, number>()
  #waiting = 0
  /** In the order of turns: a caller that had one goes to the end. */
  readonly #places = new Map<string, Array<Place>>()

  constructor(bounds: {
    readonly concurrentMax: number
    /** Default: all. */
    readonly perCallerMax?: number
    readonly waitingMax: number
  }) {
    this.#concurrentMax = bounds.concurrentMax
    this.#perCallerMax = bounds.perCallerMax ?? bounds.concurrentMax
    this.#waitingMax = bounds.waitingMax
  }

  /** None when the queue was full, or when the waiter was evicted. */
  run<A, E, R>(asker: FairCaller, work: Effect.Effect<A, E, R>): Effect.Effect<Option.Option<A>, E, R> {
    return Effect.uninterruptibleMask((restore) => {
      const worked = Effect.asSome(restore(work)).pipe(Effect.ensuring(Effect.sync(() => this.#end(asker.name))))
      if (this.#mayBegin(asker.name)) {
        this.#begin(asker.name)
        return worked
      }
      const place: Place = { isFree: asker.isFree, isGiven: false, turn: Deferred.makeUnsafe<boolean>() }
      if (!this.#enter(asker.name, place)) return Effect.succeedNone
      return restore(Deferred.await(place.turn)).pipe(
        Effect.onInterrupt(() => Effect.sync(() => this.#abandon(asker.name, place))),
        Effect.flatMap((isMine) => (isMine ? worked : Effect.succeedNone))
      )
    })
  }

  #enter(name: string, place: Place): boolean {
    if (this.#waiting >= this.#waitingMax && !this.#makeRoom(name, place)) return false
    const mine = this.#places.get(name)
    if (mine === undefined) this.#places.set(name, [place])
    else mine.push(place)
    this.#waiting += 1
    return true
  }

  /** Evicts the last place of the caller that holds most, free work first; false when none holds more than this one. */
  #makeRoom(name: string, { isFree }: Place): boolean {
    const mine = this.#places.get(name) ?? []
    if (!isFree && this.#evict(countFree, 0)) return true
    return isFree ? this.#evict(countFree, countFree(mine) + 1) : this.#evict(({ length }) => length, mine.length + 1)
  }

  #evict(countOf: (places: ReadonlyArray<Place>) => number, more: number): boolean {
    let most = more + 1
    let holder: string | undefined
    for (const [name, places] of this.#places) {
      const count = countOf(places)
      // On a tie, evict the caller that would wait longest anyway.
      if (count >= most) [most, holder] = [count, name]
    }
    if (holder === undefined) return false
    const places = this.#places.get(holder)!
    const lastFree = places.findLastIndex(({ isFree }) => isFree)
    const [lost] = places.splice(lastFree === -1 ? places.length - 1 : lastFree, 1)
    this.#left(holder, places)
    Deferred.doneUnsafe(lost!.turn, Effect.succeed(false))
    return true
  }

  #left(name: string, places: ReadonlyArray<Place>): void {
    this.#waiting -= 1
    if (places.length === 0) this.#places.delete(name)
  }

  #mayBegin(name: string): boolean {
    return this.#atWork < this.#concurrentMax && (this.#working.get(name) ?? 0) < this.#perCallerMax
  }

  #begin(name: string): void {
    this.#atWork += 1
    this.#working.set(name, (this.#working.get(name) ?? 0) + 1)
  }

  /** Ends a turn, and gives it to the next waiter whose caller may have it. */
  #end(ended: string): void {
    this.#atWork -= 1
    const left = this.#working.get(ended)! - 1
    if (left === 0) this.#working.delete(ended)
    else this.#working.set(ended, left)
    for (const [name, places] of this.#places) {
      if (!this.#mayBegin(name)) continue
      const place = places.shift()!
      this.#left(name, places)
      this.#places.delete(name)
      if (places.length > 0) this.#places.set(name, places)
      this.#begin(name)
      place.isGiven = true
      Deferred.doneUnsafe(place.turn, Effect.succeed(true))
      return
    }
  }

  /** A cancelled waiter releases its place, and also the turn if it received one in the same moment. */
  #abandon(name: string, place: Place): void {
    if (place.isGiven) return this.#end(name)
    const places = this.#places.get(name) ?? []
    const at = places.indexOf(place)
    if (at === -1) return
    places.splice(at, 1)
    this.#left(name, places)
  }
}
