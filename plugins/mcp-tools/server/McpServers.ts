// The server of one conversation or, in the era without sessions, of one request: the official SDK speaks the protocol
// of either era, the tools answer. A call that its client cancels is interrupted. Where a person has to be asked first,
// a call ends with the question and is made again with the answer: by the client in the era without sessions, by the
// SDK on the stream of the call in the other. A caller's trace (`traceparent` in `_meta`) continues in the call's.
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  inputResponse,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Transport
} from "@modelcontextprotocol/server"
import { Context, Effect, Layer, Option } from "effect"
import { Headers, HttpTraceContext } from "effect/http"
import { type Caller, InputNeeded } from "../Tool.ts"
import { Tools } from "../Tools.ts"
import { answer, cutShort, instructions, listed, serverName, unknownTool } from "./answerCall.ts"
import { Calls } from "./Calls.ts"

/** A person is waited for this long, where the SDK waits. */
const askTimeoutMillis = 120_000

/** How long a client may keep the list of tools: it changes with the process alone. */
const listMillis = 60_000

/** The first revision whose clients read `structuredContent`. */
const structureRevision = "2025-06-18"

const readsStructure = (server: Server): boolean => (server.getNegotiatedProtocolVersion() ?? "") >= structureRevision

type Requested = ServerContext["mcpReq"]

/** The client can show its person a form. */
const canAsk = (server: Server, { envelope }: Requested): boolean => {
  const ofRequest = (envelope as Readonly<Record<string, ClientCapabilities>>)?.[CLIENT_CAPABILITIES_META_KEY]
  const { elicitation } = ofRequest ?? server.getClientCapabilities() ?? {}
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
}

/** What the person answered to the question of a key; a question without an answer is asked. */
const asks = ({ inputResponses }: Requested): Required<Pick<Caller, "ask" | "isAnswered">> => ({
  isAnswered: (key) => inputResponse(inputResponses, key).kind === "elicit",
  ask: (key, question) => {
    const answered = inputResponse(inputResponses, key)
    if (answered.kind !== "elicit") return new InputNeeded({ key, question })
    if (answered.action === "cancel") return Effect.succeed(undefined)
    return Effect.succeed(answered.action === "accept" && answered.content?.["approve"] === true)
  }
})

/** The trace that the caller is in. */
const traceOf = ({ _meta }: Requested) => {
  const traceparent = _meta?.["traceparent"]
  return typeof traceparent === "string" ? HttpTraceContext.w3c(Headers.fromInput({ traceparent })) : Option.none()
}

const serverFor = (tools: Tools["Service"], calls: Calls["Service"], caller: Caller): Server => {
  const server = new Server(serverName, {
    capabilities: { tools: {} },
    instructions,
    cacheHints: { "tools/list": { ttlMs: listMillis, cacheScope: "public" } },
    inputRequired: { roundTimeoutMs: askTimeoutMillis, maxRounds: 2 }
  })
  server.setRequestHandler("tools/list", () => ({ tools: listed(tools) }))
  server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
    const tool = tools.find(params.name)
    if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, ...unknownTool(tools))
    const asking = canAsk(server, mcpReq) ? { ...caller, ...asks(mcpReq) } : caller
    const answered = answer(tool, params.arguments, asking, traceOf(mcpReq), readsStructure(server))
    return calls.run(calls.within(caller.session, answered, cutShort), { signal: mcpReq.signal })
  })
  return server
}

export class McpServers extends Context.Service<
  McpServers,
  {
    /** A server that is not connected yet. */
    readonly serverFor: (caller: Caller) => Server
    readonly connect: (transport: Transport, caller: Caller) => Effect.Effect<Server>
  }
>()("tollkeeper/mcp-tools/McpServers") {
  static readonly layer = Layer.effect(
    McpServers,
    Effect.gen(function* () {
      const tools = yield* Tools
      const calls = yield* Calls
      return McpServers.of({
        serverFor: (caller) => serverFor(tools, calls, caller),
        connect: Effect.fnUntraced(function* (transport, caller) {
          const server = serverFor(tools, calls, caller)
          yield* Effect.promise(() => server.connect(transport))
          return server
        })
      })
    })
  )
}
