// How the answer to a request ends, as a port: whether all of it left through the socket. A platform without a way of
// its own counts an answer as sent once the handler has given it.
import { Context, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"

/**
 * Succeeds once the answer has left (true), or its connection was closed before (false). `ended` is called at that
 * moment, before the process reads another request.
 */
export type AwaitResponseEnd = (
  request: HttpServerRequest.HttpServerRequest,
  ended: (hasLeft: boolean) => void
) => Effect.Effect<boolean>

export const ResponseEnd = Context.Reference<AwaitResponseEnd>("tollkeeper/platform/ResponseEnd", {
  defaultValue: () => (_request, ended) =>
    Effect.sync(() => {
      ended(true)
      return true
    })
})
