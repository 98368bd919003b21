// The transport of clients that predate Streamable HTTP: one long GET that carries everything as events. The first
// event names the address to POST to (S184). Messages wait in a queue with a maximum number and size; a client that
// does not read them loses its stream. Periodic comments keep proxies from closing a quiet stream.
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server"
import { Batches, type Sent } from "./Batches.ts"
import { answeredBy, cancelledBy } from "./messages.ts"
import type { RequestId } from "./rpcErrors.ts"
import { type Cause, Effect, Queue, Schedule, Stream } from "effect"

const waitingMax = 256
/** Maximum bytes of queued events. A larger single event may wait if the queue is empty. */
const waitingBytesMax = 1_048_576
const keepAlive = "15 seconds"

const encoder = new TextEncoder()

interface Event {
  readonly bytes: Uint8Array
  readonly answers: ReadonlyArray<RequestId>
}

const eventOf = (name: string, data: string, answers: ReadonlyArray<RequestId> = []): Event => ({
  bytes: encoder.encode(`event: ${name}\ndata: ${data}\n\n`),
  answers
})

export class SseTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly sessionId: string
  /** The body of the GET. */
  readonly events: Stream.Stream<Uint8Array>
  readonly #batches = new Batches()
  #waitingBytes = 0
  readonly #queue: Queue.Queue<Event, Cause.Done>

  /** `taken`: the connection has taken the answers to these requests. */
  static readonly make = (sessionId: string, taken: (ids: ReadonlyArray<RequestId>) => void = () => {}) =>
    Effect.map(Queue.dropping<Event, Cause.Done>(waitingMax), (queue) => new SseTransport(sessionId, queue, taken))

  constructor(
    sessionId: string,
    queue: Queue.Queue<Event, Cause.Done>,
    taken: (ids: ReadonlyArray<RequestId>) => void
  ) {
    this.sessionId = sessionId
    this.#queue = queue
    // The connection asks for an event once it has taken the previous one.
    let before: ReadonlyArray<RequestId> = []
    const taking = (event: Event): Uint8Array => {
      taken(before)
      before = event.answers
      this.#waitingBytes -= event.bytes.length
      return event.bytes
    }
    const beats = Stream.fromSchedule(Schedule.spaced(keepAlive)).pipe(
      Stream.map(() => encoder.encode(": keepalive\n\n"))
    )
    this.events = Stream.merge(Stream.map(Stream.fromQueue(queue), taking), beats, { haltStrategy: "left" }).pipe(
      Stream.ensuring(Effect.sync(() => this.#end()))
    )
  }

  start(): Promise<void> {
    const event = eventOf("endpoint", `/messages?sessionId=${this.sessionId}`)
    if (Queue.offerUnsafe(this.#queue, event)) this.#waitingBytes += event.bytes.length
    return Promise.resolve()
  }

  /** Handles the messages of one POST. */
  receive(messages: ReadonlyArray<JSONRPCMessage>, isBatch: boolean): void {
    if (isBatch) this.#batches.begin(messages)
    for (const message of messages) {
      this.onmessage?.(message)
      const cancelled = cancelledBy(message)
      const whole = cancelled === undefined ? undefined : this.#batches.cancel(cancelled)
      if (whole !== undefined) this.#write(whole)
    }
  }

  send(message: JSONRPCMessage): Promise<void> {
    const sent = this.#batches.answer(message)
    if (sent !== undefined) this.#write(sent)
    return Promise.resolve()
  }

  #write(sent: Sent): void {
    // JSON escapes line breaks, so one event is one line of data.
    const answers = [sent].flat().flatMap((message) => answeredBy(message) ?? [])
    const event = eventOf("message", JSON.stringify(sent), answers)
    const isFull = this.#waitingBytes > 0 && this.#waitingBytes + event.bytes.length > waitingBytesMax
    if (isFull || !Queue.offerUnsafe(this.#queue, event)) return this.#end()
    this.#waitingBytes += event.bytes.length
  }

  close(): Promise<void> {
    this.#end()
    return Promise.resolve()
  }

  #ended = false
  #end(): void {
    if (this.#ended) return
    this.#ended = true
    Queue.endUnsafe(this.#queue)
    this.onclose?.()
  }
}
