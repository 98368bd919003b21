// The agent tool server: paid resources found and read over MCP, by stdin and stdout or by HTTP. It knows the
// facilitator by its public discovery routes alone, and opens no database and no ledger (S3, S5, S6); other plugins
// bring further tools. A client that hangs up does not end a call; a client that cancels does, as far as nothing is
// signed, and so does the end of the process.
import { Effect, Layer } from "effect"
import { Server } from "../../kernel/config/Server.ts"
import { settingsContract, SettingsRefused } from "../../kernel/config/Settings.ts"
import { configContract } from "../../kernel/drivers.ts"
import { Greeting } from "../../kernel/Greeting.ts"
import { Callers } from "../../kernel/http/Callers.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { Config, declared } from "./Config.ts"
import { DiscoveryClient } from "./discovery/DiscoveryClient.ts"
import { getTool } from "./discovery/getResource.ts"
import { searchTool } from "./discovery/searchResources.ts"
import { Wrapping } from "./discovery/wrapResource.ts"
import { Admission } from "./server/Admission.ts"
import { Calls } from "./server/Calls.ts"
import { McpServers } from "./server/McpServers.ts"
import { serveHttp } from "./server/serveHttp.ts"
import { Sessions } from "./server/Sessions.ts"
import { Stateless } from "./server/Stateless.ts"
import { serveStdio } from "./server/StdioTransport.ts"
import { Tools } from "./Tools.ts"
import { Upstreams } from "./Upstream.ts"

/** A signer that no enabled plugin pays with is a mistake of the profile; asked once every plugin stands. */
const somebodyPays = Effect.gen(function* () {
  const { signer } = yield* Config
  const tools = yield* Tools
  return Effect.suspend(() =>
    signer.mode === "none" || tools.all().some(({ pays }) => pays)
      ? Effect.void
      : new SettingsRefused({
          path: "signer.mode",
          message: `${signer.mode} is set and nothing pays: add mcp-tools-pay to plugins, or set the mode none`
        })
  )
})

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const { http, signer, transport } = yield* Config
    const keys = yield* Keys
    const { register } = yield* Tools
    yield* (yield* Greeting).title("Tollkeeper's agent tools are ready")
    // A caller nobody knows is never handed the operator's money.
    if (signer.mode !== "none" && transport === "http" && !keys.keyed()) {
      return yield* new SettingsRefused({
        path: "http.api_keys_env",
        message: `with a signer, agents need keys in ${http.apiKeysEnv}`
      })
    }
    yield* register(yield* searchTool)
    yield* register(yield* getTool)
    const before = yield* somebodyPays
    yield* transport === "stdio" ? serveStdio(before) : serveHttp(before)
  })
)

/** The keys are those that `http.api_keys_env` names. They stay in here: a facilitator is known by having such. */
const agents = Callers.layer.pipe(
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

/** What other plugins build on. */
const provided = Layer.mergeAll(DiscoveryClient.layer, Wrapping.layer, Layer.provide(Admission.layer, agents)).pipe(
  Layer.provideMerge(Upstreams.layer),
  Layer.provideMerge(Layer.merge(Config.layer, Tools.layer))
)

const edge = Layer.merge(Sessions.layer, Stateless.layer).pipe(
  Layer.provideMerge(McpServers.layer),
  Layer.provideMerge(Layer.merge(Calls.layer, agents))
)

export const plugin = define({
  id: "mcp-tools",
  summary: "Tools for agents over MCP: paid resources found and read in a facilitator's catalog.",
  boot: "required",
  needs: [settingsContract, supervisorContract, configContract],
  migrations: "none",
  settings: declared,
  layer: started.pipe(Layer.provide(edge), Layer.provideMerge(provided))
})

/** The settings of the server that would be started, for the command that tells a client of it. */
export const readSettings = Effect.provide(Config, Config.layer)
