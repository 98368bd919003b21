// Migrations come before the listener: a database that they refuse ends the start before any port is opened.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { createServer, type AddressInfo } from "node:net"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

/** A port that is taken: listening on it fails. */
const taken = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  ),
  (server) => (server.address() as AddressInfo).port
)

it.live.each(databaseKinds)(
  "on %s, refuses a newer database before a port opens [S274, S311]",
  (kind) =>
    Effect.gen(function* () {
      const opened = yield* (yield* DatabaseSource).open
      const database = Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
      const port = yield* taken
      const refusal = Effect.flip(
        Effect.scoped(startFacilitator({ database, set: [`server.port=${port}`], channels: 1 }))
      )
      // Without the refusal everything is created, and only then the start finds the port taken.
      expect(yield* refusal).toMatchObject({ _tag: "ListenFailed" })
      yield* Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`insert into tollkeeper_migrations_kernel
            select 9999, 'from_the_future', repeat('0', 64)`
        ),
        Database.layer.pipe(Layer.provide(database), Layer.provide(Settings.layerTest({}, () => Option.none())))
      )
      expect(yield* refusal).toMatchObject({ _tag: "MigrationRefused", owner: "kernel" })
    }).pipe(Effect.scoped, Effect.provide(sourceLayer(kind)), Effect.provide(NodeServices.layer)),
  240_000
)
