// Runs the extensions that a payment carries, after the decision, and writes their answers as the `EXTENSION-RESPONSES`
// header: standard base64 of a JSON object under the keys that were sent. Each has 50 ms; after that it continues in
// the background and the header reports `processing`. An extension can neither change an answer nor delay it further
// (S254–S257, rules 3 and 4).
import { Clock, Effect, Fiber, Option, type Scope } from "effect"
import { Base64 } from "effect/encoding"
import type { Extension, ExtensionOutcome, Extensions, PaymentObservation } from "./Extension.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

const timeMax = "50 millis"
/** Maximum length of the header, well below the limits of HTTP clients. */
const headerMax = 2_048

const processing: ExtensionOutcome = { status: "processing" }

/** The outcome for an invalid form, which we show to no observer. */
const invalid: ExtensionOutcome = { status: "rejected", rejectedReason: "schema_invalid" }

/** An error of an observer is logged, and does not become an outcome. */
const observing = (extension: Extension, observation: PaymentObservation) =>
  Effect.catchCause(
    Effect.suspend(() => extension.observe(observation)),
    (cause) => Effect.as(Effect.logError(`extension ${extension.key} failed`, cause), processing)
  )

interface RunningObservation {
  readonly sentKey: string
  readonly fiber: Fiber.Fiber<ExtensionOutcome>
}

const hasEnded = ({ fiber }: RunningObservation): boolean => fiber.pollUnsafe() !== undefined

/** Its result, if it has completed. */
const outcomeOf = ({ fiber }: RunningObservation): ExtensionOutcome => {
  const exit = fiber.pollUnsafe()
  return exit?._tag === "Success" ? exit.value : processing
}

const observe = Effect.fnUntraced(function* (
  extensions: Extensions["Service"],
  observation: PaymentObservation,
  scope: Scope.Scope
) {
  const outcomes: Record<string, ExtensionOutcome> = {}
  const running: Array<RunningObservation> = []
  const now = yield* Clock.currentTimeMillis
  for (const [key, { isDropped, sentKey }] of observation.payment.extensions)
    if (isDropped === true && extensions.isKnown(key)) outcomes[sentKey] = invalid
  for (const [key, { isDropped, sentKey }] of observation.payment.extensions) {
    const extension = isDropped === true ? Option.none() : extensions.find(key)
    if (Option.isNone(extension)) continue
    let recalled: ExtensionOutcome | undefined
    try {
      recalled = extension.value.recall?.(observation, now)
    } catch (defect) {
      yield* Effect.logError(`extension ${key} failed to recall`, defect)
    }
    if (recalled !== undefined) {
      outcomes[sentKey] = recalled
      continue
    }
    const observed = observing(extension.value, observation)
    running.push({ sentKey, fiber: yield* Effect.forkIn(observed, scope, { startImmediately: true }) })
  }
  // Most observations are cache hits, answered synchronously: those need no timer and no turn of the event loop.
  const late = running.filter((one) => !hasEnded(one))
  if (late.length > 0)
    yield* Effect.forEach(late, ({ fiber }) => Effect.timeoutOption(Fiber.await(fiber), timeMax), {
      concurrency: "unbounded",
      discard: true
    })
  for (const one of running) outcomes[one.sentKey] = outcomeOf(one)
  if (Object.keys(outcomes).length === 0) return Option.none<string>()
  const header = Base64.encode(JSON.stringify(outcomes))
  return header.length <= headerMax ? Option.some(header) : Option.none<string>()
})

/** The header's value, or None if no observer handles an extension of the payment. */
export const observePayment = (
  extensions: Extensions["Service"],
  observation: PaymentObservation,
  scope: Scope.Scope
): Effect.Effect<Option.Option<string>> =>
  withSpanIfSampled("payment.extensions")(
    observation.payment.extensions.size === 0 ? Effect.succeedNone : observe(extensions, observation, scope)
  )
