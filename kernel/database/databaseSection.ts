// The settings of the SQL client (`Database.ts`).
import { choice, integer, section, text } from "../config/Setting.ts"
import { diskReserveBytes } from "../platform/DiskSpace.ts"

export const databaseSection = section(
  "database",
  "The SQL client. DATABASE_URL names the server; without it, the embedded database is used if its folder is set.",
  {
    embedded_folder: text({
      default: "",
      doc:
        "Folder of the embedded database, relative to the state folder, for a start without DATABASE_URL. Without " +
        "either, a start is refused."
    }),
    disk_reserve_mb: integer(
      {
        default: diskReserveBytes / 1_000_000,
        min: diskReserveBytes / 1_000_000,
        max: 1_000_000_000,
        unit: "megabytes"
      },
      "Free space kept on the disk of the state folder, for an embedded database; below it no new payment is " +
        "accepted."
    ),
    pooler: choice(["auto", "present", "none"], {
      default: "auto",
      doc:
        "Connection pooler in front of the server: detected at the start (auto), present or none. With a pooler, " +
        "limits are set per transaction and no statement has a name."
    }),
    max_connections: integer(
      { default: 16, min: 2, max: 500 },
      "Maximum connections to a server; at most half serve other work than payments. A server that admits fewer is " +
        "not an error."
    ),
    connection_wait_ms: integer(
      { default: 5_000, min: 100, max: 60_000, unit: "ms" },
      "Maximum wait for a connection."
    ),
    answer_timeout_ms: integer(
      { default: 7_000, min: 100, max: 600_000, unit: "ms" },
      "Maximum time a payment waits for one answer of the server."
    ),
    statement_timeout_ms: integer(
      { default: 15_000, min: 100, max: 600_000, unit: "ms" },
      "Statement timeout on the server."
    ),
    lock_timeout_ms: integer({ default: 5_000, min: 100, max: 600_000, unit: "ms" }, "Lock timeout on the server."),
    idle_transaction_timeout_ms: integer(
      { default: 15_000, min: 100, max: 600_000, unit: "ms" },
      "Timeout of an idle transaction on the server."
    ),
    read_url: text({
      default: "",
      doc:
        "URL of a streaming replica for reads of discovery and analytics, without a password; use " +
        "DATABASE_READ_URL, which takes precedence."
    }),
    read_lag_max_ms: integer(
      { default: 10_000, min: 1_000, max: 600_000, unit: "ms" },
      "Maximum lag of the read replica; beyond it, reads go to the primary."
    )
  }
)
