// The kind of database: a PostgreSQL server, or one embedded in this process that the runtime provides. Opening is
// lazy, so a profile without a database opens none. The Scope closes an opened database.
import type { PgClient } from "@effect/sql-pg"
import { Context, type Effect, type Redacted, Schema, type Scope } from "effect"

/**
 * The database cannot be opened: held by another process, unreachable, too old. The message names the cause for an
 * operator.
 */
export class DatabaseRefused extends Schema.TaggedError<DatabaseRefused>()("DatabaseRefused", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export type OpenedDatabase =
  | {
      readonly kind: "server"
      readonly url: Redacted.Redacted
      /** The server itself, if `url` is a pooler's: for LISTEN and locks, which need a session. */
      readonly directUrl?: Redacted.Redacted | undefined
    }
  | {
      readonly kind: "embedded"
      /** A new connection with PostgreSQL's wire protocol. */
      readonly connect: NonNullable<PgClient.PgPoolConfig["stream"]>
      /** The whole database as one archive, taken between two statements. */
      readonly dump: Effect.Effect<Uint8Array>
      /** Maximum number of connections that wait for the only session. */
      readonly connectionsMax: number
    }

export class DatabaseSource extends Context.Service<
  DatabaseSource,
  {
    readonly open: Effect.Effect<OpenedDatabase, DatabaseRefused, Scope.Scope>
  }
>()("tollkeeper/database/DatabaseSource") {}
