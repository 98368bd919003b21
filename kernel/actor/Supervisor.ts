// The supervisor owns every long-running fiber of the process, in the terms of OTP: a `permanent` actor is restarted
// whenever it ends, a `transient` one when it fails, a `temporary` one never. An actor that is restarted more often
// than its intensity allows escalates: the process ends with a clear error rather than limping on. An actor stops with
// the Scope that started it, so a plugin's actors end before the services under them.
import { Cause, Context, Deferred, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { contract, CurrentPlugin } from "../contract/Contract.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"

/** An actor was restarted `restarts` times within its window and keeps dying. */
class ActorGaveUp extends Schema.TaggedError<ActorGaveUp>()("ActorGaveUp", {
  actor: Schema.String,
  restarts: Schema.Int,
  cause: Schema.Defect()
}) {}

/** The last turn that a reconciler published. */
export interface LastRun {
  /** Its end: Unix milliseconds, and monotonic milliseconds for its age. */
  readonly endedAtMillis: number
  readonly endedMonotonicMillis: number
  readonly durationMillis: number
  readonly cause: "start" | "timer" | "wake"
  readonly outcome: "succeeded" | "failed"
}

interface ActorSpec<R> {
  /** Unique within its plugin. */
  readonly id: string
  readonly restart: "permanent" | "transient" | "temporary"
  /** Restarts allowed within the window; default 5. */
  readonly restartsMax?: number
  /** Default one minute. */
  readonly restartsWindow?: Duration.Input
  /** The actor's life. It takes no input and cannot fail: a turn handles its own failures. */
  readonly run: Effect.Effect<void, never, R>
  /** A reconciler's last turn; undefined before the first has ended. */
  readonly lastRun?: () => LastRun | undefined
}

export interface ActorState {
  readonly actor: string
  readonly state: "running" | "ended" | "gave-up"
  readonly restarts: number
  /** Absent for an actor without turns, and before the first turn has ended. */
  readonly lastRun?: LastRun
}

/** 100 ms, doubled with each recent death, at most 5 s. */
const restartDelay = (deaths: number): Duration.Duration => Duration.millis(Math.min(5_000, 100 * 2 ** (deaths - 1)))

export class Supervisor extends Context.Service<
  Supervisor,
  {
    /** Starts an actor in the current Scope and returns immediately. A second actor of the same name is a defect. */
    readonly start: <R>(spec: ActorSpec<R>) => Effect.Effect<void, never, R | Scope.Scope>
    /** Fails as soon as one actor gives up; the runtime ends the process on it. */
    readonly escalated: Effect.Effect<never, ActorGaveUp>
    readonly actors: Effect.Effect<ReadonlyArray<ActorState>>
  }
>()("tollkeeper/kernel/Supervisor") {
  static readonly layer = Layer.effect(
    Supervisor,
    Effect.gen(function* () {
      const states = new Map<string, ActorState>()
      const lastRuns = new Map<string, () => LastRun | undefined>()
      const escalation = yield* Deferred.make<never, ActorGaveUp>()

      const supervise = Effect.fnUntraced(function* <R>(
        actor: string,
        spec: ActorSpec<R>
      ): Effect.fn.Return<void, never, R> {
        const restartsMax = spec.restartsMax ?? 5
        const window = Duration.toMillis(Duration.fromInputUnsafe(spec.restartsWindow ?? "1 minute"))
        let deaths: ReadonlyArray<number> = []
        let restarts = 0
        while (true) {
          // The end of its Scope ends it. Any other interruption is a death like any other.
          const exit = yield* Effect.exit(spec.run)
          const died = exit._tag === "Failure"
          const again = spec.restart === "permanent" || (spec.restart === "transient" && died)
          if (died) yield* Effect.logError("an actor died", exit.cause)
          if (!again) {
            states.set(actor, { actor, state: "ended", restarts })
            return
          }
          const now = yield* monotonicMillis
          deaths = [...deaths.filter((at) => now - at < window), now]
          if (deaths.length > restartsMax) {
            states.set(actor, { actor, state: "gave-up", restarts })
            const cause = died ? Cause.squash(exit.cause) : "the actor keeps returning"
            yield* Deferred.fail(escalation, new ActorGaveUp({ actor, restarts, cause }))
            return
          }
          restarts += 1
          states.set(actor, { actor, state: "running", restarts })
          yield* Effect.sleep(restartDelay(deaths.length))
        }
      })

      const start = Effect.fnUntraced(function* <R>(
        spec: ActorSpec<R>
      ): Effect.fn.Return<void, never, R | Scope.Scope> {
        const plugin = yield* CurrentPlugin
        const actor = `${plugin}/${spec.id}`
        if (states.has(actor)) return yield* Effect.die(new Error(`two actors are named ${actor}`))
        states.set(actor, { actor, state: "running", restarts: 0 })
        if (spec.lastRun !== undefined) lastRuns.set(actor, spec.lastRun)
        yield* Effect.addFinalizer(() => Effect.sync(() => (lastRuns.delete(actor), states.delete(actor))))
        yield* Effect.forkScoped(supervise(actor, spec).pipe(Effect.annotateLogs({ actor })))
      })

      return Supervisor.of({
        start,
        escalated: Deferred.await(escalation),
        actors: Effect.sync(() =>
          [...states.values()].map((state) => {
            const lastRun = lastRuns.get(state.actor)?.()
            return lastRun === undefined ? state : { ...state, lastRun }
          })
        )
      })
    })
  )
}

export const supervisorContract = contract("supervisor", Supervisor)
