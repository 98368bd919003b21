// Limits the connections of a listener, with the same code on Node and on Deno: their number, the time of each phase,
// and the bytes that they take. Deno's server has no deadlines, and neither server limits the unsent answers of a
// connection.
//
// A connection has one request at a time. If a client sends another one before it has received the previous answer, the
// request waits, and we do not read the socket in the meantime. So a client that does not read its answers costs one
// answer.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Server as SecureServer } from "node:https"
import type { Socket } from "node:net"
import { principalOf } from "../../kernel/http/addresses.ts"

/** Limits of the connections of a listener. */
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
  /** From the first byte of a request to the end of its head. */
  readonly headMillis: number
  /** From a request's head to the end of its body. */
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

/** Maximum queued requests: of one connection, of all connections, and of one connection while all exceed theirs. */
const waitingMax = 1_024
const allWaitingMax = 4_096
const waitingShare = 32

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
  /** Start of the current phase, and the bytes read until then. */
  since: number
  bytes: number
  hasAsked: boolean
  /** The request being answered; undefined between two requests. */
  current: Exchange | undefined
  readonly waiting: Array<Exchange>
  /** When we noticed the first byte of the next head. */
  headSince: number | undefined
  /** Since when sent bytes have been waiting for the reader. */
  unsentSince: number | undefined
}

/** Answers without reading the request, and closes the connection. */
const refuseUnread = (response: ServerResponse, status: number): void => {
  response.writeHead(status, { connection: "close", "content-length": 0, "retry-after": "1" }).end()
}

/** The connections of one listener. */
class Connections {
  readonly #limits: ConnectionLimits
  readonly #begin: (...exchange: Exchange) => void
  readonly #all = new Map<Socket, Connection>()
  readonly #counts = new Map<string, number>()
  #waiting = 0
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
    if (!isTrusted(peer) && (this.#counts.get(address) ?? 0) >= perAddressMax && !this.#evict(address)) return false
    if (this.#all.size >= connectionsMax && !this.#evict(this.#largest())) return false
    const connection: Connection = {
      socket,
      address,
      since: performance.now(),
      bytes: 0,
      hasAsked: false,
      current: undefined,
      waiting: [],
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

  /** Begins a request, or queues it until the previous answer has been sent. */
  admit(...exchange: Exchange): void {
    const { socket } = exchange[0]
    if (socket.destroyed) return
    const connection = this.#all.get(socket)
    if (connection === undefined) return this.#begin(...exchange)
    if (connection.current === undefined) this.#start(connection, exchange)
    else this.#wait(connection, exchange)
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
    response.once("close", () => this.#ended(connection))
    this.#watch()
    if (request.rawHeaders.length > 2 * headersMax) return refuseUnread(response, 431)
    if (isScarce && !isPayment(request)) return refuseUnread(response, 503)
    this.#begin(...exchange)
  }

  #wait(connection: Connection, exchange: Exchange): void {
    const count = connection.waiting.push(exchange)
    this.#waiting += 1
    connection.socket.pause()
    if (count > waitingMax || (this.#waiting > allWaitingMax && count > waitingShare)) this.#cut(connection)
  }

  #ended(connection: Connection): void {
    connection.current = undefined
    connection.since = performance.now()
    connection.bytes = connection.socket.bytesRead
    const next = connection.waiting.shift()
    if (next === undefined) return
    this.#waiting -= 1
    if (!connection.socket.writable) return
    if (connection.waiting.length === 0) connection.socket.resume()
    this.#start(connection, next)
  }

  #forget(connection: Connection): void {
    if (!this.#all.delete(connection.socket)) return
    this.#waiting -= connection.waiting.length
    connection.waiting.length = 0
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
    if (event === opened && !connections.open(args[0])) args[0].destroy()
    else if (event === "request" || event === "checkContinue") connections.admit(args[0], args[1], event)
    else return emit(event, ...args)
    return true
  }
}
