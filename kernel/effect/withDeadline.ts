// Runs an effect with a deadline: a request that waits for a payment's answer, a statement for the database. The effect
// runs in a fiber of an owner that outlives the wait. On timeout, or when interrupted, the caller continues
// immediately; the effect is interrupted and abandoned, since the end of a statement that a database does not answer,
// or of a finalizer behind it, may take as long as the answer. If something else interrupts the effect (its owner's
// end, or that of a pool below it), it has not answered either: its caller gets the timeout's result, never another
// fiber's interruption.
//
// It is on the path of every request and of every statement: an effect that completes synchronously costs a fiber and
// nothing more, and nothing of an ended wait is retained (`LinkedList.ts`). No generator function is created per use:
// its first call would give it a separate hidden class, which retains everything it references.
import { Cause, Clock, Duration, Effect, type Exit, Fiber, Scope } from "effect"
import { type ListNode, LinkedList } from "./LinkedList.ts"

/** The abandoned fiber: done once it has really ended. */
export type AbandonedFiber = Effect.Effect<unknown>

/** An end that many can await at the cost of one fiber. */
interface Shutdown {
  /** Calls back at the end, or immediately if it has already come; the returned function cancels the callback. */
  readonly onEnd: (ended: () => void) => () => void
}

/** The end of an effect that runs while the Scope lives. */
export const shutdownFrom = Effect.fnUntraced(function* (end: Effect.Effect<void>) {
  const listeners = new LinkedList<() => void>()
  let hasEnded = false
  const report = Effect.sync(() => {
    hasEnded = true
    for (const listener of listeners.toArray()) listener()
  })
  yield* Effect.forkIn(Effect.andThen(end, report), yield* Effect.scope)
  const ending: Shutdown = {
    onEnd: (ended) => {
      if (hasEnded) {
        ended()
        return () => {}
      }
      const node = listeners.append(ended)
      return () => void listeners.remove(node)
    }
  }
  return ending
})

export interface DeadlineOptions<out A, out E, out R> {
  readonly timeout: Duration.Input
  /** Ends the wait before the timeout; default never. */
  readonly cancelOn?: Shutdown
  /** The owner of the fiber, which ends with it. */
  readonly scope: Scope.Scope
  /** The answer on timeout, or when the owner ends. */
  readonly onTimeout: Effect.Effect<A, E, R>
  /** Called with the abandoned fiber, before it is interrupted. */
  readonly onAbandon?: (leftover: AbandonedFiber) => void
}

interface Wait {
  /** When the wait expires, nanoseconds of the monotonic clock. */
  readonly end: bigint
  /** Its node in the list of waits; undefined without a deadline. */
  node: ListNode<Wait> | undefined
  isOver: boolean
  reported: () => void
}

/**
 * The deadlines of all waits with the same length, clock and owner. They expire in the order of their begin, so one
 * timer fiber sleeps until the next deadline while there is a waiter. A fiber and a timer for each wait would cost a
 * busy process as much as many of the effects.
 */
class Deadlines {
  readonly #clock: Clock.Clock
  /** Undefined: no deadline. */
  readonly #nanos: bigint | undefined
  readonly #waits = new LinkedList<Wait>()
  /** The timer fiber; undefined without a waiter. */
  #sleeper: { fiber?: Fiber.Fiber<void> } | undefined

  constructor(clock: Clock.Clock, millis: number) {
    this.#clock = clock
    this.#nanos = Number.isFinite(millis) ? BigInt(Math.ceil(millis * 1e6)) : undefined
  }

  /** Begins a wait now, by the current fiber's clock. */
  readonly begin: Effect.Effect<Wait> = Effect.suspend(() => {
    const end = this.#clock.monotonicTimeNanosUnsafe() + (this.#nanos ?? 0n)
    const wait: Wait = { end, node: undefined, isOver: false, reported: () => {} }
    if (this.#nanos === undefined) return Effect.succeed(wait)
    wait.node = this.#waits.append(wait)
    if (this.#sleeper !== undefined) return Effect.succeed(wait)
    const sleeper: { fiber?: Fiber.Fiber<void> } = {}
    this.#sleeper = sleeper
    return Effect.map(Effect.forkDetach(Effect.interruptible(this.#sleep(sleeper))), (fiber) => {
      sleeper.fiber = fiber
      return wait
    })
  })

  finish({ node }: Wait): void {
    if (node === undefined || !this.#waits.remove(node) || !this.#waits.isEmpty) return
    this.#sleeper?.fiber?.interruptUnsafe()
    this.#sleeper = undefined
  }

  #sleep(sleeper: object): Effect.Effect<void> {
    return Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
      // Another timer fiber replaced this one, or no waiter is left.
      if (this.#sleeper !== sleeper) return Effect.void
      for (let wait = this.#waits.first; wait !== undefined; wait = this.#waits.first) {
        if (wait.end > now)
          return Effect.flatMap(Effect.sleep(Duration.nanos(wait.end - now)), () => this.#sleep(sleeper))
        this.#waits.remove(wait.node!)
        wait.isOver = true
        wait.reported()
      }
      if (this.#sleeper === sleeper) this.#sleeper = undefined
      return Effect.void
    })
  }
}

type AnyFiber = Fiber.Fiber<unknown, unknown>

/**
 * The running fibers of an owner, and the deadlines they wait for, by clock and length. A process has one clock and a
 * few lengths. In tests there is also the test clock, and the two clocks cannot share deadlines.
 */
class OwnedFibers {
  readonly #running = new LinkedList<AnyFiber>()
  readonly #deadlines = new WeakMap<Clock.Clock, Map<number, Deadlines>>()
  #isClosed = false

  deadlines(clock: Clock.Clock, millis: number): Deadlines {
    let lengths = this.#deadlines.get(clock)
    if (lengths === undefined) this.#deadlines.set(clock, (lengths = new Map()))
    let deadlines = lengths.get(millis)
    if (deadlines === undefined) lengths.set(millis, (deadlines = new Deadlines(clock, millis)))
    return deadlines
  }

  /** The returned fiber has begun, and usually ended. */
  run<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Fiber.Fiber<A, E>, never, R> {
    const begun = this.#isClosed ? Effect.interrupt : Effect.interruptible(effect)
    return Effect.map(Effect.forkDetach(begun, { startImmediately: true }), (fiber) => {
      if (fiber.pollUnsafe() !== undefined) return fiber
      const node = this.#running.append(fiber)
      fiber.addObserver(() => void this.#running.remove(node))
      return fiber
    })
  }

  /** Interrupts the running fibers and waits for their end; the caller may be one of them. */
  readonly close = Effect.withFiber((closing) => {
    this.#isClosed = true
    return Fiber.interruptAll(this.#running.toArray().filter((fiber) => fiber !== closing))
  })
}

const owners = new WeakMap<Scope.Scope, OwnedFibers>()

const own = (owner: Scope.Scope): Effect.Effect<OwnedFibers> =>
  Effect.suspend(() => {
    const owned = new OwnedFibers()
    owners.set(owner, owned)
    return Effect.as(Scope.addFinalizer(owner, owned.close), owned)
  })

/** The fiber's exit; undefined if the wait expires first. */
const exitOf = <A, E>(fiber: Fiber.Fiber<A, E>, wait: Wait, until: Shutdown | undefined) =>
  Effect.callback<Exit.Exit<A, E> | undefined>((resume) => {
    const stops: Array<() => void> = []
    let isReceived = false
    const stop = () => {
      for (const one of stops.splice(0)) one()
    }
    const receive = (exit: Exit.Exit<A, E> | undefined) => {
      if (isReceived) return
      isReceived = true
      stop()
      resume(Effect.succeed(exit))
    }
    wait.reported = () => receive(undefined)
    if (wait.isOver) receive(undefined)
    // Each may have ended already, and then reports immediately.
    if (until !== undefined) stops.push(until.onEnd(() => receive(undefined)))
    stops.push(fiber.addObserver(receive))
    if (isReceived) stop()
    return Effect.sync(() => {
      isReceived = true
      stop()
    })
  })

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** The effect's result. This caller is not interrupted, so an interruption in it came from elsewhere. */
const answerOf = <A, E, R>(exit: Exit.Exit<A, E>, late: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause) ? late : exit

/** The path of an effect that does not complete synchronously. */
const waitFor = Effect.fnUntraced(function* <A, E, R>(
  fiber: Fiber.Fiber<A, E>,
  { onTimeout: late, onAbandon: left, timeout: longest, cancelOn: until }: DeadlineOptions<A, E, R>,
  owned: OwnedFibers,
  restore: Restore
): Effect.fn.Return<A, E, R> {
  const leave = () => {
    if (fiber.pollUnsafe() !== undefined) return
    left?.(Fiber.await(fiber))
    fiber.interruptUnsafe()
  }
  const ends = owned.deadlines(yield* Clock.Clock, Duration.toMillis(Duration.fromInputUnsafe(longest)))
  const wait = yield* ends.begin
  const exit = yield* restore(Effect.interruptible(exitOf(fiber, wait, until))).pipe(
    Effect.onInterrupt(() =>
      Effect.sync(() => {
        ends.finish(wait)
        leave()
      })
    )
  )
  ends.finish(wait)
  if (exit !== undefined) return yield* answerOf(exit, late)
  leave()
  return yield* late
})

/** Also bounds the wait in an uninterruptible region: a COMMIT, a ROLLBACK. */
export const withDeadline = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  patience: DeadlineOptions<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) => {
    const bounded = (owned: OwnedFibers) =>
      Effect.flatMap(owned.run(effect), (fiber): Effect.Effect<A, E, R> => {
        const exit = fiber.pollUnsafe()
        return exit === undefined ? waitFor(fiber, patience, owned, restore) : answerOf(exit, patience.onTimeout)
      })
    const owned = owners.get(patience.scope)
    return owned === undefined ? Effect.flatMap(own(patience.scope), bounded) : bounded(owned)
  })
