// MCP over stdin and stdout, one message per line, in the era of the client's first message. A line that is not a
// message, or that exceeds a bound, is answered with a protocol error under its id if it has one, and changes nothing;
// a notification is never answered. When stdin ends, calls that have begun are answered first, and then the process
// ends (S181).
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server"
import { serveStdio as serveEras } from "@modelcontextprotocol/server/stdio"
import { Effect, Latch, type Scope, Stream } from "effect"
import { Server } from "../../../kernel/config/Server.ts"
import type { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { ListenAt } from "../../../kernel/http/ListenAt.ts"
import { Stdio } from "../../../kernel/platform/Stdio.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Batches } from "./Batches.ts"
import { Calls } from "./Calls.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import { exchangeName, McpServers, sessionName } from "./McpServers.ts"
import {
  answeredBy,
  cancelledBy,
  isNotification,
  readMessages,
  refusedLine,
  refusedText,
  withInexact
} from "./messages.ts"
import { errorOf, type Refused, type RequestId } from "./rpcErrors.ts"

const encoder = new TextEncoder()

/** How long we wait for open calls after stdin ends. */
const drainTimeout = "25 seconds"

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Ends when no call is open, or after the timeout. */
  readonly answered: Effect.Effect<void>
  readonly #write: (line: string) => Promise<void>
  readonly #batches = new Batches()
  #initializes: RequestId | undefined
  #revision: string | undefined
  readonly #calls = new Set<unknown>()
  readonly #idle = Latch.makeUnsafe(true)

  readonly #sent: (id: RequestId) => void

  /** `sent`: the pipe has taken the answer to this request. */
  constructor(write: (line: string) => Promise<void>, sent: (id: RequestId) => void = () => {}) {
    this.#write = write
    this.#sent = sent
    this.answered = Effect.asVoid(Effect.timeoutOption(this.#idle.await, drainTimeout))
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  get revision(): string | undefined {
    return this.#revision
  }

  /** Handles the messages of one line. */
  receive(messages: ReadonlyArray<JSONRPCMessage>, isBatch: boolean): void {
    if (isBatch) this.#batches.begin(messages)
    for (const message of messages) {
      if ("method" in message && "id" in message) {
        if (message.method === "tools/call") this.#begin(message.id)
        if (message.method === "initialize") this.#initializes = message.id
      }
      this.onmessage?.(message)
      const cancelled = cancelledBy(message)
      if (cancelled === undefined) continue
      const whole = this.#batches.cancel(cancelled)
      if (whole !== undefined) void this.#write(JSON.stringify(whole))
      this.#end(cancelled)
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const id = answeredBy(message)
    if (id !== undefined && id === this.#initializes && "result" in message)
      this.#revision = String(message.result["protocolVersion"])
    const sent = this.#batches.answer(message)
    if (sent !== undefined) {
      await this.#write(JSON.stringify(sent))
      for (const one of [sent].flat()) {
        const answered = answeredBy(one)
        if (answered !== undefined) this.#sent(answered)
      }
    }
    if (id !== undefined) this.#end(id)
  }

  close(): Promise<void> {
    this.onclose?.()
    return Promise.resolve()
  }

  #begin(id: unknown): void {
    this.#calls.add(id)
    this.#idle.closeUnsafe()
  }

  #end(id: unknown): void {
    if (this.#calls.delete(id) && this.#calls.size === 0) this.#idle.openUnsafe()
  }
}

/** Passes each line to the transport until stdin ends. */
const readLines = (stdio: Stdio["Service"], transport: StdioTransport, lengthMax: number): Effect.Effect<void> => {
  const refuse = (refused: Refused | undefined) =>
    refused === undefined ? Effect.void : stdio.write(JSON.stringify(errorOf(refused)))
  const take = (value: unknown) => {
    const read = readMessages(value, transport.revision)
    if (read._tag === "Refused") return refuse(isNotification(value) ? undefined : read)
    const messages = read._tag === "One" ? [read.message] : read.messages
    return Effect.sync(() => transport.receive(messages, read._tag === "Batch"))
  }
  return Stream.runForEach(stdio.lines(lengthMax), (line) => {
    if (typeof line !== "string") return refuse(refusedLine(line))
    if (line.trim() === "") return Effect.void
    return Effect.matchEffect(parseJson(encoder.encode(line)), {
      onFailure: ({ message }) => refuse(refusedText(line, message)),
      onSuccess: (value) => take(withInexact(line, value))
    })
  })
}

/** Serves stdin and stdout. The first line is read after every plugin has started and `before` has passed. */
export const serveStdio = Effect.fnUntraced(function* (before: Effect.Effect<void, SettingsRefused>) {
  const stdio = yield* Stdio
  const supervisor = yield* Supervisor
  const { serverFor } = yield* McpServers
  const { run } = yield* Calls
  const { requestBytesMax } = yield* Server
  const surroundings = yield* Effect.context<Scope.Scope>()
  const { flushed } = yield* Acknowledgements
  const conversation = { principal: "stdio", session: "stdio" }
  const transport = new StdioTransport(
    (line) => run(stdio.write(line)),
    (id) => flushed(sessionName(conversation), exchangeName(conversation, id))
  )
  const life = readLines(stdio, transport, requestBytesMax).pipe(
    Effect.andThen(transport.answered),
    Effect.andThen(stdio.leave)
  )
  const listen = Effect.sync(() => void serveEras(() => serverFor(conversation), { transport }))
  const begins = before.pipe(
    Effect.andThen(listen),
    Effect.andThen(supervisor.start({ id: "stdio", restart: "temporary", run: life })),
    Effect.provideContext(surroundings)
  )
  yield* (yield* ListenAt).choose({ at: "nowhere", begins, closing: Effect.void })
})
