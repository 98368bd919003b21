// The HTTP server of the process. Once it is told to stop it accepts no new connection and has every answer close its
// own: a client with a connection that stays open would otherwise send request after request on it and hold the process
// up for as long as it likes. A connection on which nothing was ever asked may still ask for a moment, as a client's
// pool does that opened it ahead, and is ended then. What has not ended by then is cut off.
import { createServer, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** A request's head is here within this time, or its connection ends; looked at twice a second. */
export const headersMillis = 9_000

/** How long a connection on which nothing was asked may still ask, once the server stops. */
const silentMillis = 1_500

export interface HttpServer {
  readonly server: Server
  /** From now on each answer, of requests that wait for theirs too, is the last of its connection. */
  readonly stopping: () => void
}

export const makeHttpServer = (): HttpServer => {
  const server = createServer({
    headersTimeout: headersMillis,
    connectionsCheckingInterval: 500,
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    maxHeaderSize: 65_536
  })
  const unanswered = new Set<ServerResponse>()
  const silent = new Set<Socket>()
  let isStopping = false
  const sayLast = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader("connection", "close")
  }
  function answered(this: ServerResponse) {
    unanswered.delete(this)
  }
  const begin = (response: ServerResponse) => {
    if (isStopping) sayLast(response)
    unanswered.add(response)
    response.on("close", answered)
  }
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", (request, response) => {
    silent.delete(request.socket)
    begin(response)
  })
  const endSilent = () => {
    for (const socket of silent) if (socket.bytesRead === 0) socket.destroy()
  }
  return {
    server,
    stopping: () => {
      isStopping = true
      for (const response of unanswered) sayLast(response)
      setTimeout(endSilent, silentMillis).unref()
    }
  }
}
