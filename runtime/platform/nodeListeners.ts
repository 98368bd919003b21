// The Listeners port on `node:http` and `node:https`, for Node and for Deno. A listener belongs to the Scope that
// opened it: on close it stops accepting, interrupts handlers in progress and drops the sockets. A client that
// disconnects interrupts its handler. A handler that dies is answered 500 and logged. Nothing that a client sends can
// end the process. Bodies are read only up to the given limit.
import { Effect, Exit, FiberSet, Layer, type Scope } from "effect"
import * as http from "node:http"
import * as https from "node:https"
import { ListenFailed, Listeners, type ListenOptions } from "../../kernel/platform/Listeners.ts"
import { connectionBounds, limitConnections } from "./connections.ts"

class BodyTooLarge extends Error {}
class BodyAborted extends Error {}

const readBody = (request: http.IncomingMessage, bytesMax: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const declared = Number(request.headers["content-length"] ?? 0)
    if (declared > bytesMax) return reject(new BodyTooLarge())
    const chunks: Array<Buffer> = []
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length > bytesMax) {
        request.pause()
        reject(new BodyTooLarge())
      } else chunks.push(chunk)
    })
    request.once("end", () => resolve(Buffer.concat(chunks)))
    request.once("error", () => reject(new BodyAborted()))
    request.once("aborted", () => reject(new BodyAborted()))
  })

const toRequest = (incoming: http.IncomingMessage, body: Buffer, scheme: string, fallbackHost: string): Request => {
  const headers = new Headers()
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!)
  }
  const method = incoming.method ?? "GET"
  const url = new URL(incoming.url ?? "/", `${scheme}://${incoming.headers.host ?? fallbackHost}`)
  return new Request(url, {
    method,
    headers,
    ...(method === "GET" || method === "HEAD" ? {} : { body: new Uint8Array(body) })
  })
}

const send = async (outgoing: http.ServerResponse, response: Response, head: boolean): Promise<void> => {
  const body = head ? undefined : Buffer.from(await response.arrayBuffer())
  outgoing.statusCode = response.status
  response.headers.forEach((value, name) => outgoing.setHeader(name, value))
  if (body !== undefined) outgoing.setHeader("content-length", body.length)
  outgoing.end(body)
}

const refuse = (outgoing: http.ServerResponse, status: number): void => {
  if (outgoing.headersSent || outgoing.destroyed) return
  outgoing.statusCode = status
  outgoing.setHeader("connection", "close")
  outgoing.end()
}

const open = (
  options: ListenOptions,
  handle: (request: Request) => Effect.Effect<Response>
): Effect.Effect<{ readonly port: number }, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const run = yield* FiberSet.makeRuntime<never, void, never>()
    const scheme = options.tls === undefined ? "http" : "https"
    const respond = (incoming: http.IncomingMessage, outgoing: http.ServerResponse): void => {
      outgoing.on("error", () => undefined)
      const answer = Effect.gen(function* () {
        const body = yield* Effect.tryPromise(() => readBody(incoming, options.bodyBytesMax))
        const request = yield* Effect.try(() => toRequest(incoming, body, scheme, `${options.host}:${options.port}`))
        const response = yield* handle(request)
        yield* Effect.promise(() => send(outgoing, response, incoming.method === "HEAD"))
      }).pipe(
        Effect.catch((error) => Effect.sync(() => refuse(outgoing, error.cause instanceof BodyTooLarge ? 413 : 400))),
        Effect.catchDefect((defect) =>
          Effect.logError("a listener's handler died", defect).pipe(
            Effect.andThen(Effect.sync(() => refuse(outgoing, 500)))
          )
        )
      )
      const fiber = run(answer)
      outgoing.once("close", () => {
        if (!outgoing.writableFinished) fiber.interruptUnsafe()
      })
    }
    const named = options.setting === undefined ? {} : { setting: options.setting }
    const server =
      options.tls === undefined
        ? http.createServer(connectionBounds)
        : https.createServer({
            ...connectionBounds,
            handshakeTimeout: connectionBounds.headersTimeout,
            key: options.tls.key,
            cert: options.tls.cert
          })
    limitConnections(server, { requestBytesMax: 2 * options.bodyBytesMax + 131_072 }, respond)
    server.on("clientError", (_error, socket) => socket.destroy())
    server.on("error", () => undefined)
    yield* Effect.acquireRelease(
      Effect.callback<void, ListenFailed>((resume) => {
        server.once("error", (cause) =>
          resume(Exit.fail(new ListenFailed({ host: options.host, port: options.port, ...named, cause })))
        )
        server.listen(options.port, options.host, () => resume(Effect.void))
      }),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    return { port: typeof address === "object" && address !== null ? address.port : options.port }
  })

export const layer: Layer.Layer<Listeners> = Layer.succeed(Listeners, { open })
