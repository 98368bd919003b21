// One MCP server over one transport, in the era of sessions: the official SDK speaks the protocol, the tools answer. A
// call that its client cancels is interrupted; a client that can ask its person is asked on the stream of the call.
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import {
  CallToolRequestSchema,
  ElicitResultSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError
} from "@modelcontextprotocol/sdk/types.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Context, Effect, Layer } from "effect"
import type { Caller } from "../Tool.ts"
import { Tools } from "../Tools.ts"
import { answer, instructions, listed, serverName, unknownTool } from "./answerCall.ts"
import { Calls } from "./Calls.ts"

/** A person is waited for this long. */
const askTimeoutMillis = 120_000

type SendRequest = Parameters<Parameters<Server["setRequestHandler"]>[1]>[1]["sendRequest"]

/** The client's own way to ask its person, on the stream of the call. */
const asks =
  (sendRequest: SendRequest): NonNullable<Caller["ask"]> =>
  (message) =>
    Effect.match(
      Effect.tryPromise(() =>
        sendRequest(
          {
            method: "elicitation/create",
            params: {
              message,
              requestedSchema: {
                type: "object",
                properties: { approve: { type: "boolean", title: "Pay" } },
                required: ["approve"]
              }
            }
          },
          ElicitResultSchema,
          { timeout: askTimeoutMillis }
        )
      ),
      {
        onFailure: () => undefined,
        onSuccess: ({ action, content }) =>
          action === "accept" ? content?.["approve"] === true : action === "decline" ? false : undefined
      }
    )

const serverFor = (tools: Tools["Service"], calls: Calls["Service"], caller: Caller): Server => {
  const server = new Server(serverName, { capabilities: { tools: {} }, instructions })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: listed(tools)
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { sendRequest, signal }) => {
    const tool = tools.find(params.name)
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, ...unknownTool(tools))
    const asking =
      server.getClientCapabilities()?.elicitation === undefined ? caller : { ...caller, ask: asks(sendRequest) }
    return calls.run(calls.within(caller.session, answer(tool, params.arguments, asking)), { signal })
  })
  return server
}

export class McpServers extends Context.Service<
  McpServers,
  { readonly connect: (transport: Transport, caller: Caller) => Effect.Effect<Server> }
>()("tollkeeper/mcp-tools/McpServers") {
  static readonly layer = Layer.effect(
    McpServers,
    Effect.gen(function* () {
      const tools = yield* Tools
      const calls = yield* Calls
      return McpServers.of({
        connect: Effect.fnUntraced(function* (transport, caller) {
          const server = serverFor(tools, calls, caller)
          yield* Effect.promise(() => server.connect(transport))
          return server
        })
      })
    })
  )
}
