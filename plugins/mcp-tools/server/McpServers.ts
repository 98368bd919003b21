// Creates the MCP server of one conversation or, in the era without sessions, of one request. The official SDK
// implements the protocol of either era, and the tools answer. A call that its client cancels is interrupted. If a
// person has to be asked first, a call ends with the question and is made again with the answer: by the client in the
// era without sessions, otherwise by this server on the call's stream. The call continues the caller's trace
// (`traceparent` in `_meta`).
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type ElicitRequestFormParams,
  type InputRequiredResult,
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
import { Config } from "../Config.ts"
import { Tools } from "../Tools.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import { answer, cutShort, instructions, isQuestion, listed, notAsked, serverName, unknownTool } from "./answerCall.ts"
import { Calls } from "./Calls.ts"
import type { ToolResult } from "./fitAnswer.ts"
import { inexactMeta } from "./messages.ts"
import { pageTemplate, Pages } from "./Pages.ts"

/** How long the SDK waits for a person's answer. */
const askTimeoutMillis = 120_000

/** How long a client may cache the list of tools, which changes only with the process. */
const listMillis = 60_000

const answerTemplate = {
  uriTemplate: pageTemplate,
  name: "answer",
  description: "A page of an answer that was too long for one message; its call names the first one.",
  mimeType: "application/json"
}

/** The first revision with clients that read `structuredContent`. */
const structureRevision = "2025-06-18"

const readsStructure = (server: Server): boolean => (server.getNegotiatedProtocolVersion() ?? "") >= structureRevision

type Requested = ServerContext["mcpReq"]

/** True if the client can show its person a form. */
const canAsk = (server: Server, { envelope }: Requested): boolean => {
  const ofRequest = (envelope as Readonly<Record<string, ClientCapabilities>>)?.[CLIENT_CAPABILITIES_META_KEY]
  const { elicitation } = ofRequest ?? server.getClientCapabilities() ?? {}
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
}

/** The person's answer to a question, by its key; without an answer the question is asked. */
const asks = ({ inputResponses }: Requested): Required<Pick<Caller, "ask" | "isAnswered">> => ({
  isAnswered: (key) => inputResponse(inputResponses, key).kind === "elicit",
  ask: (key, question) => {
    const answered = inputResponse(inputResponses, key)
    if (answered.kind !== "elicit") return new InputNeeded({ key, question })
    if (answered.action === "cancel") return Effect.succeed(undefined)
    return Effect.succeed(answered.action === "accept" && answered.content?.["approve"] === true)
  }
})

/** A conversation; in the era without sessions, one request. */
interface Conversation extends Pick<Caller, "principal" | "session"> {
  /** Identifies the request in addition to its id, if other requests of the session may have the same id. */
  readonly exchange?: string | undefined
}

/** Names of a session and of its requests in `Acknowledgements`. */
export const sessionName = ({ principal, session }: Conversation): string => `${session} ${principal}`
export const exchangeName = ({ exchange }: Conversation, id: unknown): string => exchange ?? JSON.stringify(id)

const idempotencyKeyLengthMax = 256

const idempotencyKeyOf = ({ _meta }: Requested): string | undefined => {
  const key = _meta?.["x402/idempotency-key"]
  return typeof key === "string" && key.length <= idempotencyKeyLengthMax ? key : undefined
}

/** Maximum rounds of questions in one call. */
const roundsMax = 2

/** Asks the person by a request to the client. In the era without sessions, the client calls again with the answers. */
const throughQuestions = async (
  mcpReq: Requested,
  answeredWith: (asked: Requested) => Promise<ToolResult | InputRequiredResult>
): Promise<ToolResult | InputRequiredResult> => {
  let result = await answeredWith(mcpReq)
  for (let round = 0; round < roundsMax && mcpReq.envelope === undefined && isQuestion(result); round++) {
    const inputResponses: Record<string, unknown> = {}
    try {
      for (const [key, { params }] of Object.entries(result.inputRequests ?? {}))
        inputResponses[key] = await mcpReq.elicitInput(params as ElicitRequestFormParams, { timeout: askTimeoutMillis })
    } catch (error) {
      if (mcpReq.signal.aborted) throw error
      return notAsked
    }
    result = await answeredWith({ ...mcpReq, inputResponses })
  }
  return result
}

/** Interval of progress notifications, for a client that asks for them. */
const progressInterval = "5 seconds"

const withProgress = <A, E, R>({ _meta, notify }: Requested, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return call
  let progress = 0
  const report = Effect.promise(() =>
    notify({ method: "notifications/progress", params: { progressToken, progress: ++progress } }).catch(() => undefined)
  )
  const reports = Effect.forever(Effect.andThen(Effect.sleep(progressInterval), report))
  return Effect.raceFirst(call, reports as Effect.Effect<never>)
}

const inexactOf = ({ _meta }: Requested): string | undefined => {
  const inexact = _meta?.[inexactMeta]
  return typeof inexact === "string" ? inexact : undefined
}

const traceOf = ({ _meta }: Requested) => {
  const traceparent = _meta?.["traceparent"]
  return typeof traceparent === "string" ? HttpTraceContext.w3c(Headers.fromInput({ traceparent })) : Option.none()
}

const serverFor = (
  tools: Tools["Service"],
  calls: Calls["Service"],
  { begin }: Acknowledgements["Service"],
  pages: Pages["Service"],
  bytesMax: number,
  conversation: Conversation
): Server => {
  const { principal, session } = conversation
  const server = new Server(serverName, {
    capabilities: { tools: {}, resources: {} },
    instructions,
    cacheHints: { "tools/list": { ttlMs: listMillis, cacheScope: "public" } },
    inputRequired: { roundTimeoutMs: askTimeoutMillis, maxRounds: 2 }
  })
  server.setRequestHandler("tools/list", () => ({ tools: listed(tools) }))
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = tools.find(params.name)
    if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, ...unknownTool(tools))
    const { acknowledge, note } = begin(sessionName(conversation), exchangeName(conversation, mcpReq.id))
    const caller: Caller = {
      principal,
      session,
      idempotencyKey: idempotencyKeyOf(mcpReq),
      onAcknowledged: note,
      inexact: inexactOf(mcpReq)
    }
    const fitting = { principal, readsStructure: readsStructure(server), bytesMax }
    const answeredWith = (asked: Requested) => {
      const asking = canAsk(server, mcpReq) ? { ...caller, ...asks(asked) } : caller
      const answered = Effect.provideService(
        answer(tool, params.arguments, asking, traceOf(mcpReq), fitting),
        Pages,
        pages
      )
      return calls.run(calls.within(session, withProgress(mcpReq, answered), cutShort), { signal: mcpReq.signal })
    }
    try {
      return await throughQuestions(mcpReq, answeredWith)
    } finally {
      await calls.run(acknowledge)
    }
  })
  server.setRequestHandler("resources/list", () => ({ resources: [] }))
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [answerTemplate] }))
  server.setRequestHandler("resources/read", async ({ params }, { mcpReq }) => {
    const page = await calls.run(pages.read(principal, params.uri), { signal: mcpReq.signal })
    if (page === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "there is no such resource, or it was evicted")
    const { next, text, uri } = page
    return {
      contents: [{ uri, mimeType: "application/json", text }],
      ...(next === undefined ? {} : { _meta: { next } })
    }
  })
  return server
}

export class McpServers extends Context.Service<
  McpServers,
  {
    /** A server that is not connected yet. */
    readonly serverFor: (conversation: Conversation) => Server
    readonly connect: (transport: Transport, conversation: Conversation) => Effect.Effect<Server>
  }
>()("tollkeeper/mcp-tools/McpServers") {
  static readonly layer = Layer.effect(
    McpServers,
    Effect.gen(function* () {
      const tools = yield* Tools
      const calls = yield* Calls
      const acknowledgements = yield* Acknowledgements
      const pages = yield* Pages
      const { answers, transport } = yield* Config
      const bytesMax = transport === "stdio" ? answers.stdioBytesMax : answers.httpBytesMax
      const made = (conversation: Conversation) =>
        serverFor(tools, calls, acknowledgements, pages, bytesMax, conversation)
      return McpServers.of({
        serverFor: made,
        connect: Effect.fnUntraced(function* (transport, conversation) {
          const server = made(conversation)
          yield* Effect.promise(() => server.connect(transport))
          return server
        })
      })
    })
  )
}
