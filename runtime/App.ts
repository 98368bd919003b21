// The program: every plugin in dependency order, on top of the kernel's drivers. A profile chooses from it. It imports
// nothing platform-specific: the ports that plugins need are provided from outside.
import * as Migrations from "../kernel/database/Migrations.ts"
import { drivers } from "../kernel/drivers.ts"
import { gather } from "../kernel/config/gather.ts"
import type { Declarations } from "../kernel/config/NetworkKeys.ts"
import type { SettingsSource } from "../kernel/config/Settings.ts"
import type { Catalogue } from "../kernel/plugin/Loader.ts"
import { catalogue, type AnyPlugin, define } from "../kernel/plugin/Plugin.ts"
import { plugin as batchStore } from "../plugins/batch-store/plugin.ts"
import { plugin as catalog } from "../plugins/catalog/plugin.ts"
import { plugin as ledgerLocal } from "../plugins/ledger-local/plugin.ts"
import { plugin as mcpTools } from "../plugins/mcp-tools/plugin.ts"
import { plugin as mcpToolsPay } from "../plugins/mcp-tools-pay/plugin.ts"
import { plugin as webhooks } from "../plugins/webhooks/plugin.ts"
import { plugin as x402Batch } from "../plugins/x402-batch/plugin.ts"
import { plugin as x402BatchLocal } from "../plugins/x402-batch-local/plugin.ts"
import { plugin as x402Exact } from "../plugins/x402-exact/plugin.ts"
import { plugin as x402Upto } from "../plugins/x402-upto/plugin.ts"
import { plugin as x402UptoLocal } from "../plugins/x402-upto-local/plugin.ts"
import { Effect, Layer } from "effect"
import process from "node:process"

/**
 * Loads an optional plugin. If its module cannot be loaded, for example because of a wrong import, its name is
 * printed to standard error. The program continues without it, and reports an enabled plugin as degraded.
 */
const faultOf = (error: unknown): string => String(error instanceof Error ? error.message : error).split("\n", 1)[0]!

const loadPlugin = async <P extends AnyPlugin>(
  id: P["id"],
  load: () => Promise<{ readonly plugin: P }>
): Promise<P> => {
  try {
    return (await load()).plugin
  } catch (error) {
    const fault = `the plugin ${id} cannot be loaded: ${faultOf(error)}`
    process.stderr.write(`tollkeeper: ${fault}; it is left out\n`)
    const missing: AnyPlugin = {
      ...define({
        id,
        summary: "Cannot be loaded.",
        boot: "optional",
        needs: [],
        migrations: "none",
        layer: Layer.effectDiscard(Effect.fail(new Error(fault)))
      }),
      isMissing: true
    }
    return missing as P
  }
}

// The optional ones: without one of them the rest works.
const [analytics, dashboard, demo, prepare, receipts, searchLexical, searchSemantic] = await Promise.all([
  loadPlugin("analytics", () => import("../plugins/analytics/plugin.ts")),
  loadPlugin("dashboard", () => import("../plugins/dashboard/plugin.ts")),
  loadPlugin("demo", () => import("../plugins/demo/plugin.ts")),
  loadPlugin("prepare", () => import("../plugins/prepare/plugin.ts")),
  loadPlugin("receipts", () => import("../plugins/receipts/plugin.ts")),
  loadPlugin("search-lexical", () => import("../plugins/search-lexical/plugin.ts")),
  loadPlugin("search-semantic", () => import("../plugins/search-semantic/plugin.ts"))
])

/**
 * Drivers and plugins that read the same settings. The embedded ledger starts before the driver that connects to it.
 */
export const makeCatalogue = (source: SettingsSource): Catalogue => {
  const [settings, supervisor, health, ...others] = drivers(source, (): Declarations => gather(plugins))
  const plugins = catalogue(
    settings,
    supervisor,
    health,
    ledgerLocal,
    x402UptoLocal,
    x402BatchLocal,
    ...others,
    x402Exact,
    x402Upto,
    x402Batch,
    prepare,
    catalog,
    searchLexical,
    searchSemantic,
    analytics,
    webhooks,
    receipts,
    batchStore,
    dashboard,
    demo,
    mcpTools,
    mcpToolsPay
  )
  return {
    plugins,
    drivers: new Set([settings, supervisor, health, ...others].map(({ id }) => id)),
    migrate: Migrations.run
  }
}

/** The settings of all plugins, enabled or not. */
export const declaredSettings = (source: SettingsSource): Declarations => gather(makeCatalogue(source).plugins)
