// A request's body in one piece, as a port: it reads up to a limit and no further, within a timeout. A platform without
// its own implementation reads it through the request's stream; for a small body this costs more than all of its
// processing.
import { Context, Data, type Duration, Effect, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The body is not available: longer than the limit, cut off, or too slow. */
export class BodyReadError extends Data.TaggedError("BodyReadError")<{ readonly reason: "too long" | "cut off" }> {}

interface BytesWithin {
  readonly bytesMax: number
  /** From the call to the last byte. */
  readonly longest: Duration.Duration
}

export type ReadBytes = (
  request: HttpServerRequest.HttpServerRequest,
  within: BytesWithin
) => Effect.Effect<Uint8Array, BodyReadError>

export const joined = (chunks: ReadonlyArray<Uint8Array>, bytes: number): Uint8Array => {
  const [only, ...others] = chunks
  if (only !== undefined && others.length === 0) return only
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

/** The implementation that works on every platform. */
export const readStreamed: ReadBytes = (request, { bytesMax, longest }) =>
  Stream.runFoldEffect(
    request.stream,
    () => ({ chunks: [] as Array<Uint8Array>, bytes: 0 }),
    (read, chunk) => {
      const bytes = read.bytes + chunk.length
      if (bytes > bytesMax) return Effect.fail(new BodyReadError({ reason: "too long" }))
      read.chunks.push(chunk)
      return Effect.succeed({ chunks: read.chunks, bytes })
    }
  ).pipe(
    Effect.map(({ bytes, chunks }) => joined(chunks, bytes)),
    Effect.timeout(longest),
    Effect.mapError((error) => (error instanceof BodyReadError ? error : new BodyReadError({ reason: "cut off" })))
  )

export const RequestBytes = Context.Reference<ReadBytes>("tollkeeper/platform/RequestBytes", {
  defaultValue: () => readStreamed
})
