// The end of the answer to a request, as a port: whether all of it left through the socket. A platform without its own
// implementation counts an answer as sent as soon as the handler has returned it.
import { Context, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"

/**
 * Succeeds once the answer has left (true), or its connection was closed first (false). `ended` is called at that
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
