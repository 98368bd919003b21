// The store that the settings name, open until the Scope closes. PostgreSQL is a server of the tool servers' own, whose
// migrations run first; the embedded database is not taken for it.
import { Context, Effect, Layer, Path } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import type { BudgetValues } from "../Config.ts"
import { postgresStore } from "./postgresStore.ts"
import { fileStore, memoryStore } from "./tableStore.ts"

export const openStore = Effect.fnUntraced(function* (kind: BudgetValues["store"]) {
  switch (kind) {
    case "memory":
      return yield* memoryStore
    case "file": {
      const path = yield* Path.Path
      return yield* fileStore(path.join((yield* Host).stateFolder, "tools"))
    }
    case "postgres": {
      const context = yield* Layer.build(Database.layer)
      if (Context.get(context, Database).kind !== "server") {
        return yield* new SettingsRefused({
          path: "budget.store",
          message: "postgres needs a PostgreSQL server in DATABASE_URL"
        })
      }
      yield* Effect.provideContext(Migrations.run("mcp-tools"), context)
      return yield* Effect.provideContext(postgresStore, context)
    }
  }
})
