// What the HTTP transports share: how a transport gets a server, how sessions are kept, and how long a message may be.
import type { Server } from "@modelcontextprotocol/sdk/server/index.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Effect, type Scope } from "effect"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { HttpValues } from "../Config.ts"
import type { Caller, Tool } from "../Tool.ts"
import { makeMcpServer, type Run } from "./makeMcpServer.ts"
import { makeSessions, type Sessions } from "./Sessions.ts"

export interface HttpParts {
  readonly bytesMax: number
  readonly connect: (transport: Transport, caller: Caller) => Effect.Effect<Server>
  readonly makeSessions: <T>() => Effect.Effect<Sessions<T>, never, Scope.Scope>
}

export const makeHttpParts = (options: {
  readonly tools: ReadonlyMap<string, Tool>
  readonly run: Run
  readonly crypto: Crypto["Service"]
  readonly http: HttpValues
  readonly bytesMax: number
}): HttpParts => ({
  bytesMax: options.bytesMax,
  connect: (transport, caller) =>
    Effect.gen(function* () {
      const server = makeMcpServer(options.tools, options.run, caller)
      yield* Effect.promise(() => server.connect(transport))
      return server
    }),
  makeSessions: <T>() => makeSessions<T>(options.crypto, options.http)
})
