// Limits the connections of a listener, with the same code on Node and on Deno: their number, the time of each phase,
// and the bytes that they take. Deno's server has no deadlines, and neither server limits the unsent answers of a
// connection.
//
// A connection has one request at a time. If a client sends another one before it has received the previous answer, the
// request waits, and we do not read the socket in the meantime. The server's parser gets a few bytes at a time, because
// it parses all requests of the bytes that it gets: 650 in one read, which took longer than a payment. So a client that
// does not read its answers costs one answer.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Server as SecureServer } from "node:https"
import type { Socket } from "node:net"
import { principalOf } from "../../kernel/http/addresses.ts"
import { SlowLane } from "./SlowLane.ts"

export interface ConnectionLimits {
  readonly connectionsMax: number
  /** Connections of one address, or of one /64 of IPv6. */
  readonly perAddressMax: number
  /** True for addresses without a per-address limit: the proxies that the settings trust. */
  readonly isTrusted: (address: string) => boolean
  /** True for requests that are accepted as long as any connection is left. */
  readonly isPayment: (request: IncomingMessage) => boolean
  /** Maximum bytes of one request, its head and framing included. */
  readonly requestBytesMax: number
  readonly headMillis: number
  readonly bodyMillis: number
  /** Time limits for a connection that has sent nothing, and for one that is idle between two requests. */
  readonly silentMillis: number
  readonly restMillis: number
  /** Time limit to send an answer once it waits for its reader, plus one millisecond for every `sentPerMilli` bytes. */
  readonly unsentMillis: number
  /** Minimum speed of a reader, in bytes per millisecond. */
  readonly sentPerMilli: number
  /** Maximum unsent bytes of all connections; above it, the connections that have waited longest are closed. */
  readonly unsentBytesMax: number
}

export const connectionLimits: ConnectionLimits = {
  connectionsMax: 2_048,
  perAddressMax: 512,
  isTrusted: () => false,
  isPayment: () => true,
  requestBytesMax: 2_097_152,
  headMillis: 7_000,
  bodyMillis: 30_000,
  silentMillis: 10_000,
  restMillis: 75_000,
  unsentMillis: 10_000,
  sentPerMilli: 32,
  unsentBytesMax: 67_108_864
}

/**
 * A connection is closed if a request's head is incomplete after seven seconds, and after ten at the latest. Node
 * checks connections on a timer that wakes an idle process; at twice a second, the checks were nearly half of its
 * wake-ups. Keep-alive exceeds the usual idle time of clients; otherwise a periodic poller would reconnect each time.
 * Duplicate headers are kept.
 */
export const connectionBounds = {
  headersTimeout: 7_000,
  connectionsCheckingInterval: 2_500,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  joinDuplicateHeaders: true
}

/** Limits of a request's head. The parsers' own limit counts only after a whole read. */
const headBytesMax = 131_072
const headersMax = 200

/** Maximum bytes that the parser gets at a time: a few requests. */
const parsedBytesMax = 2_048
const nothing = Buffer.alloc(0)

/** Statuses of requests that a client should not repeat immediately. */
const refusals: ReadonlySet<number> = new Set([401, 403, 429])

/** How often connections are checked while at least one is active, and while all are idle. */
const busyMillis = 250
const calmMillis = 2_500

/** Share of the connections above which a new connection may only pay. */
const payingShare = 0.75

/** The server's event that delivers a request. */
type RequestEvent = "request" | "checkContinue"
type Exchange = readonly [request: IncomingMessage, response: ServerResponse, event: RequestEvent]

interface Connection {
  readonly socket: Socket
  readonly address: string
  readonly isTrusted: boolean
  /** Start of the current phase, and the bytes read until then. */
  since: number
  bytes: number
  hasAsked: boolean
  /** The request being answered; undefined between two requests. */
  current: Exchange | undefined
  readonly waiting: Array<Exchange>
  /** Bytes that were read and that the parser has not received yet. */
  unparsed: Buffer
  /** The end of its wait in the slow lane; it is not read until then. */
  held: NodeJS.Timeout | undefined
  /** When we noticed the first byte of the next head. */
  headSince: number | undefined
  /** Since when sent bytes have been waiting for the reader. */
  unsentSince: number | undefined
}

/** Parts of a request's body: these, and one more for each of these bytes. A part takes half a kilobyte of memory. */
const partsAlways = 1_024
const bytesPerPart = 64

/** Closes the connection if its request's body comes in too many parts, whether it is read or waits. */
const limitParts = (request: IncomingMessage): void => {
  const { push, socket } = request
  let [bytes, parts] = [0, 0]
  request.push = (chunk: Buffer | null, ...more) => {
    bytes += chunk?.length ?? 0
    parts += 1
    if (parts <= partsAlways + bytes / bytesPerPart) return push.call(request, chunk, ...more)
    socket.destroy()
    return false
  }
}

/** Answers without reading the request, and closes the connection. */
const refuseUnread = (response: ServerResponse, status: number): void => {
  response.writeHead(status, { connection: "close", "content-length": 0, "retry-after": "1" }).end()
}

class Connections {
  readonly #limits: ConnectionLimits
  readonly #begin: (...exchange: Exchange) => void
  readonly #all = new Map<Socket, Connection>()
  readonly #counts = new Map<string, number>()
  readonly #slow = new SlowLane()
  #timer: NodeJS.Timeout | undefined
  #isCalm = false

  /** `begin`: called with each request when its turn comes. */
  constructor(limits: Partial<ConnectionLimits>, begin: (...exchange: Exchange) => void) {
    this.#limits = { ...connectionLimits, ...limits }
    this.#begin = begin
  }

  /** Accepts a new connection. At the limit it replaces an idle one; otherwise the new connection is refused. */
  open(socket: Socket): boolean {
    const { connectionsMax, isTrusted, perAddressMax } = this.#limits
    const peer = socket.remoteAddress ?? "unknown"
    const address = principalOf(peer)
    const trusted = isTrusted(peer)
    if (!trusted && (this.#counts.get(address) ?? 0) >= perAddressMax && !this.#evict(address)) return false
    if (this.#all.size >= connectionsMax && !this.#evict(this.#largest())) return false
    const connection: Connection = {
      socket,
      address,
      isTrusted: trusted,
      since: performance.now(),
      bytes: 0,
      hasAsked: false,
      current: undefined,
      waiting: [],
      unparsed: nothing,
      held: undefined,
      headSince: undefined,
      unsentSince: undefined
    }
    this.#all.set(socket, connection)
    this.#counts.set(address, (this.#counts.get(address) ?? 0) + 1)
    socket.on("drain", () => {
      connection.unsentSince = undefined
    })
    socket.once("close", () => this.#forget(connection))
    this.#watch()
    return true
  }

  /**
   * Called once the server has set up a new connection: takes the place of its parser's listener, and reads the
   * connection later if its address has to wait.
   */
  opened(socket: Socket): void {
    const connection = this.#all.get(socket)
    if (connection === undefined) return
    const [deliver] = socket.listeners("data") as Array<(bytes: Buffer) => void>
    // The server resumes the socket after each request, also after one that waits.
    const waits = () => connection.waiting.length > 0 || connection.held !== undefined
    const parse = () => {
      while (connection.unparsed.length > 0 && !waits() && !socket.isPaused() && !socket.destroyed) {
        const bytes = connection.unparsed.subarray(0, parsedBytesMax)
        connection.unparsed = connection.unparsed.subarray(parsedBytesMax)
        deliver!.call(socket, bytes)
      }
      if (waits()) socket.pause()
    }
    socket.removeListener("data", deliver!)
    // The parser reads the socket's handle itself. Node ends that for a new listener; Deno needs the call.
    ;(socket as Socket & { readonly parser?: { unconsume(): void } }).parser?.unconsume()
    socket.on("data", (bytes) => {
      connection.unparsed = connection.unparsed.length === 0 ? bytes : Buffer.concat([connection.unparsed, bytes])
      parse()
    })
    socket.on("resume", parse)
    this.#hold(connection)
  }

  #hold(connection: Connection): void {
    const { address, socket } = connection
    const wait = this.#slow.waitOf(address, performance.now())
    if (wait === 0 || connection.held !== undefined || socket.destroyed) return
    socket.pause()
    connection.held = setTimeout(() => {
      connection.held = undefined
      connection.since = performance.now()
      this.#next(connection)
    }, wait).unref()
  }

  /** Begins a request, or queues it until the previous answer has been sent. */
  admit(...exchange: Exchange): void {
    const { socket } = exchange[0]
    if (socket.destroyed) return
    limitParts(exchange[0])
    const connection = this.#all.get(socket)
    if (connection === undefined) return this.#begin(...exchange)
    if (connection.current === undefined && connection.held === undefined) this.#start(connection, exchange)
    else connection.waiting.push(exchange)
  }

  #start(connection: Connection, exchange: Exchange): void {
    const [request, response] = exchange
    const { connectionsMax, isPayment } = this.#limits
    const isScarce = !connection.hasAsked && this.#all.size > connectionsMax * payingShare
    connection.current = exchange
    connection.hasAsked = true
    connection.headSince = undefined
    connection.since = performance.now()
    connection.bytes = connection.socket.bytesRead
    response.once("close", () => this.#ended(connection, response.statusCode))
    this.#watch()
    if (request.rawHeaders.length > 2 * headersMax) return refuseUnread(response, 431)
    if (isScarce && !isPayment(request)) return refuseUnread(response, 503)
    this.#begin(...exchange)
  }

  #ended(connection: Connection, status: number): void {
    const now = performance.now()
    // Deno's server does not always read the rest of the body.
    connection.current?.[0].resume()
    connection.current = undefined
    connection.since = now
    connection.bytes = connection.socket.bytesRead
    if (refusals.has(status) && !connection.isTrusted) {
      this.#slow.refused(connection.address, now)
      this.#hold(connection)
    }
    if (connection.held === undefined) this.#next(connection)
  }

  /** Begins the next queued request, and reads on. */
  #next(connection: Connection): void {
    const next = connection.waiting.shift()
    if (!connection.socket.writable) return
    if (connection.waiting.length === 0 && connection.socket.isPaused()) connection.socket.resume()
    if (next !== undefined) this.#start(connection, next)
  }

  #forget(connection: Connection): void {
    if (!this.#all.delete(connection.socket)) return
    clearTimeout(connection.held)
    connection.waiting.length = 0
    connection.unparsed = nothing
    const left = (this.#counts.get(connection.address) ?? 1) - 1
    if (left === 0) this.#counts.delete(connection.address)
    else this.#counts.set(connection.address, left)
  }

  #cut(connection: Connection): void {
    this.#forget(connection)
    connection.socket.destroy()
  }

  #largest(): string {
    return [...this.#counts].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
  }

  /**
   * Closes an address's longest-idle connection or, without an idle one, the one that has waited longest for its
   * reader.
   */
  #evict(address: string): boolean {
    let worst: Connection | undefined
    const ageOf = ({ current, since, unsentSince }: Connection) => (current === undefined ? since : unsentSince)
    for (const one of this.#all.values()) {
      const age = ageOf(one)
      if (one.address !== address || age === undefined) continue
      const rests = one.current === undefined
      const better = worst === undefined || (rests && worst.current !== undefined)
      if (better || (rests === (worst!.current === undefined) && age < ageOf(worst!)!)) worst = one
    }
    if (worst !== undefined) this.#cut(worst)
    return worst !== undefined
  }

  /** Schedules a check soon. */
  #watch(): void {
    if (this.#isCalm) clearTimeout(this.#timer)
    else if (this.#timer !== undefined) return
    this.#schedule(busyMillis)
  }

  #schedule(millis: number): void {
    this.#isCalm = millis !== busyMillis
    this.#timer = setTimeout(() => this.#check(), millis).unref()
  }

  #check(): void {
    const now = performance.now()
    let unsent = 0
    let isBusy = false
    for (const connection of this.#all.values()) {
      if (this.#isOver(connection, now)) this.#cut(connection)
      else {
        unsent += connection.socket.writableLength
        isBusy ||= connection.current !== undefined || connection.headSince !== undefined
      }
    }
    if (unsent > this.#limits.unsentBytesMax) this.#cutUnsent(unsent)
    this.#timer = undefined
    this.#isCalm = false
    if (this.#all.size > 0) this.#schedule(isBusy ? busyMillis : calmMillis)
  }

  /** Closes the connections that have waited longest, until the rest are within the limit. */
  #cutUnsent(bytes: number): void {
    const late = [...this.#all.values()].filter(({ unsentSince }) => unsentSince !== undefined)
    let left = bytes
    for (const connection of late.sort((a, b) => a.unsentSince! - b.unsentSince!)) {
      if (left <= this.#limits.unsentBytesMax) return
      left -= connection.socket.writableLength
      this.#cut(connection)
    }
  }

  /** True if a connection exceeds a limit. */
  #isOver(connection: Connection, now: number): boolean {
    const { bodyMillis, headMillis, requestBytesMax, restMillis, sentPerMilli, silentMillis, unsentMillis } =
      this.#limits
    const { current, since, socket } = connection
    const unsent = socket.writableLength
    connection.unsentSince = unsent === 0 ? undefined : (connection.unsentSince ?? now)
    if (now - (connection.unsentSince ?? now) > unsentMillis + unsent / sentPerMilli) return true
    const read = socket.bytesRead - connection.bytes
    if (read > requestBytesMax) return true
    if (current !== undefined) return !current[0].complete && now - since > bodyMillis
    if (read === 0) return now - since > (connection.hasAsked ? restMillis : silentMillis)
    connection.headSince ??= now
    return now - connection.headSince > headMillis || (!connection.hasAsked && read > headBytesMax)
  }
}

/**
 * Keeps a server's connections within limits. Calls `begin` with each request in turn, in place of the event. Call it
 * before the server listens.
 */
export const limitConnections = (
  server: Server | SecureServer,
  limits: Partial<ConnectionLimits>,
  begin: (...exchange: Exchange) => void
): void => {
  const emit = server.emit.bind(server) as (event: string, ...args: Array<any>) => boolean
  const connections = new Connections(limits, begin)
  const opened = "setSecureContext" in server ? "secureConnection" : "connection"
  server.emit = (event: string, ...args: Array<any>) => {
    if (event === "request" || event === "checkContinue") connections.admit(args[0], args[1], event)
    else if (event !== opened) return emit(event, ...args)
    else if (!connections.open(args[0])) args[0].destroy()
    else {
      emit(event, ...args)
      connections.opened(args[0])
    }
    return true
  }
}
