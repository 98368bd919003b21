// The ResponseEnd port on `node:http`, for Node and for Deno: a response emits `finish` after its last byte was handed
// to the system, and `close` in any case.
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import type { AwaitResponseEnd } from "../../kernel/platform/ResponseEnd.ts"

export const awaitNodeResponse: AwaitResponseEnd = (request, ended) =>
  Effect.callback<boolean>((resume) => {
    const response = NodeHttpServerRequest.toServerResponse(request)
    const end = () => {
      response.off("finish", end).off("close", end)
      ended(response.writableFinished)
      resume(Effect.succeed(response.writableFinished))
    }
    if (response.writableFinished || response.destroyed) return end()
    response.once("finish", end).once("close", end)
    return Effect.sync(() => void response.off("finish", end).off("close", end))
  })
