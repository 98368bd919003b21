// Streamable HTTP at `/mcp`: the official transports of both eras behind our own door. A session begins with
// `initialize`, is named by `Mcp-Session-Id` from then on, and ends with DELETE or when its time has come (S182, S183).
// A request in the envelope of 2026-07-28 has none.
import { isInitializeRequest, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server"
import { Effect, Stream } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Server } from "../../../kernel/config/Server.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { readBody } from "../../../kernel/http/readBody.ts"
import { Admission, badRequest, noRoom, noSession } from "./Admission.ts"
import { McpServers } from "./McpServers.ts"
import { Sessions } from "./Sessions.ts"
import { Stateless } from "./Stateless.ts"

type Incoming = HttpServerRequest.HttpServerRequest
type Transport = WebStandardStreamableHTTPServerTransport

/** The request without its body, which is read apart. */
const bare = (request: Incoming): Request =>
  new Request(new URL(request.url, "http://localhost"), { method: request.method, headers: { ...request.headers } })

/** The head of a stream leaves with its first bytes, so a quiet one begins with a comment. */
const beginning = new TextEncoder().encode(": open\n\n")

const primed = (response: Response): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body === null || response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
    return HttpServerResponse.fromWeb(response)
  const events = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })
  return HttpServerResponse.stream(Stream.concat(Stream.succeed(beginning), events), {
    status: response.status,
    contentType: "text/event-stream",
    headers: Object.fromEntries(response.headers)
  })
}

export const readMessage = (request: Incoming, bytesMax: number) =>
  readBody(request, bytesMax).pipe(
    Effect.flatMap((bytes) => parseJson(bytes)),
    Effect.mapError((error) =>
      error._tag === "BodyRefused" ? badRequest(error.status, error.message) : badRequest(400, error.message)
    )
  )

export const addStreamableRoutes = Effect.gen(function* () {
  const { requestBytesMax: bytesMax } = yield* Server
  const { connect } = yield* McpServers
  const { admit } = yield* Admission
  const stateless = yield* Stateless
  const router = yield* HttpRouter.HttpRouter
  const sessions = (yield* Sessions).table<Transport>()

  const hand = (transport: Transport, request: Incoming, parsedBody?: unknown) =>
    Effect.map(
      Effect.promise(() => transport.handleRequest(bare(request), parsedBody === undefined ? {} : { parsedBody })),
      primed
    )

  const begin = Effect.fnUntraced(function* (request: Incoming, message: unknown, principal: string) {
    const room = yield* sessions.makeRoom(principal)
    if (!room.isFree) return noRoom(room.retryAfterSeconds)
    const id = sessions.newId()
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => sessions.remove(id)
    })
    const server = yield* connect(transport, { principal, session: id })
    yield* sessions.add({ id, principal, server, transport })
    const response = yield* hand(transport, request, message)
    // What the transport would not begin is no session.
    if (response.status >= 400) sessions.remove(id)
    return response
  })

  const handle = (request: Incoming) =>
    Effect.gen(function* () {
      const principal = yield* admit(request)
      const id = request.headers["mcp-session-id"]
      const message = request.method === "POST" ? yield* readMessage(request, bytesMax) : undefined
      const asked = bare(request)
      if (id === undefined && message !== undefined && (yield* stateless.isOurs(asked, message)))
        return primed(yield* stateless.handle(asked, message, principal))
      if (id === undefined) {
        return request.method === "POST" && isInitializeRequest(message)
          ? yield* begin(request, message, principal)
          : badRequest(400, "a session is required: initialize first, then send Mcp-Session-Id")
      }
      const session = yield* sessions.find(id, principal)
      return session === undefined ? noSession : yield* hand(session.transport, request, message)
    }).pipe(Effect.catch((refused) => Effect.succeed(refused)))

  for (const method of ["POST", "GET", "DELETE"] as const) yield* router.add(method, "/mcp", handle)
})
