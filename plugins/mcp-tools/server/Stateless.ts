// MCP without sessions, as of 2026-07-28, on the official SDK of that era: every request carries its context and is
// answered by its own server. Only clients that send its envelope use it; all others initialize and have a session. An
// agent's spending without sessions counts as one session of the agent.
import { createMcpHandler, isLegacyRequest } from "@modelcontextprotocol/server"
import { Context, Effect, Layer } from "effect"
import { Config } from "../Config.ts"
import { Calls } from "./Calls.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import { exchangeName, McpServers, sessionName } from "./McpServers.ts"

const session = "stateless"

export class Stateless extends Context.Service<
  Stateless,
  {
    /** True if a request without a session belongs to this era. */
    readonly isOurs: (request: Request, message: unknown) => Effect.Effect<boolean>
    /** `answered` converts the response; it calls its second argument once the client has taken all of it. */
    readonly handle: <A>(
      request: Request,
      message: unknown,
      principal: string,
      answered: (response: Response, taken: () => void) => A
    ) => Effect.Effect<A>
    /** Ends all open requests. */
    readonly close: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Stateless") {
  static readonly layer = Layer.effect(
    Stateless,
    Effect.gen(function* () {
      const { serverFor } = yield* McpServers
      const calls = yield* Calls
      const { http } = yield* Config

      // The principal comes from the admission check; the SDK gets no token.
      const handler = createMcpHandler(
        ({ authInfo }) => {
          const { clientId: principal, extra } = authInfo!
          return serverFor({ principal, session, exchange: String(extra?.["exchange"]) })
        },
        { legacy: "reject", maxSubscriptions: http.sessionsMax }
      )
      const { flushed } = yield* Acknowledgements
      let requests = 0
      const close = Effect.ignore(Effect.tryPromise(() => handler.close()))
      yield* Effect.addFinalizer(() => close)
      return Stateless.of({
        isOurs: (request, message) => Effect.promise(async () => !(await isLegacyRequest(request, message))),
        // The HTTP request counts as a call, like its tool calls, so that shutdown waits for its answer and not only
        // for the tool.
        handle: (request, parsedBody, principal, answered) => {
          const conversation = { principal, session, exchange: String(++requests) }
          const taken = () => flushed(sessionName(conversation), exchangeName(conversation, undefined))
          const extra = { exchange: conversation.exchange }
          const authInfo = { token: "", clientId: principal, scopes: [], extra }
          return Effect.map(
            Effect.promise(() => calls.run(Effect.promise(() => handler.fetch(request, { parsedBody, authInfo })))),
            (response) => answered(response, taken)
          )
        },
        close
      })
    })
  )
}
