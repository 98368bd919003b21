// The agent tool server: paid resources found and read over MCP, by stdin and stdout or by HTTP. It knows the
// facilitator by its public discovery routes alone; without a signer it opens no database and no ledger (S3, S5, S6). A
// client that hangs up does not end a call; a client that cancels does, as far as nothing is signed, and so does the
// end of the process.
import { Effect, FiberSet, Layer, Option, Semaphore } from "effect"
import { Server } from "../../kernel/config/Server.ts"
import { settingsContract, SettingsRefused } from "../../kernel/config/Settings.ts"
import { WireWords } from "../../kernel/config/WireWords.ts"
import { readNetwork, spellNetwork } from "../../kernel/Dialect.ts"
import { Greeting } from "../../kernel/Greeting.ts"
import { Callers } from "../../kernel/http/Callers.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { ListenAt } from "../../kernel/http/ListenAt.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Outbound } from "../../kernel/platform/Outbound.ts"
import { Stdio } from "../../kernel/platform/Stdio.ts"
import { define } from "../../kernel/Plugin.ts"
import { Supervisor, supervisorContract } from "../../kernel/Supervisor.ts"
import { listHolds, resolveHold } from "./budget/administration.ts"
import { callTool } from "./call/callResource.ts"
import { makePaying } from "./call/makePaying.ts"
import { Config } from "./Config.ts"
import { getTool } from "./discovery/getResource.ts"
import { makeDiscoveryClient } from "./discovery/DiscoveryClient.ts"
import { searchTool } from "./discovery/searchResources.ts"
import { makeWrap } from "./discovery/wrapResource.ts"
import { makeAdmit } from "./server/admit.ts"
import { addHealthRoutes } from "./server/healthRoutes.ts"
import { makeHttpParts } from "./server/httpParts.ts"
import { makeMcpServer, type Run } from "./server/makeMcpServer.ts"
import { addSseRoutes } from "./server/sseRoutes.ts"
import { readLines, StdioTransport } from "./server/StdioTransport.ts"
import { addStreamableRoutes } from "./server/streamableRoutes.ts"
import type { Tool } from "./Tool.ts"
import { makeUpstream } from "./Upstream.ts"

/** Calls that have begun when stdin ends, or when the process is asked to stop, are waited for this long. */
const drainTimeout = "25 seconds"

const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* Config
    const server = yield* Server
    const { dialects } = yield* WireWords
    const keys = yield* Keys
    const callers = yield* Callers
    const crypto = yield* Crypto
    const listenAt = yield* ListenAt
    const upstream = makeUpstream(yield* Outbound, config.caps, yield* Semaphore.make(config.caps.connectionsMax))
    const isOpen = config.facilitatorMayBeInsecure
    const discovery = makeDiscoveryClient(upstream({ allowLocal: isOpen, allowPlain: isOpen }), config.facilitatorUrl)
    const wrap = makeWrap(crypto, (url) => !url.startsWith("mcp:") || config.resolvedMcpEndpoints[url] !== undefined)
    const spell = (network: string) =>
      Option.match(readNetwork(network), {
        onNone: () => network,
        onSome: ({ network }) => spellNetwork(network, dialects[0])
      })
    const endpointOf = (url: string): URL | undefined => {
      const endpoint = url.startsWith("mcp:") ? config.resolvedMcpEndpoints[url] : url
      return endpoint !== undefined && URL.canParse(endpoint) ? new URL(endpoint) : undefined
    }
    const reading = [searchTool(discovery, wrap), getTool(discovery, wrap)]
    yield* (yield* Greeting).title("Tollkeeper's agent tools are ready")
    const hasSigner = config.signer.mode !== "none"
    // A caller nobody knows is never handed the operator's money.
    if (hasSigner && config.transport === "http" && !keys.keyed()) {
      return yield* new SettingsRefused({
        path: "http.api_keys_env",
        message: `with a signer, agents need keys in ${config.http.apiKeysEnv}`
      })
    }
    const sellers = upstream({ allowLocal: config.allowInsecureLocal, allowPlain: config.allowInsecureLocal })
    const paying = hasSigner
      ? [
          callTool({
            crypto,
            discovery,
            wrap,
            upstream: sellers,
            endpointOf,
            ...(yield* makePaying({ signerUpstream: upstream({ allowLocal: true, allowPlain: false }), spell }))
          })
        ]
      : []
    const tools = new Map([...reading, ...paying].map((tool): [string, Tool] => [tool.name, tool]))

    const calls = yield* FiberSet.make<unknown, unknown>()
    const run = (yield* FiberSet.runtimePromise(calls)<never>()) as Run

    if (config.transport === "stdio") {
      yield* listenAt.choose("nowhere")
      const stdio = yield* Stdio
      const supervisor = yield* Supervisor
      const transport = new StdioTransport((line) => run(stdio.write(line)))
      yield* Effect.promise(() =>
        makeMcpServer(tools, run, { principal: "stdio", session: "stdio" }).connect(transport)
      )
      const life = readLines(stdio, transport, server.requestBytesMax).pipe(
        Effect.andThen(Effect.timeoutOption(FiberSet.awaitEmpty(calls), drainTimeout)),
        Effect.andThen(stdio.leave)
      )
      return yield* supervisor.start({ id: "stdio", restart: "temporary", run: life })
    }

    const host = config.http.host ?? (keys.keyed() ? "0.0.0.0" : "127.0.0.1")
    const admit = makeAdmit(config.http, callers, host)
    const parts = makeHttpParts({ tools, run, crypto, http: config.http, bytesMax: server.requestBytesMax })
    const closeAll = Effect.andThen(yield* addStreamableRoutes(parts, admit), yield* addSseRoutes(parts, admit))
    // Calls that have begun are answered; a quiet stream is ended, since it would never end by itself.
    const closing = Effect.andThen(Effect.timeoutOption(FiberSet.awaitEmpty(calls), drainTimeout), closeAll)
    yield* listenAt.choose({ host, port: config.http.port, closing })
    yield* addHealthRoutes({
      discovery,
      payments: hasSigner ? "ready" : "disabled",
      networks: config.networks.map(spell)
    })
  })
)

/** The keys are those that `http.api_keys_env` names; operators have no routes here. */
const serverLayer = Layer.effect(
  Server,
  Effect.gen(function* () {
    const { http } = yield* Config
    return { ...(yield* Server), apiKeysEnv: http.apiKeysEnv }
  })
).pipe(Layer.provide(Server.layer))

export const plugin = define({
  id: "mcp-tools",
  summary: "Tools for agents over MCP: paid resources found and read in a facilitator's catalog.",
  boot: "required",
  needs: [settingsContract, supervisorContract],
  migrations: "none",
  layer: layer.pipe(
    Layer.provide(Callers.layer.pipe(Layer.provideMerge(Keys.layer), Layer.provideMerge(serverLayer))),
    Layer.provide(Layer.merge(Config.layer, WireWords.layer))
  )
})

/** What the command line does without a running tool server, over the budget's store alone. */
export const administration = { listHolds, resolveHold }
