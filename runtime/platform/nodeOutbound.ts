// The Outbound port on `node:dns`, `node:http` and `node:https`, for Node and for Deno. The socket is opened to the
// given address and to no other; the name in the URL is used for the Host header and for the certificate alone. A
// request that is interrupted drops its socket.
import { Effect, Layer } from "effect"
import { lookup, Resolver } from "node:dns/promises"
import * as http from "node:http"
import * as https from "node:https"
import { isIP } from "node:net"
import { Outbound, OutboundFailed, type OutboundAnswer, type OutboundRequest } from "../../kernel/platform/Outbound.ts"

/** Timeout of a name lookup. */
const resolveTimeout = "3 seconds"

const failed = (reason: OutboundFailed["reason"]) => new OutboundFailed({ reason })

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/**
 * Whether the name servers say that a name does not exist. Some systems' lookup does not distinguish a missing name
 * from a failed resolver, so the name servers are queried directly.
 */
const isNoName = (host: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    new Resolver({ timeout: 1_000, tries: 1 }).resolve4(host).then(
      () => false,
      (error: unknown) => codeOf(error) === "ENOTFOUND"
    )
  )

const resolve = (host: string): Effect.Effect<ReadonlyArray<string>, OutboundFailed> =>
  Effect.tryPromise({ try: () => lookup(host, { all: true, verbatim: true }), catch: codeOf }).pipe(
    Effect.map((found) => found.map(({ address }) => address)),
    Effect.catch((code) =>
      Effect.flatMap(code === "ENOTFOUND" ? isNoName(host) : Effect.succeed(false), (isAuthoritative) =>
        Effect.fail(new OutboundFailed({ reason: "unresolved", ...(isAuthoritative ? { isAuthoritative } : {}) }))
      )
    ),
    Effect.timeout(resolveTimeout),
    Effect.catchTag("TimeoutError", () => Effect.fail(failed("unresolved")))
  )

const firstOf = (headers: http.IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value
      return first === undefined ? [] : [[name, first]]
    })
  )

/** How long more of a body is waited for that may have ended. */
const pauseMillis = 250
const isBlank = (chunk: Uint8Array) => chunk.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d))

interface Call {
  /** When it began, by `performance.now()`. */
  readonly begun: number
  readonly resume: (answer: Effect.Effect<OutboundAnswer, OutboundFailed>) => void
  /** Drops the connection. */
  readonly close: () => void
}

/** Reads an answer's body as far as the request's reader and bounds allow; returns what ends it as broken. */
const receive = (incoming: http.IncomingMessage, request: OutboundRequest, { begun, close, resume }: Call) => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  const head = { status: incoming.statusCode ?? 0, headers: firstOf(incoming.headers) }
  const isLast = request.reader?.(head) ?? (() => false)
  let pause: NodeJS.Timeout | undefined
  const settle = () => {
    clearTimeout(late)
    clearTimeout(pause)
  }
  const answered = (cut?: OutboundAnswer["cut"]) => {
    settle()
    const body = new Uint8Array(Buffer.concat(chunks))
    resume(Effect.succeed({ ...head, body, ...(cut === undefined ? {} : { cut }) }))
  }
  const broken = (reason: NonNullable<OutboundAnswer["cut"]>) => {
    if (request.partMillis !== undefined && bytes > 0) answered(reason)
    else resume(Effect.fail(failed(reason)))
    close()
  }
  const end = () => {
    answered()
    close()
  }
  const { partMillis } = request
  const late =
    partMillis === undefined ? undefined : setTimeout(() => broken("timeout"), partMillis - (performance.now() - begun))
  incoming.on("data", (chunk: Buffer) => {
    const room = request.bytesMax - bytes
    bytes += chunk.length
    if (chunk.length > room) {
      chunks.push(chunk.subarray(0, room))
      broken("too_large")
      return
    }
    chunks.push(chunk)
    const last = isLast(chunk)
    if (pause !== undefined && isBlank(chunk)) return
    clearTimeout(pause)
    pause = last === "pause" ? setTimeout(end, pauseMillis) : undefined
    if (last === true) end()
  })
  incoming.once("end", () => answered())
  incoming.once("error", () => broken("unreachable"))
  incoming.once("close", settle)
  return broken
}

const send = (request: OutboundRequest): Effect.Effect<OutboundAnswer, OutboundFailed> =>
  Effect.callback<OutboundAnswer, OutboundFailed>((resume) => {
    const url = new URL(request.url)
    const name = url.hostname.replace(/^\[|\]$/g, "")
    const secure = url.protocol === "https:"
    const begun = performance.now()
    let broken: ReturnType<typeof receive> | undefined
    const outgoing = (secure ? https : http).request(
      {
        host: request.address,
        port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
        path: `${url.pathname}${url.search}`,
        method: request.method,
        agent: false,
        ...(secure && isIP(name) === 0 ? { servername: name } : {}),
        headers: { ...request.headers, host: url.host, connection: "close" }
      },
      (incoming) => {
        broken = receive(incoming, request, { begun, resume, close: () => outgoing.destroy() })
      }
    )
    outgoing.once("error", (error) => {
      // A connection that is reset in the middle of an answer is an error of the request first.
      if (broken !== undefined) return broken("unreachable")
      const isAuthoritative = codeOf(error) === "ECONNREFUSED"
      resume(
        Effect.fail(new OutboundFailed({ reason: "unreachable", ...(isAuthoritative ? { isAuthoritative } : {}) }))
      )
    })
    // An upgraded connection is dropped, and counts as no response.
    outgoing.once("upgrade", (_, socket) => {
      socket.destroy()
      resume(Effect.fail(failed("unreachable")))
    })
    outgoing.end(request.body)
    return Effect.sync(() => outgoing.destroy())
  }).pipe(
    Effect.timeout(request.timeoutMillis),
    Effect.catchTag("TimeoutError", () => Effect.fail(failed("timeout")))
  )

export const layer: Layer.Layer<Outbound> = Layer.succeed(Outbound, { resolve, send })
