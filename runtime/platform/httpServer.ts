// The HTTP server of the process. Once it is asked to stop it accepts no new connection and closes each connection
// with its response: a keep-alive client would otherwise send request after request and delay the shutdown without
// limit. A connection without a request so far may still send one for a moment, as a client's pool does that opened it
// ahead, and is ended then. At the deadline all connections are destroyed.
//
// A request is handed on once everything is read that came with its head, which mostly includes its body: the handler
// then has the body immediately (`nodeRequestBytes.ts`), and a refusal needs no wait.
//
// How many connections there are, and what each may cost, is limited in `connections.ts`; payments come first in the
// event loop by `Turns.ts`.
//
// A header that is sent twice is read as both, joined by a comma: of two keys or two hosts neither is valid, since a
// proxy in front may have checked the other.
import { type IncomingMessage, Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { LinkedList } from "../../kernel/effect/LinkedList.ts"
import { clientAddress, principalOf } from "../../kernel/http/addresses.ts"
import { pathOf } from "../../kernel/http/httpMiddleware.ts"
import { connectionBounds, connectionLimits, type ConnectionLimits, limitConnections } from "./connections.ts"
import { compileEarly } from "./startHeap.ts"
import { Turns } from "./Turns.ts"

/** Requests after which a server counts as busy. */
const busyAfter = 300

/** How long an unused connection may still send a request, once the server stops. */
const silentMillis = 1_500

interface HttpServer {
  readonly server: Server
  /** From now on each response, also of pending requests, is the last of its connection. */
  readonly stopping: () => void
}

type Result = (request: IncomingMessage, response: ServerResponse) => void

/**
 * No route accepts upgrades. Without a listener for them, a client that offers one gets a normal answer, within the
 * limits of other requests.
 */
class PlainServer extends Server {
  override on(event: string, listener: (...args: Array<any>) => void): this {
    return event === "upgrade" ? this : super.on(event, listener)
  }
}

const isPayment = ({ method, url = "" }: IncomingMessage): boolean =>
  method === "POST" && ["/verify", "/settle"].includes(pathOf(url))

export const makeHttpServer = (limits: Partial<ConnectionLimits> = {}): HttpServer => {
  const unanswered = new LinkedList<ServerResponse>()
  const silent = new Set<Socket>()
  let isStopping = false
  let requests = 0
  const sayLast = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader("connection", "close")
  }
  const begin: Result = (request, response) => {
    silent.delete(request.socket)
    requests += 1
    if (requests === busyAfter) compileEarly()
    if (isStopping) sayLast(response)
    const place = unanswered.append(response)
    response.on("close", () => void unanswered.remove(place))
  }
  const server = new PlainServer({ ...connectionBounds, maxHeaderSize: 65_536 })
  const emit = server.emit.bind(server)
  const turns = new Turns()
  const { isTrusted } = { ...connectionLimits, ...limits }
  const addressOf = ({ headers, socket }: IncomingMessage) =>
    clientAddress(socket.remoteAddress ?? "", String(headers["x-forwarded-for"] ?? ""), isTrusted)
  limitConnections(server, { isPayment, ...limits }, (request, response, event) => {
    // Browsers and curl use 1.1. A proxy that uses 1.0, as nginx long did by default, does not identify itself in a
    // header.
    if (request.httpVersion === "1.0") request.headers["via"] ??= "1.0 unnamed"
    begin(request, response)
    const hand = () => void (response.destroyed || emit(event, request, response))
    // By then, the rest of the bytes that came with the head is parsed.
    setImmediate(() => {
      if (isPayment(request)) turns.pay(response, hand)
      else turns.enter(principalOf(addressOf(request)), response, hand)
    })
  })
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  const endSilent = () => {
    for (const socket of silent) if (socket.bytesRead === 0) socket.destroy()
  }
  return {
    server,
    stopping: () => {
      isStopping = true
      for (const response of unanswered.toArray()) sayLast(response)
      setTimeout(endSilent, silentMillis).unref()
    }
  }
}
