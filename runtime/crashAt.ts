// For tests only: ends the process without warning, as a power cut would, at a named step of a payment.
import { Effect } from "effect"
import process from "node:process"
import { CrashPoints, type Step, steps } from "../kernel/settlement/CrashPoints.ts"

const isStep = (name: string): name is Step => (steps as ReadonlyArray<string>).includes(name)

/** Provides crash points that kill this process at `name`; none when it is absent. */
export const crashAt =
  (name: string | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    name === undefined || !isStep(name)
      ? effect
      : Effect.provideService(effect, CrashPoints, (step: Step) =>
          step === name
            ? Effect.sync(() => void process.kill(process.pid, "SIGKILL")).pipe(Effect.andThen(Effect.never))
            : Effect.void
        )
