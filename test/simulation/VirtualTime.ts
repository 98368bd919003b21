// Time that advances only when there is nothing else to do. Fibers run on a scheduler that keeps its tasks in a list,
// and sleep on a clock that keeps its sleepers in order; one synchronous loop drives both. So a minute of waiting costs
// nothing, and only the seed determines the order of events.
import { type Clock, Effect, Scheduler } from "effect"

interface Sleeper {
  readonly at: number
  readonly order: number
  readonly wake: () => void
}

const before = (a: Sleeper, b: Sleeper): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

export class VirtualTime {
  now: number
  readonly scheduler: Scheduler.Scheduler
  readonly clock: Clock.Clock
  #tasks: Array<() => void> = []
  /** A binary heap, the earliest first. */
  readonly #sleepers: Array<Sleeper> = []
  #order = 0

  constructor(startMillis: number) {
    this.now = startMillis
    this.scheduler = new Scheduler.MixedScheduler("async", (task) => {
      let isAwaited = true
      this.#tasks.push(() => {
        if (isAwaited) task()
      })
      return () => {
        isAwaited = false
      }
    })
    const millis = () => this.now
    const nanos = () => BigInt(this.now) * 1_000_000n
    this.clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration: any) =>
        Effect.callback<void>((resume) => {
          let isAwaited = true
          this.at(this.now + Math.max(0, Math.ceil(durationMillis(duration))), () => {
            if (isAwaited) resume(Effect.void)
          })
          return Effect.sync(() => {
            isAwaited = false
          })
        })
    } as unknown as Clock.Clock
  }

  /** Runs `wake` at this time, after all earlier ones. */
  at(millis: number, wake: () => void): void {
    const heap = this.#sleepers
    const sleeper = { at: millis, order: this.#order++, wake }
    let index = heap.push(sleeper) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!before(sleeper, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = sleeper
  }

  after(millis: number, wake: () => void): void {
    this.at(this.now + millis, wake)
  }

  #earliest(): Sleeper | undefined {
    const heap = this.#sleepers
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let index = 0
    while (true) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (!before(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return first
  }

  /** Runs until `isDone`, until nothing can happen any more, or past `untilMillis`; true if it was done. */
  run(isDone: () => boolean, untilMillis: number): boolean {
    while (true) {
      while (this.#tasks.length > 0) {
        const tasks = this.#tasks
        this.#tasks = []
        for (const task of tasks) task()
      }
      if (isDone()) return true
      // Later events stay for the next run.
      if ((this.#sleepers[0]?.at ?? Infinity) > untilMillis) return false
      this.#wakeNext()
    }
  }

  /** Runs code that awaits promises, until `isDone`: after each event every promise continues as far as it can. */
  async runPromises(isDone: () => boolean): Promise<void> {
    do {
      await new Promise((next) => setImmediate(next))
      if (this.#sleepers.length === 0 && !isDone()) throw new Error("nothing can happen any more")
      if (!isDone()) this.#wakeNext()
    } while (!isDone())
  }

  #wakeNext(): void {
    const next = this.#earliest()!
    this.now = Math.max(this.now, next.at)
    next.wake()
  }
}

const durationMillis = (duration: {
  readonly value: { readonly _tag: string; readonly millis?: number; readonly nanos?: bigint }
}): number =>
  duration.value._tag === "Millis"
    ? duration.value.millis!
    : duration.value._tag === "Nanos"
      ? Number(duration.value.nanos!) / 1e6
      : 1e12
