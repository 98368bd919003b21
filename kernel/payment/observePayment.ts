// Runs the extensions that a payment carries, after the decision, and writes what they say as the `EXTENSION-RESPONSES`
// header: standard base64 of a JSON object under the keys that were sent. Each has 50 ms; later than that it goes on by
// itself and the header says `processing`. Nothing an extension does can change or delay an answer further (S254–S257,
// decisions 3 and 4).
import { Deferred, Effect, Option, type Scope } from "effect"
import { Base64 } from "effect/encoding"
import type { ExtensionOutcome, Extensions, PaymentObservation } from "./Extension.ts"
import { spanned } from "../spanned.ts"

const timeMax = "50 millis"
/** Characters of the header at most, well below what HTTP clients take. */
const headerMax = 2_048

const processing: ExtensionOutcome = { status: "processing" }

/** A form that no observer is shown. */
const invalid: ExtensionOutcome = { status: "rejected", rejectedReason: "schema_invalid" }

/** The header's value, or None when the payment carries no extension that anybody observes. */
export const observePayment = Effect.fnUntraced(function* (
  extensions: Extensions["Service"],
  observation: PaymentObservation,
  scope: Scope.Scope
) {
  const sent = [...observation.payment.extensions]
  const known = extensions.keys()
  const dropped = sent.flatMap(([key, { isDropped, sentKey }]) =>
    isDropped === true && known.includes(key) ? [[sentKey, invalid] as const] : []
  )
  const observed = sent.flatMap(([key, { isDropped, sentKey }]) =>
    isDropped === true
      ? []
      : Option.match(extensions.find(key), { onNone: () => [], onSome: (extension) => [{ sentKey, extension }] })
  )
  if (observed.length + dropped.length === 0) return Option.none<string>()
  const outcomes = yield* Effect.forEach(
    observed,
    ({ extension, sentKey }) =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<ExtensionOutcome>()
        const run = Effect.suspend(() => extension.observe(observation)).pipe(
          Effect.catchCause((cause) =>
            Effect.as(Effect.logError(`extension ${extension.key} failed`, cause), processing)
          ),
          Effect.flatMap((outcome) => Deferred.succeed(answer, outcome))
        )
        yield* Effect.forkIn(run, scope, { startImmediately: true })
        // Most are answered from memory at once: no timer and no turn of the loop for those.
        const outcome = (yield* Deferred.isDone(answer))
          ? yield* Deferred.await(answer)
          : Option.getOrElse(yield* Effect.timeoutOption(Deferred.await(answer), timeMax), () => processing)
        return [sentKey, outcome] as const
      }),
    { concurrency: "unbounded" }
  )
  const header = Base64.encode(JSON.stringify(Object.fromEntries([...dropped, ...outcomes])))
  return header.length <= headerMax ? Option.some(header) : Option.none<string>()
}, spanned("payment.extensions"))
