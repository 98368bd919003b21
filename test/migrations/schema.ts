// `npm run schema`: the result of all migrations, written to `migrations/schema.sql` for people to read. The statements
// are PostgreSQL's own (pg_dump), without the parts that depend on the server's version or on the day. No program runs
// this file at start; only migrations make a database.
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Migrations from "../../kernel/database/Migrations.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { startPostgres, systemBinaries } from "../support/postgres.ts"

const folder = fileURLToPath(new URL("../../migrations/", import.meta.url))

/** Every owner of migrations; the kernel first, as at start. */
export const owners: ReadonlyArray<string> = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort((a, b) => Number(b === "kernel") - Number(a === "kernel") || a.localeCompare(b))

const head = [
  "-- What all migrations together make, for reading; nothing runs this file. Written by `npm run schema`, and held to the",
  "-- migrations by a test."
].join("\n")

/** The table of a statement that belongs to one and refers to no other. */
const tableOf = (statement: string): string | undefined =>
  statement.includes("FOREIGN KEY")
    ? undefined
    : /^(?:CREATE TABLE|ALTER TABLE(?: ONLY)?|CREATE .*?(?:INDEX|TRIGGER) .*? ON) (\w+)/.exec(statement)?.[1]

const key = /^ALTER TABLE ONLY \w+ ADD (CONSTRAINT .*)$/

/** A table with its keys inside, and its indexes and triggers below it. */
const tableText = ([table, ...others]: ReadonlyArray<string>): string => {
  const keys = others.flatMap((statement) => key.exec(statement)?.[1] ?? [])
  const whole = table!.replace(/\n\)/, () => keys.map((one) => `,\n    ${one}`).join("") + "\n)")
  return [whole, ...others.filter((statement) => !key.test(statement))].map((statement) => `${statement};`).join("\n")
}

/** Removes comments, settings of the session and the tables that count migrations; groups statements by table. */
const tidy = (dump: string): string => {
  const lines = dump.split("\n").filter((line) => !/^(--|SET |SELECT pg_catalog|\\(un)?restrict)/.test(line))
  const statements = Migrations.splitStatements(lines.join("\n"))
    .filter((statement) => !statement.includes("tollkeeper_migrations_"))
    .map((statement) => statement.replaceAll("public.", "").replace(/\n {4}(?=LANGUAGE|AS )/g, " "))
    .map((statement) => (statement.startsWith("ALTER") ? statement.replace(/\s+/g, " ") : statement))
  const byTable = Map.groupBy(statements, tableOf)
  const others = byTable.get(undefined) ?? []
  byTable.delete(undefined)
  const references = others.filter((statement) => statement.startsWith("ALTER"))
  const texts = others.filter((statement) => !statement.startsWith("ALTER")).map((statement) => `${statement};`)
  return [head, ...texts, ...[...byTable.values()].map(tableText), references.map((one) => `${one};\n`).join("")].join(
    "\n\n"
  )
}

const program = () => {
  const binaries = systemBinaries()
  const file = binaries === undefined ? undefined : join(binaries, "pg_dump")
  if (file === undefined || !existsSync(file))
    throw new Error("npm run schema needs pg_dump of an installed PostgreSQL")
  return file
}

if (import.meta.main) {
  const dump = program()
  const server = await startPostgres()
  const migrate = Effect.forEach(owners, Migrations.run).pipe(
    Effect.provide(
      Layer.mergeAll(
        PgClient.layer({ url: Redacted.make(server.url), maxConnections: 1 }),
        NodeServices.layer,
        NodeCrypto.layer,
        Layer.succeed(Migrations.MigrationsFolder, { path: folder })
      )
    )
  ) as Effect.Effect<unknown, unknown>
  try {
    await Effect.runPromise(Effect.scoped(migrate))
    const text = execFileSync(dump, ["--schema-only", "--no-owner", "--no-privileges", server.url], {
      encoding: "utf8"
    })
    writeFileSync(join(folder, "schema.sql"), tidy(text))
    console.log(`migrations/schema.sql: ${owners.join(", ")}`)
  } finally {
    await server.stop()
  }
}
