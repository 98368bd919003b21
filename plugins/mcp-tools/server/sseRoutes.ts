// GET `/sse` and POST `/messages?sessionId=…` for clients that predate Streamable HTTP (S184). The session belongs to
// the caller and ends with its stream.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Server } from "../../../kernel/config/Server.ts"
import { queryOf } from "../../../kernel/http/readQuery.ts"
import { mountRoutes, route } from "../../../kernel/http/Route.ts"
import { AdmissionControl, overloaded, noSession } from "./AdmissionControl.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import { exchangeName, McpServers, sessionName } from "./McpServers.ts"
import { Sessions } from "./Sessions.ts"
import { SseTransport } from "./SseTransport.ts"
import { readMessage, received } from "./streamableRoutes.ts"

type Request = HttpServerRequest.HttpServerRequest

const streamHeaders = {
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff"
}

export const addSseRoutes = Effect.gen(function* () {
  const { requestBytesMax: bytesMax } = yield* Server
  const { connect } = yield* McpServers
  const { flushed } = yield* Acknowledgements
  const admission = yield* AdmissionControl
  const sessions = (yield* Sessions).table<SseTransport>({ staysOpen: true })

  const open = (request: Request) =>
    Effect.gen(function* () {
      const principal = yield* admission.admit(request)
      // The GET route also answers HEAD requests; their body would never be read, so they open no session.
      if (request.method !== "GET") return HttpServerResponse.empty({ status: 405, headers: { allow: "GET" } })
      const room = yield* sessions.makeRoom(principal)
      if (!room.isFree) return overloaded(room.retryAfterSeconds)
      const id = sessions.newId()
      const conversation = { principal, session: id }
      const transport = yield* SseTransport.make(id, (answered) => {
        for (const one of answered) flushed(sessionName(conversation), exchangeName(conversation, one))
      })
      const server = yield* connect(transport, conversation)
      const protocolEnded = transport.onclose
      transport.onclose = () => {
        sessions.remove(id)
        protocolEnded?.()
      }
      yield* sessions.add({ id, principal, server, transport })
      return HttpServerResponse.stream(transport.events, { contentType: "text/event-stream", headers: streamHeaders })
    }).pipe(Effect.catch((refused) => Effect.succeed(refused)))

  const post = (request: Request) =>
    Effect.gen(function* () {
      const principal = yield* admission.admit(request)
      const id = queryOf(request).get("sessionId") ?? ""
      const session = yield* sessions.find(id, principal)
      if (session === undefined) return noSession
      const value = yield* readMessage(request, bytesMax)
      const revision = session.server.getNegotiatedProtocolVersion()
      const messages = yield* Effect.provideService(received(value, revision, principal), AdmissionControl, admission)
      session.transport.receive(messages, Array.isArray(value))
      return HttpServerResponse.text("Accepted", { status: 202 })
    }).pipe(Effect.catch((refused) => Effect.succeed(refused)))

  yield* mountRoutes([
    route(
      { method: "GET", path: "/sse", exposure: "guarded", callers: "keyed", cost: { cpuMillis: 5, bytesOut: 65_536 } },
      open
    ),
    route(
      {
        method: "POST",
        path: "/messages",
        exposure: "guarded",
        callers: "keyed",
        cost: { cpuMillis: 20, bytesOut: 4_096 }
      },
      post
    )
  ])
})
