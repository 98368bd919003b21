// MCP over stdin and stdout, one message a line, in the era that the client's first message is of. A line that is no
// message is answered with a parse error and changes nothing. When stdin ends, calls that have begun are answered
// first, and then the process ends (S181).
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server"
import { serveStdio as serveEras } from "@modelcontextprotocol/server/stdio"
import { Effect, Latch, type Scope, Stream } from "effect"
import { Server } from "../../../kernel/config/Server.ts"
import type { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { ListenAt } from "../../../kernel/http/ListenAt.ts"
import { Stdio } from "../../../kernel/platform/Stdio.ts"
import { Supervisor } from "../../../kernel/Supervisor.ts"
import { Calls } from "./Calls.ts"
import { McpServers } from "./McpServers.ts"
import { messageIn } from "./messageIn.ts"

const encoder = new TextEncoder()
const parseError = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error" } })

/** Calls that have begun when stdin ends are waited for this long. */
const drainTimeout = "25 seconds"

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Ends when no call is open, or when they were waited for long enough. */
  readonly answered: Effect.Effect<void>
  readonly #write: (line: string) => Promise<void>
  readonly #calls = new Set<unknown>()
  readonly #idle = Latch.makeUnsafe(true)

  constructor(write: (line: string) => Promise<void>) {
    this.#write = write
    this.answered = Effect.asVoid(Effect.timeoutOption(this.#idle.await, drainTimeout))
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  receive(message: JSONRPCMessage): void {
    if ("method" in message && message.method === "tools/call" && "id" in message) this.#begin(message.id)
    if ("method" in message && message.method === "notifications/cancelled") this.#end(message.params?.["requestId"])
    this.onmessage?.(message)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#write(JSON.stringify(message))
    if (!("method" in message)) this.#end(message.id)
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

/** Hands each line to the transport until stdin ends. */
const readLines = (stdio: Stdio["Service"], transport: StdioTransport, lengthMax: number): Effect.Effect<void> =>
  Stream.runForEach(stdio.lines(lengthMax), (line) => {
    if (line !== undefined && line.trim() === "") return Effect.void
    const read =
      line === undefined
        ? Effect.succeed(undefined)
        : Effect.match(parseJson(encoder.encode(line)), { onFailure: () => undefined, onSuccess: (value) => value })
    return Effect.flatMap(read, (value) => {
      const message = messageIn(value)
      return message === undefined ? stdio.write(parseError) : Effect.sync(() => transport.receive(message))
    })
  })

/** Chooses stdin and stdout; the first line is read once every plugin stands and `before` has passed. */
export const serveStdio = Effect.fnUntraced(function* (before: Effect.Effect<void, SettingsRefused>) {
  const stdio = yield* Stdio
  const supervisor = yield* Supervisor
  const { serverFor } = yield* McpServers
  const { run } = yield* Calls
  const { requestBytesMax } = yield* Server
  const surroundings = yield* Effect.context<Scope.Scope>()
  const transport = new StdioTransport((line) => run(stdio.write(line)))
  const life = readLines(stdio, transport, requestBytesMax).pipe(
    Effect.andThen(transport.answered),
    Effect.andThen(stdio.leave)
  )
  const listen = Effect.sync(
    () => void serveEras(() => serverFor({ principal: "stdio", session: "stdio" }), { transport })
  )
  const begins = before.pipe(
    Effect.andThen(listen),
    Effect.andThen(supervisor.start({ id: "stdio", restart: "temporary", run: life })),
    Effect.provideContext(surroundings)
  )
  yield* (yield* ListenAt).choose({ at: "nowhere", begins, closing: Effect.void })
})
