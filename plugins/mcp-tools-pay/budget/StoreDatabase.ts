// The PostgreSQL database that tool servers share. It is never the embedded one. It is opened, after its migrations,
// only if the settings choose it. It holds the budget and the requests for approval.
import { Context, Effect, Layer } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import { Config } from "../Config.ts"

/** Owner of the tables; the name is older than this plugin. */
const owner = "mcp-tools"

const opened = Effect.gen(function* () {
  const context = yield* Layer.build(Database.layer)
  if (Context.get(context, Database).kind !== "server") {
    return yield* new SettingsRefused({
      path: "budget.store",
      message: "postgres needs a PostgreSQL server in DATABASE_URL"
    })
  }
  yield* Effect.provideContext(Migrations.run(owner), context)
  return context
})

export class StoreDatabase extends Context.Service<
  StoreDatabase,
  {
    /** Undefined if the settings choose another store. */
    readonly shared: Effect.Success<typeof opened> | undefined
  }
>()("tollkeeper/mcp-tools-pay/StoreDatabase") {
  static readonly layer = Layer.effect(
    StoreDatabase,
    Effect.gen(function* () {
      return StoreDatabase.of({ shared: (yield* Config).store === "postgres" ? yield* opened : undefined })
    })
  )
}
