// The store that the settings name, open until the Scope closes. PostgreSQL is a server of the tool servers' own,
// opened when it is chosen and not before, whose migrations run first; the embedded database is not taken for it.
import { Context, Effect, Layer, Path } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Config } from "../Config.ts"
import { BudgetStore } from "./BudgetStore.ts"
import { postgresStore } from "./postgresStore.ts"
import { fileStore, memoryStore } from "./tableStore.ts"

/** Whose tables they are; the name is older than this plugin. */
const owner = "mcp-tools"

const openPostgres = Effect.gen(function* () {
  const context = yield* Layer.build(Database.layer)
  if (Context.get(context, Database).kind !== "server") {
    return yield* new SettingsRefused({
      path: "budget.store",
      message: "postgres needs a PostgreSQL server in DATABASE_URL"
    })
  }
  yield* Effect.provideContext(Migrations.run(owner), context)
  return yield* Effect.provideContext(postgresStore, context)
})

const openFile = Effect.gen(function* () {
  const path = yield* Path.Path
  return yield* fileStore(path.join((yield* Host).stateFolder, "tools"))
})

export const openStore = Effect.gen(function* () {
  switch ((yield* Config).store) {
    case "memory":
      return yield* memoryStore
    case "file":
      return yield* openFile
    case "postgres":
      return yield* openPostgres
  }
})

export const layer = Layer.effect(BudgetStore, openStore)
