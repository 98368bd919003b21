// MCP without sessions, as of 2026-07-28, on the official SDK of that era: every request carries what it needs and is
// answered by a server of its own. It serves only clients that send its envelope; all others initialize and have a
// session. What an agent spends without sessions counts as one session of the agent.
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
    /** Whether a request without a session is of this era. */
    readonly isOurs: (request: Request, message: unknown) => Effect.Effect<boolean>
    /** `answered` makes the answer of the response; it runs its second argument once the whole was taken. */
    readonly handle: <A>(
      request: Request,
      message: unknown,
      principal: string,
      answered: (response: Response, taken: () => void) => A
    ) => Effect.Effect<A>
    /** Ends what is open. */
    readonly close: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Stateless") {
  static readonly layer = Layer.effect(
    Stateless,
    Effect.gen(function* () {
      const { serverFor } = yield* McpServers
      const calls = yield* Calls
      const { http } = yield* Config

      // The principal is what the door has found; no token leaves it.
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
        // A call like those it makes, so that the process waits for the answer and not for the tool alone.
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
