// The agent tool server: paid resources found and read over MCP, by stdin and stdout or by HTTP. It knows the
// facilitator by its public discovery routes alone, and opens no database and no ledger (S3, S5, S6); other plugins
// bring further tools. A client that hangs up does not end a call; a client that cancels does, as far as nothing is
// signed, and so does the end of the process.
import { Effect } from "effect"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { configContract } from "../../kernel/drivers.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { Config, declared } from "./Config.ts"

export const plugin = define({
  id: "mcp-tools",
  summary: "Tools for agents over MCP: paid resources found and read in a facilitator's catalog.",
  boot: "required",
  needs: [settingsContract, supervisorContract, configContract],
  migrations: "none",
  settings: declared,
  layer: loaded(() => import("./serveTools.ts"))
})

/** Settings of the server that would be started, for the command that configures a client for it. */
export const readSettings = Effect.provide(Config, Config.layer)
