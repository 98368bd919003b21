// Reads a request's body up to a limit, independent of its headers. A longer body is refused as soon as the limit is
// passed and not read on; a compressed one is refused, since its size is not bounded by its length.
import { Data, Duration, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { RequestBytes } from "../platform/RequestBytes.ts"

/** The body was refused. `status`: 413 too large, 415 compressed, 400 cut off or too slow. */
class BodyRefused extends Data.TaggedError("BodyRefused")<{
  readonly status: 400 | 413 | 415
  readonly message: string
}> {}

/** Longest wait for a body. */
const readTimeout = Duration.seconds(10)

export const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax: number
): Effect.Effect<Uint8Array, BodyRefused> => {
  // Made on demand, because an error captures its stack.
  const tooLarge = () => new BodyRefused({ status: 413, message: `the body is longer than ${bytesMax} bytes` })
  const { headers } = request
  const encoding = headers["content-encoding"]
  if (encoding !== undefined && encoding !== "identity") {
    return Effect.fail(new BodyRefused({ status: 415, message: "compressed bodies are not accepted" }))
  }
  if (Number(headers["content-length"] ?? 0) > bytesMax) return Effect.fail(tooLarge())
  return Effect.mapError(
    Effect.flatMap(RequestBytes, (read) => read(request, { bytesMax, longest: readTimeout })),
    ({ reason }) =>
      reason === "too long"
        ? tooLarge()
        : new BodyRefused({ status: 400, message: "the body was cut off or sent too slowly" })
  )
}
