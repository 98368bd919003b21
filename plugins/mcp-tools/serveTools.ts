// Starts the agent tool server: its tools, its callers' keys, its transport. Loaded only if a profile enables it, since
// it loads the MCP SDK, which a facilitator does not need.
import { Effect, Layer } from "effect"
import { Server } from "../../kernel/config/Server.ts"
import { SettingsRefused } from "../../kernel/config/Settings.ts"
import { StartupBanner } from "../../kernel/StartupBanner.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { Config } from "./Config.ts"
import { DiscoveryClient } from "./discovery/DiscoveryClient.ts"
import { getTool } from "./discovery/getResource.ts"
import { searchTool } from "./discovery/searchResources.ts"
import { Wrapping } from "./discovery/wrapResource.ts"
import { Acknowledgements } from "./server/Acknowledgements.ts"
import { AdmissionControl } from "./server/AdmissionControl.ts"
import { Calls } from "./server/Calls.ts"
import { McpServers } from "./server/McpServers.ts"
import { Pages } from "./server/Pages.ts"
import { Sessions } from "./server/Sessions.ts"
import { Stateless } from "./server/Stateless.ts"
import { serveStdio } from "./server/StdioTransport.ts"
import { Tools } from "./Tools.ts"
import { Upstreams } from "./Upstream.ts"
import { ListenAt } from "../../kernel/http/ListenAt.ts"
import { addHealthRoutes } from "./server/healthRoutes.ts"
import { addSseRoutes } from "./server/sseRoutes.ts"
import { addMetadataRoutes, addStreamableRoutes } from "./server/streamableRoutes.ts"

/** The HTTP transports and the health routes on one port. The port opens once every plugin has started. */
const serveHttp = Effect.fnUntraced(function* (before: Effect.Effect<void, SettingsRefused>) {
  const { http } = yield* Config
  const { host } = yield* AdmissionControl
  const { stopped } = yield* Calls
  const { closeAll } = yield* Sessions
  const { close } = yield* Stateless
  yield* addMetadataRoutes
  yield* addStreamableRoutes
  yield* addSseRoutes
  yield* addHealthRoutes
  yield* (yield* ListenAt).choose({
    at: { host, port: http.port },
    allowedOrigins: http.allowedOrigins,
    begins: before,
    // Open calls are answered with their result or the request to repeat them. Idle streams are closed, since they
    // would never end otherwise.
    closing: Effect.andThen(stopped, Effect.andThen(closeAll, close))
  })
})

/** A signer without a plugin that pays is a mistake in the profile; checked after every plugin has started. */
const requirePayer = Effect.gen(function* () {
  const { signer } = yield* Config
  const tools = yield* Tools
  return Effect.suspend(() =>
    signer.mode === "none" || tools.all().some(({ pays }) => pays)
      ? Effect.void
      : new SettingsRefused({
          path: "signer.mode",
          message: `${signer.mode} is set but no plugin pays: add mcp-tools-pay to plugins, or set the mode to none`
        })
  )
})

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const { http, signer, transport } = yield* Config
    const keys = yield* Keys
    const { register } = yield* Tools
    yield* (yield* StartupBanner).title("Tollkeeper's agent tools are ready")
    // An unauthenticated caller never spends the operator's money.
    if (signer.mode !== "none" && transport === "http" && !keys.keyed()) {
      return yield* new SettingsRefused({
        path: "http.api_keys_env",
        message: `with a signer, agents need keys in ${http.apiKeysEnv}`
      })
    }
    yield* register(yield* searchTool)
    yield* register(yield* getTool)
    const before = yield* requirePayer
    yield* transport === "stdio" ? serveStdio(before) : serveHttp(before)
  })
)

/**
 * The keys come from `http.api_keys_env`. This layer stays private: a process that provides keys counts as a
 * facilitator.
 */
const agents = Authentication.layer.pipe(
  Layer.provideMerge(Keys.layer),
  Layer.provide(
    Layer.effect(
      Server,
      Effect.gen(function* () {
        const { http } = yield* Config
        return { ...(yield* Server), apiKeysEnv: http.apiKeysEnv }
      })
    )
  )
)

const provided = Layer.mergeAll(
  DiscoveryClient.layer,
  Wrapping.layer,
  Pages.layer,
  Layer.provide(AdmissionControl.layer, agents)
).pipe(Layer.provideMerge(Upstreams.layer), Layer.provideMerge(Layer.merge(Config.layer, Tools.layer)))

const edge = Layer.merge(Sessions.layer, Stateless.layer).pipe(
  Layer.provideMerge(McpServers.layer),
  Layer.provideMerge(Layer.mergeAll(Calls.layer, Acknowledgements.layer, agents))
)

export const layer = started.pipe(Layer.provide(edge), Layer.provideMerge(provided))
