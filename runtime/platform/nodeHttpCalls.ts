// The HttpCalls port on undici's connections, for Node and for Deno: a bounded pool for each origin, one call at a time
// on each connection, and nothing between the socket and the text. With the client of `node:http` a verification costs
// an eighth more. We load only the package's connection, by its file's path. An interrupted or late call drops its
// connection; all of them end with the Scope.
import { Effect, Layer } from "effect"
import { createRequire } from "node:module"
import { brotliDecompress, gunzip, inflate, type ZlibOptions } from "node:zlib"
import type { Client, Dispatcher } from "undici"
import { CallFailed, type HttpAnswered, type HttpCall, HttpCalls } from "../../kernel/platform/HttpCalls.ts"

/** Pool limits of an origin: connections, and unused ones that are kept. */
const connectionsMax = 128
const freeMax = 32

/** Milliseconds that an unused connection is kept, unless the server names a time. */
const keepMillis = 60_000

/** Capacity of the address cache. */
const targetsMax = 256

/** One connection, opened on first use and reopened after it closes. */
interface Connection {
  readonly client: Client
  /** It has served a response since it was opened: the server may close it while the next call is sent. */
  isUsed: boolean
}

type Use = (connection: Connection) => void

/** The calls' own deadline is the only one. */
const clientOptions: Client.Options = {
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: keepMillis,
  allowH2: false
}

const stopped = new Error("the call is over")
const ended = new Error("the connections are closed")

class Connections {
  readonly #open: () => Client
  readonly #all = new Set<Connection>()
  readonly #free: Array<Connection> = []
  readonly #waiting = new Set<Use>()

  constructor(open: () => Client) {
    this.#open = open
  }

  /** The most recently used free one, a new one, or the first to be released. */
  take(use: Use): void {
    const free = this.#free.pop()
    if (free !== undefined) return use(free)
    if (this.#all.size >= connectionsMax) return void this.#waiting.add(use)
    const connection: Connection = { client: this.#open(), isUsed: false }
    connection.client.on("disconnect", () => {
      connection.isUsed = false
    })
    this.#all.add(connection)
    use(connection)
  }

  give(connection: Connection): void {
    if (!this.#all.has(connection)) return
    const next = this.#next()
    if (next !== undefined) return next(connection)
    if (this.#free.length < freeMax) return void this.#free.push(connection)
    this.#all.delete(connection)
    void connection.client.destroy(ended)
  }

  /** Removes a connection that failed to open. */
  drop(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    void connection.client.destroy(ended)
    const next = this.#next()
    if (next !== undefined) this.take(next)
  }

  #next(): Use | undefined {
    for (const use of this.#waiting) {
      this.#waiting.delete(use)
      return use
    }
    return undefined
  }

  leave(use: Use): void {
    this.#waiting.delete(use)
  }

  end(): void {
    for (const { client } of this.#all) void client.destroy(ended)
  }
}

interface Target {
  readonly connections: Connections
  readonly path: string
  /** From the credentials in the address. */
  readonly headers: Readonly<Record<string, string>>
}

type Targets = (url: string) => Target

const basicOf = ({ password, username }: URL): Readonly<Record<string, string>> => {
  if (username === "" && password === "") return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }
}

/** Parsed addresses, cached: there are a few of them. */
const makeTargets = (open: (origin: string) => Client) => {
  const targets = new Map<string, Target>()
  const origins = new Map<string, Connections>()
  const connectionsTo = (origin: string): Connections => {
    const connections = origins.get(origin) ?? new Connections(() => open(origin))
    origins.set(origin, connections)
    return connections
  }
  const targetOf: Targets = (url) => {
    const known = targets.get(url)
    if (known !== undefined) return known
    if (targets.size >= targetsMax) targets.clear()
    const address = new URL(url)
    const target = {
      connections: connectionsTo(address.origin),
      path: `${address.pathname}${address.search}`,
      headers: basicOf(address)
    }
    targets.set(url, target)
    return target
  }
  return {
    targetOf,
    end: () => {
      for (const connections of origins.values()) connections.end()
    }
  }
}

type Result = (said: HttpAnswered | CallFailed["reason"], code?: string) => void

type Unpack = (bytes: Buffer, options: ZlibOptions, done: (error: Error | null, body: Buffer) => void) => void

const unpackers: Readonly<Record<string, Unpack>> = { gzip: gunzip, deflate: inflate, br: brotliDecompress as Unpack }

/** A partial response. */
interface Received {
  status: number
  headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly chunks: Array<Buffer>
  bytes: number
}

const single = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "object" ? value[0] : value

/** The whole body as text; a compressed one is decompressed within the same bound. */
const report = ({ chunks, headers, status }: Received, bytesMax: number, result: Result): void => {
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  const answer = (body: Buffer) =>
    result({ status, retryAfter: single(headers["retry-after"]), body: body.toString("utf8") })
  const coding = single(headers["content-encoding"])
  if (coding === undefined || coding === "identity") return answer(bytes)
  const unpack = unpackers[coding]
  if (unpack === undefined) return result("unreachable")
  unpack(bytes, { maxOutputLength: bytesMax }, (error, body) => (error === null ? answer(body) : result("too long")))
}

/** The system's code of an error, such as ECONNREFUSED or CERT_HAS_EXPIRED; never the client's own codes. */
const systemCode = (error: Error): string | undefined =>
  /^(?!UND_)[A-Z][A-Z0-9_]+$/.exec(String((error as { readonly code?: unknown }).code))?.[0]

/** One call over one connection: retried once on a new one when a reused connection turned out to be closed. */
class Calling {
  readonly #call: HttpCall
  readonly #target: Target
  readonly #result: Result
  #isOver = false
  #connection: Connection | undefined
  #controller: Dispatcher.DispatchController | undefined

  constructor(call: HttpCall, target: Target, result: Result) {
    this.#call = call
    this.#target = target
    this.#result = result
  }

  readonly begin: Use = (connection) => {
    if (this.#isOver) return this.#target.connections.give(connection)
    this.#connection = connection
    connection.client.dispatch(
      {
        path: this.#target.path,
        method: "POST",
        headers: {
          ...this.#target.headers,
          ...this.#call.headers,
          "content-type": "application/json",
          "accept-encoding": "gzip, deflate, br"
        },
        body: this.#call.body
      },
      this.#handler(connection)
    )
  }

  /** An unread body would keep the connection, and no caller waits for a response. */
  readonly stop = (): void => {
    this.#isOver = true
    const { connections } = this.#target
    connections.leave(this.begin)
    if (this.#controller !== undefined) this.#controller.abort(stopped)
    else if (this.#connection !== undefined) connections.drop(this.#connection)
  }

  #leave(): void {
    this.#connection = undefined
    this.#controller = undefined
  }

  #handler(connection: Connection): Dispatcher.DispatchHandler {
    const { bytesMax } = this.#call
    const { connections } = this.#target
    const received: Received = { status: 0, headers: {}, chunks: [], bytes: 0 }
    const wasUsed = connection.isUsed
    return {
      onRequestStart: (controller) => {
        this.#controller = controller
        if (this.#isOver) controller.abort(stopped)
      },
      onResponseStart: (_controller, status, headers) => {
        received.status = status
        received.headers = headers
      },
      onResponseData: (_controller, chunk) => {
        received.bytes += chunk.length
        received.chunks.push(chunk)
        if (received.bytes > bytesMax) this.#result("too long")
      },
      onResponseEnd: () => {
        this.#leave()
        connection.isUsed = true
        // Not within the parser: the continuation may call over the same connection.
        queueMicrotask(() => {
          connections.give(connection)
          report(received, bytesMax, this.#result)
        })
      },
      onResponseError: (_controller, error) => {
        this.#leave()
        const isStale = wasUsed && received.status === 0 && !this.#isOver
        if (!isStale) {
          connections.give(connection)
          return this.#result("unreachable", systemCode(error))
        }
        // The retry's connection is new, so never stale.
        connection.isUsed = false
        this.begin(connection)
      }
    }
  }
}

const post = (targetOf: Targets, call: HttpCall): Effect.Effect<HttpAnswered, CallFailed> =>
  Effect.callback<HttpAnswered, CallFailed>((resume) => {
    let isResult = false
    const result: Result = (said, code) => {
      if (isResult) return
      isResult = true
      clearTimeout(timer)
      if (typeof said !== "string") return resume(Effect.succeed(said))
      resume(Effect.fail(new CallFailed({ reason: said, code })))
      calling.stop()
    }
    const target = targetOf(call.url)
    const calling = new Calling(call, target, result)
    const timer = setTimeout(() => result("timeout"), call.timeoutMillis)
    target.connections.take(calling.begin)
    return Effect.sync(() => {
      isResult = true
      clearTimeout(timer)
      calling.stop()
    })
  })

const acquire = Effect.acquireRelease(
  Effect.sync(() => {
    const own = createRequire(import.meta.url)("undici/lib/dispatcher/client.js") as typeof Client
    return makeTargets((origin) => new own(origin, clientOptions))
  }),
  ({ end }) => Effect.sync(end)
)

export const layer: Layer.Layer<HttpCalls> = Layer.effect(
  HttpCalls,
  Effect.map(acquire, ({ targetOf }) => HttpCalls.of({ post: (call) => post(targetOf, call) }))
)
