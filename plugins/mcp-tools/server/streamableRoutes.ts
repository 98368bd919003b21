// Streamable HTTP at `/mcp`: the official transports of both eras behind our own admission control. A session begins
// with `initialize`, is identified by `Mcp-Session-Id` from then on, and ends with DELETE or by timeout (S182, S183). A
// request in the envelope of 2026-07-28 does not belong to a session.
import {
  isInitializeRequest,
  type JSONRPCMessage,
  WebStandardStreamableHTTPServerTransport
} from "@modelcontextprotocol/server"
import { Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Server } from "../../../kernel/config/Server.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { readBody } from "../../../kernel/http/readBody.ts"
import { mountRoutes, route } from "../../../kernel/http/Route.ts"
import { AdmissionControl, badRequest, metadataPath, overloaded, noSession } from "./AdmissionControl.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import { exchangeName, McpServers, sessionName } from "./McpServers.ts"
import {
  answeredBy,
  cancelledBy,
  isNotification,
  readMessages,
  refusedText,
  requestsIn,
  withInexact
} from "./messages.ts"
import { type RequestId, rpcCode } from "./rpcErrors.ts"
import { Sessions } from "./Sessions.ts"
import { Stateless } from "./Stateless.ts"

/**
 * The official transport, extended to end the stream of a POST once no request of it is open. The SDK ends it with the
 * last answer. A call that its client has cancelled gets no answer, so its stream would stay open as long as the
 * session.
 */
class StreamableTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #open = new Map<RequestId, Set<RequestId>>()

  /** Registers the messages of one POST before they are handled. */
  begin(messages: ReadonlyArray<JSONRPCMessage>): void {
    const open = new Set(requestsIn(messages))
    for (const id of open) this.#open.set(id, open)
  }

  /** Removes messages that were refused. */
  forget(messages: ReadonlyArray<JSONRPCMessage>): void {
    for (const id of requestsIn(messages)) this.#open.delete(id)
  }

  /** Ends the streams of the requests that these messages cancel, after the messages are handled. */
  cancel(messages: ReadonlyArray<JSONRPCMessage>): void {
    for (const message of messages) {
      const id = cancelledBy(message)
      if (id !== undefined) this.#end(id)
    }
  }

  override async send(...[message, options]: Parameters<WebStandardStreamableHTTPServerTransport["send"]>) {
    const id = answeredBy(message)
    try {
      await super.send(message, options)
    } finally {
      if (id !== undefined) this.#end(id)
    }
  }

  #end(id: RequestId): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    open?.delete(id)
    if (open?.size === 0) this.closeSSEStream(id)
  }
}

type Incoming = HttpServerRequest.HttpServerRequest

/** The request without its body, which is read separately. */
const bare = (request: Incoming): Request =>
  new Request(new URL(request.url, "http://localhost"), { method: request.method, headers: { ...request.headers } })

/** The head of a stream is sent with its first bytes, so a quiet stream begins with a comment. */
const beginning = new TextEncoder().encode(": open\n\n")

/** `taken` runs once the connection has taken the whole body. */
const primed = (response: Response, taken: () => void = () => {}): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body === null) return HttpServerResponse.fromWeb(response)
  const contentType = response.headers.get("content-type") ?? "application/json"
  const isStream = contentType.startsWith("text/event-stream")
  const parts = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })
  const whole = Stream.concat(parts, Stream.fromEffectDrain(Effect.sync(taken)))
  return HttpServerResponse.stream(isStream ? Stream.concat(Stream.succeed(beginning), whole) : whole, {
    status: response.status,
    contentType: isStream ? "text/event-stream" : contentType,
    headers: Object.fromEntries(response.headers)
  })
}

/** The answer to messages without a session that do not open one. */
const unnamed = (messages: ReadonlyArray<JSONRPCMessage>) =>
  badRequest(400, {
    code: rpcCode.server,
    id: requestsIn(messages)[0] ?? null,
    message: "Bad Request: a session is required: initialize first, then send Mcp-Session-Id"
  })

const utf8 = new TextDecoder()
const accepted = HttpServerResponse.text("Accepted", { status: 202 })

/** The JSON of a request's body; fails with the answer. For a refused notification the answer contains no error. */
export const readMessage = (request: Incoming, bytesMax: number) =>
  readBody(request, bytesMax).pipe(
    Effect.mapError(({ message, status }) => badRequest(status, { code: rpcCode.server, id: null, message })),
    Effect.flatMap((bytes) =>
      Effect.mapBoth(parseJson(bytes), {
        onSuccess: (value) => withInexact(utf8.decode(bytes), value),
        onFailure: ({ message }) => {
          const refused = refusedText(utf8.decode(bytes), message)
          return refused === undefined ? accepted : badRequest(400, refused)
        }
      })
    )
  )

/** Decodes the input within the conversation's revision and counts each message of a batch; fails with the answer. */
export const received = (value: unknown, revision: string | undefined, caller: string) =>
  Effect.gen(function* () {
    const { count } = yield* AdmissionControl
    const read = readMessages(value, revision)
    if (read._tag === "Refused") return yield* Effect.fail(isNotification(value) ? accepted : badRequest(400, read))
    if (read._tag === "One") return [read.message]
    yield* count(caller, read.messages.length - 1)
    return read.messages
  })

/** The metadata of a protected resource (RFC 9728). */
export const addMetadataRoutes = Effect.gen(function* () {
  const { metadata } = yield* AdmissionControl
  yield* mountRoutes(
    (["/.well-known/oauth-protected-resource", metadataPath] as const).map((path) =>
      route(
        { method: "GET", path, exposure: "guarded", callers: "public", cost: { cpuMillis: 2, bytesOut: 4_096 } },
        metadata
      )
    )
  )
})

export const addStreamableRoutes = Effect.gen(function* () {
  const { requestBytesMax: bytesMax } = yield* Server
  const { connect } = yield* McpServers
  const admission = yield* AdmissionControl
  const stateless = yield* Stateless
  const sessions = (yield* Sessions).table<StreamableTransport>()

  const { flushed } = yield* Acknowledgements
  const hand = (transport: StreamableTransport, request: Incoming, parsedBody?: unknown, taken?: () => void) =>
    Effect.map(
      Effect.promise(() => transport.handleRequest(bare(request), parsedBody === undefined ? {} : { parsedBody })),
      (response) => primed(response, taken)
    )

  const begin = Effect.fnUntraced(function* (request: Incoming, message: unknown, principal: string) {
    const room = yield* sessions.makeRoom(principal)
    if (!room.isFree) return overloaded(room.retryAfterSeconds)
    const id = sessions.newId()
    const transport = new StreamableTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => sessions.remove(id)
    })
    const server = yield* connect(transport, { principal, session: id })
    yield* sessions.add({ id, principal, server, transport })
    const response = yield* hand(transport, request, message)
    // The transport refused, so the session does not exist.
    if (response.status >= 400) sessions.remove(id)
    return response
  })

  const handle = (request: Incoming) =>
    Effect.gen(function* () {
      const principal = yield* admission.admit(request)
      const id = request.headers["mcp-session-id"]
      const message = request.method === "POST" ? yield* readMessage(request, bytesMax) : undefined
      const asked = bare(request)
      if (id === undefined && message !== undefined && (yield* stateless.isOurs(asked, message)))
        return yield* stateless.handle(asked, message, principal, primed)
      const session = id === undefined ? undefined : yield* sessions.find(id, principal)
      if (id !== undefined && session === undefined) return noSession
      const revision = session?.server.getNegotiatedProtocolVersion()
      const messages =
        message === undefined
          ? []
          : yield* Effect.provideService(received(message, revision, principal), AdmissionControl, admission)
      if (session === undefined)
        return isInitializeRequest(message) ? yield* begin(request, message, principal) : unnamed(messages)
      const { transport } = session
      transport.begin(messages)
      const conversation = { principal, session: session.id }
      const taken = () => {
        for (const one of requestsIn(messages)) flushed(sessionName(conversation), exchangeName(conversation, one))
      }
      const response = yield* hand(transport, request, message, taken)
      if (response.status >= 400) transport.forget(messages)
      else transport.cancel(messages)
      return response
    }).pipe(Effect.catch((refused) => Effect.succeed(refused)))

  const methods = ["POST", "GET", "DELETE"] as const
  yield* mountRoutes(
    methods.map((method) =>
      route(
        { method, path: "/mcp", exposure: "guarded", callers: "keyed", cost: { cpuMillis: 20, bytesOut: 8_388_608 } },
        handle
      )
    )
  )
})
