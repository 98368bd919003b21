// The HttpCalls port on `node:http` and `node:https`, for Node and for Deno: one pool of open connections a protocol,
// bounded for each address, without streams between the socket and the text. A call that is interrupted or late drops
// its connection; the pools end with the Scope.
import { Effect, Layer } from "effect"
import * as http from "node:http"
import * as https from "node:https"
import { urlToHttpOptions } from "node:url"
import { brotliDecompress, gunzip, inflate, type ZlibOptions } from "node:zlib"
import { CallFailed, type HttpAnswered, type HttpCall, HttpCalls } from "../../kernel/platform/HttpCalls.ts"

/** Connections to one address at most, and how many of them wait unused. */
const poolOptions = { keepAlive: true, maxSockets: 128, maxFreeSockets: 32 }

/** Addresses that are remembered. */
const targetsMax = 256

interface Pools {
  readonly targetOf: (url: string) => http.RequestOptions
  readonly http: http.Agent
  readonly https: https.Agent
}

type Told = (said: HttpAnswered | CallFailed["reason"]) => void

type Unpack = (bytes: Buffer, options: ZlibOptions, done: (fault: Error | null, body: Buffer) => void) => void

const unpackers: Readonly<Record<string, Unpack>> = { gzip: gunzip, deflate: inflate, br: brotliDecompress as Unpack }

/** The whole body as text; what is packed is unpacked within the same bound. */
const tell = (incoming: http.IncomingMessage, bytes: Buffer, bytesMax: number, told: Told): void => {
  const answer = (body: Buffer) =>
    told({
      status: incoming.statusCode ?? 0,
      retryAfter: incoming.headers["retry-after"],
      body: body.toString("utf8")
    })
  const coding = incoming.headers["content-encoding"]
  if (coding === undefined || coding === "identity") return answer(bytes)
  const unpack = unpackers[coding]
  if (unpack === undefined) return told("unreachable")
  unpack(bytes, { maxOutputLength: bytesMax }, (fault, body) => (fault === null ? answer(body) : told("too long")))
}

const hear = (incoming: http.IncomingMessage, bytesMax: number, told: Told): void => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes > bytesMax) told("too long")
  })
  // Once its connection is free again, so that what follows from the answer is asked over the same one.
  incoming.once("end", () =>
    setImmediate(() => tell(incoming, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), bytesMax, told))
  )
  incoming.once("error", () => told("unreachable"))
}

/** Where addresses lead, read once each: there are a few of them. */
const makeTargets = () => {
  const targets = new Map<string, http.RequestOptions>()
  return (url: string): http.RequestOptions => {
    const known = targets.get(url)
    if (known !== undefined) return known
    if (targets.size >= targetsMax) targets.clear()
    const target = urlToHttpOptions(new URL(url))
    targets.set(url, target)
    return target
  }
}

const post = (pools: Pools, call: HttpCall): Effect.Effect<HttpAnswered, CallFailed> =>
  Effect.callback<HttpAnswered, CallFailed>((resume) => {
    let asked: http.ClientRequest | undefined
    let isTold = false
    const told: Told = (said) => {
      if (isTold) return
      isTold = true
      clearTimeout(timer)
      if (typeof said !== "string") return resume(Effect.succeed(said))
      resume(Effect.fail(new CallFailed({ reason: said })))
      // A body that was not read to its end would keep the connection.
      asked?.destroy()
    }
    const timer = setTimeout(() => told("timeout"), call.timeoutMillis)
    const ask = (isAgain: boolean) => {
      const isSecure = call.url.startsWith("https:")
      const request = (isSecure ? https : http).request({
        ...pools.targetOf(call.url),
        method: "POST",
        agent: isAgain ? false : isSecure ? pools.https : pools.http,
        headers: {
          ...call.headers,
          "content-type": "application/json",
          "content-length": String(Buffer.byteLength(call.body)),
          "accept-encoding": "gzip, deflate, br"
        }
      })
      asked = request
      let isAnswered = false
      request.once("response", (incoming) => {
        isAnswered = true
        hear(incoming, call.bytesMax, told)
      })
      request.on("error", () => {
        if (isTold) return
        if (request.reusedSocket && !isAnswered && !isAgain) ask(true)
        else told("unreachable")
      })
      request.end(call.body)
    }
    ask(false)
    return Effect.sync(() => {
      isTold = true
      clearTimeout(timer)
      asked?.destroy()
    })
  })

const acquire = Effect.acquireRelease(
  Effect.sync((): Pools => ({
    targetOf: makeTargets(),
    http: new http.Agent(poolOptions),
    https: new https.Agent(poolOptions)
  })),
  (pools) =>
    Effect.sync(() => {
      pools.http.destroy()
      pools.https.destroy()
    })
)

/** The port for Node and Deno. */
export const layer: Layer.Layer<HttpCalls> = Layer.effect(
  HttpCalls,
  Effect.map(acquire, (pools) => HttpCalls.of({ post: (call) => post(pools, call) }))
)
