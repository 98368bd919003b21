// The migration that gave the journal its own positions, over existing journals: a journal that was partly read, and a
// journal restored into another cluster, where new facts had sorted below every cursor.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Migrations from "../../kernel/database/Migrations.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { databaseKinds, databaseLayer } from "../support/databases.ts"
import { describe } from "vitest"

const all = fileURLToPath(new URL("../../migrations/", import.meta.url))
const file = readdirSync(join(all, "kernel")).find((name) => name.endsWith("_fact_positions.sql"))!

interface Before {
  readonly xid: number
  readonly subject: string
}

/** The facts that an existing cursor still has to read, in the new order. */
const unreadAfter = (facts: ReadonlyArray<Before>, cursor: { readonly xid: number; readonly id: number }) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-migrations-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    mkdirSync(join(folder, "kernel"))
    for (const name of readdirSync(join(all, "kernel")).filter((name) => name < file))
      cpSync(join(all, "kernel", name), join(folder, "kernel", name))
    const run = (path: string) =>
      Migrations.run("kernel").pipe(Effect.provideService(Migrations.MigrationsFolder, { path }))
    yield* run(folder)
    for (const { subject, xid } of facts)
      yield* sql`insert into kernel_facts (xid, type, version, subject, data)
        values (${String(xid)}::xid8, 'test.happened', 1, ${subject}, '{}')`
    yield* sql`insert into kernel_fact_cursors (consumer, xid, id)
      values ('reader', ${String(cursor.xid)}::xid8, ${cursor.id})`
    yield* run(all)
    const rows = yield* sql<{ subject: string }>`select f.subject from kernel_facts f, kernel_fact_cursors c
      where f.position > c.position order by f.position`
    return rows.map(({ subject }) => subject)
  }).pipe(Effect.provide(Layer.mergeAll(NodeServices.layer, NodeCrypto.layer)), Effect.scoped)

const reported = (...facts: ReadonlyArray<readonly [number, string]>) =>
  facts.map(([xid, subject]) => ({ xid, subject }))

describe.each(databaseKinds)("positions given to an existing journal on %s", (kind) => {
  const fresh = <A, E>(effect: Effect.Effect<A, E, SqlClient.SqlClient>) =>
    Effect.provide(effect, databaseLayer(kind, []), { local: true })

  it.live("a reader of an existing journal resumes at its cursor", () =>
    Effect.gen(function* () {
      const facts = reported([10, "a"], [11, "b"], [12, "c"])
      expect(yield* fresh(unreadAfter(facts, { xid: 11, id: 2 }))).toEqual(["c"])
      expect(yield* fresh(unreadAfter(facts, { xid: 12, id: 3 }))).toEqual([])
      expect(yield* fresh(unreadAfter(facts, { xid: 0, id: 0 }))).toEqual(["a", "b", "c"])
    })
  )

  it.live("reads facts written below the cursor after a restore", () =>
    Effect.gen(function* () {
      const facts = reported([24_200, "a"], [24_233, "b"], [4_552, "c"], [4_553, "d"])
      expect(yield* fresh(unreadAfter(facts, { xid: 24_233, id: 2 }))).toEqual(["c", "d"])
    })
  )

  it.live("reads late commits, rereading others", () =>
    Effect.gen(function* () {
      const facts = reported([10, "a"], [12, "late"], [11, "b"])
      expect(yield* fresh(unreadAfter(facts, { xid: 11, id: 3 }))).toEqual(["late", "b"])
    })
  )
})
