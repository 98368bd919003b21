// The agent tool server: finds and reads paid resources over MCP, by stdin and stdout or by HTTP. It accesses the
// facilitator only through its public discovery routes, and opens no database and no ledger (S3, S5, S6); other plugins
// add tools. A client that hangs up does not end a call. A client that cancels ends the part of a call that precedes
// signing, and so does the end of the process.
import { Effect } from "effect"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { configContract } from "../../kernel/drivers.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { Config, declared, signerVariables } from "./Config.ts"

export const plugin = define({
  id: "mcp-tools",
  summary: "Tools for agents over MCP: paid resources found and read in a facilitator's catalog.",
  boot: "required",
  needs: [settingsContract, supervisorContract, configContract],
  migrations: "none",
  settings: declared,
  layer: loaded(() => import("./serveTools.ts"))
})

/** Settings of the server, for the command that configures a client for it. */
export const readSettings = Effect.provide(Config, Config.layer)

export { signerVariables }
