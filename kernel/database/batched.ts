// Batches calls of one kind into one statement: calls made while a statement is under way are sent together with the
// next one. No call waits to be batched: without a statement under way it starts in the same moment, with the other
// calls of that moment. A statement never holds two calls of one key, so that an update affects each of its rows once;
// the later one goes into the next. A failure of any kind is returned to all calls of its batch, and to no other. An
// interrupted caller withdraws its call, unless its statement is under way: that one may still be executed. If callers
// do not await the answers, set a pause between statements, because each statement wakes a database process. Once the
// Scope has ended no statement is started any more: later and waiting calls are interrupted.
import { Deferred, Effect, Exit } from "effect"
import { monotonicMillis } from "../time/monotonicMillis.ts"

interface BatchOptions<A, B, E, R> {
  readonly maxBatchSize: number
  /** Two calls of one statement may not share this key; without it any calls may be batched. */
  readonly keyOf?: (call: A) => string
  /** Minimum time between the starts of two statements, milliseconds. Default: none. */
  readonly minIntervalMillis?: number
  /** Returns the answers to some calls, in their order. */
  readonly runBatch: (calls: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E, R>
}

interface Call<A, B, E> {
  readonly given: A
  readonly answer: Deferred.Deferred<B, E>
}

/**
 * Takes the calls of the next statement: the first of each key, in the order of keys. So the statements of two
 * processes lock shared rows in the same order, and do not deadlock.
 */
const takeNext = <A, B, E, R>(
  waiting: Array<Call<A, B, E>>,
  { maxBatchSize: callsMax, keyOf }: BatchOptions<A, B, E, R>
) => {
  const next = new Map<string, Call<A, B, E>>()
  const later: Array<Call<A, B, E>> = []
  for (const [at, call] of waiting.splice(0).entries()) {
    const key = keyOf?.(call.given) ?? String(at)
    if (next.size < callsMax && !next.has(key)) next.set(key, call)
    else later.push(call)
  }
  waiting.push(...later)
  return [...next].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, call]) => call)
}

/** Batches calls of this kind; the statements end with the Scope. */
export const batched = Effect.fnUntraced(function* <A, B, E, R>(gathering: BatchOptions<A, B, E, R>) {
  const scope = yield* Effect.scope
  const services = yield* Effect.context<R>()
  const waiting: Array<Call<A, B, E>> = []
  let isUnderWay = false
  let begunAt = -Infinity

  const rest = Effect.gen(function* () {
    const { minIntervalMillis: restMillis = 0 } = gathering
    if (restMillis === 0) return
    const passed = (yield* monotonicMillis) - begunAt
    // If the clock went back, do not sleep.
    if (passed >= 0 && passed < restMillis) yield* Effect.sleep(restMillis - passed)
    begunAt = yield* monotonicMillis
  })
  const step = Effect.gen(function* () {
    yield* rest
    const calls = takeNext(waiting, gathering)
    if (calls.length === 0) return
    const exit = yield* Effect.exit(gathering.runBatch(calls.map(({ given }) => given)))
    for (const [at, { answer }] of calls.entries())
      Deferred.doneUnsafe(answer, Exit.isSuccess(exit) ? Exit.succeed(exit.value[at]!) : Exit.failCause(exit.cause))
  })
  /** Evaluated in one turn with the answer, so that the next call finds the loop ended, or is batched. */
  const hasWaiting = (): boolean => {
    isUnderWay = waiting.length > 0
    return isUnderWay
  }
  /** Interrupts waiting calls that would never be answered. */
  const ended = (exit: Exit.Exit<void>): void => {
    if (Exit.isSuccess(exit)) return
    isUnderWay = false
    for (const { answer } of waiting.splice(0)) Deferred.doneUnsafe(answer, Effect.interrupt)
  }
  const runAll = Effect.provideContext(
    Effect.whileLoop({ while: hasWaiting, body: () => step, step: () => undefined }),
    services
  )
  // Uses the end of the fiber, not of the effect: in an ended Scope the effect never begins.
  const run = Effect.map(Effect.forkIn(runAll, scope), (fiber) => void fiber.addObserver(ended))

  return (given: A): Effect.Effect<B, E> =>
    Effect.suspend(() => {
      const call: Call<A, B, E> = { given, answer: Deferred.makeUnsafe() }
      waiting.push(call)
      const answer = Deferred.await(call.answer).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            const at = waiting.indexOf(call)
            if (at >= 0) waiting.splice(at, 1)
          })
        )
      )
      if (isUnderWay) return answer
      isUnderWay = true
      // The loop begins after everything that already runs has had its turn.
      return Effect.andThen(run, answer)
    })
})
