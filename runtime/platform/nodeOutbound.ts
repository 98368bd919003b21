// The Outbound port on `nodeNames.ts`, `node:http` and `node:https`, for Node and for Deno. The socket is opened only
// to the given address; the name in the URL is used only for the Host header and for the certificate. An interrupted
// request drops its socket. The answer to a paying request is read as leniently as its bytes allow.
import { Effect, Layer } from "effect"
import * as http from "node:http"
import * as https from "node:https"
import { connect, isIP } from "node:net"
import * as tls from "node:tls"
import * as zlib from "node:zlib"
import { Outbound, OutboundFailed, type OutboundAnswer, type OutboundRequest } from "../../kernel/platform/Outbound.ts"
import { makeNames, NameServers } from "./nodeNames.ts"
import { ResponseReader } from "./ResponseReader.ts"

const failed = (reason: OutboundFailed["reason"]) => new OutboundFailed({ reason })

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

const firstOf = (headers: http.IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value
      return first === undefined ? [] : [[name, first]]
    })
  )

/** How long we wait for more of a body that may be complete. */
const pauseMillis = 250
const isBlank = (chunk: Uint8Array) => chunk.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d))

interface Call {
  /** When it began, by `performance.now()`. */
  readonly begun: number
  readonly resume: (answer: Effect.Effect<OutboundAnswer, OutboundFailed>) => void
  /** Drops the connection. */
  readonly close: () => void
}

/** Receives the bytes of a body. */
interface Receiver {
  readonly data: (chunk: Buffer) => void
  readonly end: () => void
  /** Answers with the received part if the caller accepts one; otherwise fails. */
  readonly broken: (reason: NonNullable<OutboundAnswer["cut"]>) => void
  readonly settle: () => void
}

/** A body has at most one part for each of these bytes of its bound: a part of one byte takes as long as any other. */
const bytesPerPart = 16
const partsAlways = 1_024

/** Counts a body's bytes and parts: the room for the next part, and whether it exceeds a bound. */
const makeMeter = (bytesMax: number) => {
  let [bytes, parts] = [0, 0]
  return ({ length }: Uint8Array) => {
    const room = Math.max(0, bytesMax - bytes)
    bytes += length
    parts += 1
    return { room, isOver: length > room || parts * bytesPerPart > Math.max(bytesMax, partsAlways * bytesPerPart) }
  }
}

/** Collects bytes by copies: kept parts of one byte would take hundreds of times their memory. */
const makeBody = () => {
  let all = Buffer.alloc(0)
  let length = 0
  return {
    add: (part: Uint8Array) => {
      if (length + part.length > all.length) {
        const larger = Buffer.alloc(Math.max(2 * all.length, length + part.length))
        all.copy(larger, 0, 0, length)
        all = larger
      }
      all.set(part, length)
      length += part.length
    },
    bytes: () => new Uint8Array(all.subarray(0, length)),
    isEmpty: () => length === 0
  }
}

/** Reads a body as far as the request's reader and bounds allow. */
const receiverOf = (
  head: Pick<OutboundAnswer, "status" | "headers">,
  request: OutboundRequest,
  { begun, close, resume }: Call
): Receiver => {
  const body = makeBody()
  const meter = makeMeter(request.bytesMax)
  let isOver = false
  const isLast = request.reader?.(head) ?? (() => false)
  let pause: NodeJS.Timeout | undefined
  const settle = () => {
    clearTimeout(late)
    clearTimeout(pause)
  }
  const answered = (cut?: OutboundAnswer["cut"]) => {
    settle()
    if (isOver) return
    isOver = true
    resume(Effect.succeed({ ...head, body: body.bytes(), ...(cut === undefined ? {} : { cut }) }))
  }
  const broken: Receiver["broken"] = (reason) => {
    if (request.partMillis !== undefined && !body.isEmpty()) answered(reason)
    else resume(Effect.fail(failed(reason === "malformed" ? "unreachable" : reason)))
    isOver = true
    settle()
    close()
  }
  const end = () => {
    answered()
    close()
  }
  const { partMillis } = request
  const late =
    partMillis === undefined ? undefined : setTimeout(() => broken("timeout"), partMillis - (performance.now() - begun))
  const data = (chunk: Buffer) => {
    // The rest of what came with the answer's end.
    if (isOver) return
    const { isOver: isTooLarge, room } = meter(chunk)
    body.add(chunk.subarray(0, room))
    if (isTooLarge) return broken("too_large")
    const last = isLast(chunk)
    if (pause !== undefined && isBlank(chunk)) return
    clearTimeout(pause)
    pause = last === "pause" ? setTimeout(end, pauseMillis) : undefined
    if (last === true) end()
  }
  return { data, end: () => answered(), broken, settle }
}

type Decoder = zlib.Gunzip | zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress

const flushed = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
const gunzip = () => zlib.createGunzip(flushed)
/**
 * Decoders of each content coding, tried in this order. Truncated data is decoded as far as it came. Some
 * servers send deflate without its header.
 */
const decoders: Readonly<Record<string, ReadonlyArray<() => Decoder>>> = {
  gzip: [gunzip],
  "x-gzip": [gunzip],
  deflate: [() => zlib.createInflate(flushed), () => zlib.createInflateRaw(flushed)],
  br: [() => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH })]
}
/** Bytes that are kept until a decoder has decoded some, so that the next one can begin with them. */
const undecodedMax = 65_536

/**
 * A receiver for the decoded body. If the coding is known, the head contains neither the coding nor the length. A body
 * in another coding than its declared one is received undecoded.
 */
const decodingReceiver = (
  head: Pick<OutboundAnswer, "status" | "headers">,
  request: OutboundRequest,
  call: Call,
  attempt = 0
): Receiver => {
  const { "content-encoding": coding = "", "content-length": _, ...others } = head.headers
  const decoder = request.decodes === true ? decoders[coding.trim().toLowerCase()]?.[attempt]?.() : undefined
  if (decoder === undefined) return receiverOf(head, request, call)
  // A kilobyte may decode to gigabytes, and a decoder continues with its input after the answer.
  const close = () => {
    decoder.destroy()
    call.close()
  }
  const receiver = receiverOf({ status: head.status, headers: others }, request, { ...call, close })
  // Bytes that do not compress take a little more in a coding.
  const meter = makeMeter(request.bytesMax + undecodedMax)
  let cut: OutboundAnswer["cut"]
  let isEnded = false
  let [undecoded, next]: [Buffer | undefined, Receiver | undefined] = [Buffer.alloc(0), undefined]
  decoder.on("data", (chunk: Buffer) => {
    undecoded = undefined
    receiver.data(chunk)
  })
  decoder.once("end", () => (cut === undefined ? receiver.end() : receiver.broken(cut)))
  decoder.once("error", () => {
    if (undecoded === undefined) return receiver.broken("malformed")
    receiver.settle()
    next = decodingReceiver(head, request, call, attempt + 1)
    next.data(undecoded)
    if (cut !== undefined) next.broken(cut)
    else if (isEnded) next.end()
  })
  return {
    data: (chunk) => {
      if (next !== undefined) return next.data(chunk)
      if (meter(chunk).isOver) return receiver.broken("too_large")
      if (undecoded !== undefined)
        undecoded = undecoded.length > undecodedMax ? undefined : Buffer.concat([undecoded, chunk])
      decoder.write(chunk)
    },
    end: () => {
      if (next !== undefined) return next.end()
      isEnded = true
      decoder.end()
    },
    // A coding that ends early still delivers its data.
    broken: (reason) => {
      if (next !== undefined) return next.broken(reason)
      cut ??= reason
      decoder.end()
    },
    settle: () => {
      decoder.destroy()
      ;(next ?? receiver).settle()
    }
  }
}

const receive = (incoming: http.IncomingMessage, request: OutboundRequest, call: Call) => {
  const head = { status: incoming.statusCode ?? 0, headers: firstOf(incoming.headers) }
  const receiver = decodingReceiver(head, request, call)
  incoming.on("data", receiver.data)
  incoming.once("end", receiver.end)
  incoming.once("error", () => receiver.broken("unreachable"))
  incoming.once("close", () => request.decodes !== true && receiver.settle())
  return receiver.broken
}

const unreachable = (error: unknown) => {
  const isAuthoritative = codeOf(error) === "ECONNREFUSED"
  return new OutboundFailed({ reason: "unreachable", ...(isAuthoritative ? { isAuthoritative } : {}) })
}

/** The URL's host without brackets, its port, and whether it is TLS. */
const placeOf = (url: URL) => {
  const secure = url.protocol === "https:"
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port)
  return { name: url.hostname.replace(/^\[|\]$/g, ""), secure, port }
}

const sendStrictly = (request: OutboundRequest) =>
  Effect.callback<OutboundAnswer, OutboundFailed>((resume) => {
    const url = new URL(request.url)
    const { name, port, secure } = placeOf(url)
    const begun = performance.now()
    let broken: ReturnType<typeof receive> | undefined
    const outgoing = (secure ? https : http).request(
      {
        host: request.address,
        port,
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
      resume(Effect.fail(unreachable(error)))
    })
    // An upgraded connection is dropped, and counts as no response.
    outgoing.once("upgrade", (_, socket) => {
      socket.destroy()
      resume(Effect.fail(failed("unreachable")))
    })
    outgoing.end(request.body)
    return Effect.sync(() => outgoing.destroy())
  })

/** The request's bytes; its names and values cannot contain a line end. */
const requestBytes = ({ body, headers, method }: OutboundRequest, url: URL): Buffer => {
  const length = body === undefined && method === "GET" ? {} : { "content-length": String(body?.length ?? 0) }
  const all = { ...headers, host: url.host, connection: "close", ...length }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  if (lines.some((line) => /[\r\n\0]/.test(line))) throw new Error("a header ends its line")
  const head = [`${method} ${url.pathname}${url.search} HTTP/1.1`, ...lines, "", ""].join("\r\n")
  return Buffer.concat([Buffer.from(head, "latin1"), body ?? Buffer.alloc(0)])
}

/** Sends on its own socket, and reads the answer in any framing, because we paid for it. */
const sendLeniently = (request: OutboundRequest) =>
  Effect.callback<OutboundAnswer, OutboundFailed>((resume) => {
    const url = new URL(request.url)
    const { name, port, secure } = placeOf(url)
    const to = { host: request.address, port }
    const socket = secure ? tls.connect({ ...to, ...(isIP(name) === 0 ? { servername: name } : {}) }) : connect(to)
    const call: Call = { begun: performance.now(), resume, close: () => socket.destroy() }
    let receiver: Receiver | undefined
    let isUnframed = false
    let complete: NodeJS.Timeout | undefined
    const reader = new ResponseReader({
      head: (head) => {
        if (head.status === 101) return call.close()
        isUnframed = head.status === 0
        receiver = decodingReceiver(head, request, call)
      },
      body: (bytes) => {
        clearTimeout(complete)
        receiver?.data(bytes)
      },
      // A server may declare too short a length, and close the connection late or never.
      complete: () => {
        complete = setTimeout(() => {
          receiver?.end()
          call.close()
        }, pauseMillis)
      },
      end: (isWhole) => {
        clearTimeout(complete)
        if (isWhole) receiver?.end()
        else receiver?.broken(isUnframed ? "malformed" : "unreachable")
      }
    })
    let isSilent = true
    const ended = () => {
      if (isSilent) resume(Effect.fail(failed("unreachable")))
      else reader.close()
    }
    socket.once(secure ? "secureConnect" : "connect", () => socket.write(requestBytes(request, url)))
    socket.on("data", (bytes: Buffer) => {
      isSilent = false
      reader.push(bytes)
    })
    socket.once("end", ended)
    socket.once("error", (error) => (isSilent ? resume(Effect.fail(unreachable(error))) : reader.close()))
    socket.once("close", ended)
    return Effect.sync(() => {
      clearTimeout(complete)
      receiver?.settle()
      socket.destroy()
    })
  })

const send = (request: OutboundRequest): Effect.Effect<OutboundAnswer, OutboundFailed> =>
  (request.partMillis === undefined ? sendStrictly(request) : sendLeniently(request)).pipe(
    Effect.timeout(request.timeoutMillis),
    Effect.catchTag("TimeoutError", () => Effect.fail(failed("timeout")))
  )

export const layer: Layer.Layer<Outbound> = Layer.effect(
  Outbound,
  Effect.map(NameServers, (servers) => ({ ...makeNames(servers), send }))
)
