// MCP over stdin and stdout: one message a line. A line that is no message is answered with a parse error and changes
// nothing. When stdin ends, calls that have begun are answered first, and then the process ends (S181).
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js"
import { Effect, type Scope, Stream } from "effect"
import { Server } from "../../../kernel/config/Server.ts"
import type { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { ListenAt } from "../../../kernel/http/ListenAt.ts"
import { Stdio } from "../../../kernel/platform/Stdio.ts"
import { Supervisor } from "../../../kernel/Supervisor.ts"
import { Calls } from "./Calls.ts"
import { McpServers } from "./McpServers.ts"

const encoder = new TextEncoder()
const parseError = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error" } })

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #write: (line: string) => Promise<void>

  constructor(write: (line: string) => Promise<void>) {
    this.#write = write
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    return this.#write(JSON.stringify(message))
  }

  close(): Promise<void> {
    this.onclose?.()
    return Promise.resolve()
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
      const message = JSONRPCMessageSchema.safeParse(value)
      return message.success ? Effect.sync(() => transport.onmessage?.(message.data)) : stdio.write(parseError)
    })
  })

/** Chooses stdin and stdout; the first line is read once every plugin stands and `before` has passed. */
export const serveStdio = Effect.fnUntraced(function* (before: Effect.Effect<void, SettingsRefused>) {
  const stdio = yield* Stdio
  const supervisor = yield* Supervisor
  const { connect } = yield* McpServers
  const { drained, run } = yield* Calls
  const { requestBytesMax } = yield* Server
  const surroundings = yield* Effect.context<Scope.Scope>()
  const transport = new StdioTransport((line) => run(stdio.write(line)))
  const life = readLines(stdio, transport, requestBytesMax).pipe(Effect.andThen(drained), Effect.andThen(stdio.leave))
  const begins = before.pipe(
    Effect.andThen(connect(transport, { principal: "stdio", session: "stdio" })),
    Effect.andThen(supervisor.start({ id: "stdio", restart: "temporary", run: life })),
    Effect.provideContext(surroundings)
  )
  yield* (yield* ListenAt).choose({ at: "nowhere", begins, closing: Effect.void })
})
