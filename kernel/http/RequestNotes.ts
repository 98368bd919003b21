// What a request was about, for the one line that is logged of it: the payer, the word of a refusal, the hash and the
// settlement, so that "what happened to my payment?" has an answer in the log. Whoever learns one of them notes it; a
// later word replaces an earlier one. Outside a request nothing is noted.
import { Context, Effect, type Fiber } from "effect"

export interface RequestFacts {
  readonly payer?: string
  /** A word of the house's own table. */
  readonly reason?: string
  /** Hex of the inner hash. */
  readonly transaction?: string
  readonly settlement?: string
}

/** What is noted of the request in whose fiber this runs. */
export const RequestNotes = Context.Reference<Record<string, string> | undefined>("tollkeeper/http/RequestNotes", {
  defaultValue: () => undefined
})

/** In the fiber that runs. */
export const noteUnsafe = (fiber: Fiber.Fiber<unknown, unknown>, facts: RequestFacts): void => {
  const notes = fiber.getRef(RequestNotes)
  if (notes !== undefined) Object.assign(notes, facts)
}

export const noteRequest = (facts: RequestFacts): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    noteUnsafe(fiber, facts)
    return Effect.void
  })
