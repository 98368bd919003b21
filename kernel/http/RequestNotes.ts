// Annotations for the log line of a request: the payer, the reason of a refusal, the hash and the settlement. So the
// log answers "what happened to my payment?". Code that learns one of them adds it; a later value replaces an earlier
// one. Outside a request, annotations are dropped.
import { Context, Effect, type Fiber } from "effect"

export interface RequestFacts {
  readonly payer?: string
  /** A reason code of this service. */
  readonly reason?: string
  /** Hex of the inner hash. */
  readonly transaction?: string
  readonly settlement?: string
}

/** The annotations of the request in the current fiber. */
export const RequestNotes = Context.Reference<Record<string, string> | undefined>("tollkeeper/http/RequestNotes", {
  defaultValue: () => undefined
})

export const noteUnsafe = (fiber: Fiber.Fiber<unknown, unknown>, facts: RequestFacts): void => {
  const notes = fiber.getRef(RequestNotes)
  if (notes !== undefined) Object.assign(notes, facts)
}

export const noteRequest = (facts: RequestFacts): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    noteUnsafe(fiber, facts)
    return Effect.void
  })
