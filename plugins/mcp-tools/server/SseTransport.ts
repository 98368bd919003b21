// The transport of clients that predate Streamable HTTP: one long GET on which everything is sent as events, the first
// of which names where to POST (S184). Messages wait in a queue that is bounded in number and bytes; a client that does
// not read them loses its stream. A comment now and then keeps proxies from closing a quiet stream.
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server"
import { Batches, type Sent } from "./Batches.ts"
import { answeredBy, cancelledBy } from "./messages.ts"
import type { RequestId } from "./rpcErrors.ts"
import { type Cause, Effect, Queue, Schedule, Stream } from "effect"

const waitingMax = 256
/** Bytes of the events that wait, at most; one that alone is larger may wait where nothing else does. */
const waitingBytesMax = 1_048_576
const keepAlive = "15 seconds"

const encoder = new TextEncoder()

interface Event {
  readonly bytes: Uint8Array
  /** The requests that it answers. */
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
  /** What the GET is answered with. */
  readonly events: Stream.Stream<Uint8Array>
  readonly #batches = new Batches()
  #waitingBytes = 0
  readonly #queue: Queue.Queue<Event, Cause.Done>

  /** `taken`: the answers to these requests have been taken by the connection. */
  static readonly make = (sessionId: string, taken: (ids: ReadonlyArray<RequestId>) => void = () => {}) =>
    Effect.map(Queue.dropping<Event, Cause.Done>(waitingMax), (queue) => new SseTransport(sessionId, queue, taken))

  constructor(
    sessionId: string,
    queue: Queue.Queue<Event, Cause.Done>,
    taken: (ids: ReadonlyArray<RequestId>) => void
  ) {
    this.sessionId = sessionId
    this.#queue = queue
    // The connection asks for an event once it has taken the one before.
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

  /** What one POST has brought. */
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
    // JSON holds no raw line break, so one event is one line of data.
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
