// Reads a request's body up to a limit, whatever its headers claim. A longer body is refused as soon as the limit is
// passed and not read on; a compressed one is refused, since its size is not what it seems.
import { Data, Effect, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The body cannot be taken. `status`: 413 too large, 415 compressed, 400 cut off or too slow. */
export class BodyRefused extends Data.TaggedError("BodyRefused")<{
  readonly status: 400 | 413 | 415
  readonly message: string
}> {}

/** A body that takes longer than this is not waited for. */
const readTimeout = "10 seconds"

export const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax: number
): Effect.Effect<Uint8Array, BodyRefused> => {
  // Made when needed: an error takes its stack with it.
  const tooLarge = () =>
    Effect.fail(new BodyRefused({ status: 413, message: `the body is longer than ${bytesMax} bytes` }))
  const encoding = request.headers["content-encoding"]
  if (encoding !== undefined && encoding !== "identity") {
    return Effect.fail(new BodyRefused({ status: 415, message: "compressed bodies are not accepted" }))
  }
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) return tooLarge()
  return Stream.runFoldEffect(
    request.stream,
    () => ({ chunks: [] as Array<Uint8Array>, bytes: 0 }),
    (read, chunk) => {
      const bytes = read.bytes + chunk.length
      if (bytes > bytesMax) return tooLarge()
      read.chunks.push(chunk)
      return Effect.succeed({ chunks: read.chunks, bytes })
    }
  ).pipe(
    Effect.map(({ bytes, chunks }) => {
      const whole = new Uint8Array(bytes)
      let at = 0
      for (const chunk of chunks) {
        whole.set(chunk, at)
        at += chunk.length
      }
      return whole
    }),
    Effect.timeout(readTimeout),
    Effect.mapError((error) =>
      error instanceof BodyRefused
        ? error
        : new BodyRefused({ status: 400, message: "the body was cut off or came too slowly" })
    )
  )
}
