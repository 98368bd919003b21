// A database of version 0.1, with payments in flight, opened by the current program. The migrations of 0.1 themselves
// make it here: they are never edited (their checksums are in every database), so a folder with only these makes the
// tables of 0.1. Its rows are real as well: over a ledger that continues, a facilitator records one payment that ends,
// one whose transaction is sent, and dies before the third is sent; then every column of 0.1 is copied.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Option, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe } from "vitest"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import type { Step } from "../../kernel/settlement/CrashPoints.ts"
import { root } from "../../runtime/bootstrap.mjs"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { type DatabaseKind, databaseKinds, sourceLayer } from "../support/databases.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { eventually } from "../support/eventually.ts"

/** The migrations of 0.1: those before the journal of facts got its own order (kernel/0005). */
const ofVersion01 = {
  kernel: ["0001_facts", "0002_settlement", "0003_sponsor_transactions", "0004_channel_count"],
  analytics: ["0001_analytics", "0002_standings"],
  catalog: ["0001_catalog", "0002_impressions", "0003_listed", "0004_sales"]
}

/** Tables with rows that matter to a payment; a later one may refer to an earlier one. */
const tables = [
  "kernel_settlements",
  "kernel_attempts",
  "kernel_channels",
  "kernel_facts",
  "kernel_sponsor_transactions",
  "kernel_sponsor_budget",
  "kernel_sponsor_budget_total"
]

const price = 10_000n
const plugins = "plugins=[x402-exact, catalog, search-lexical, analytics, webhooks]"

/** A database that outlives the processes that open it. */
const openOnce = (kind: DatabaseKind): Effect.Effect<Layer.Layer<DatabaseSource>, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const opened = yield* (yield* Effect.provide(DatabaseSource, sourceLayer(kind))).open
    return Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
  })

/** The folder of migrations as of 0.1. */
const folderOfVersion01 = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "tollkeeper-v01-"))
    for (const [owner, names] of Object.entries(ofVersion01)) {
      for (const name of names) {
        const file = join(owner, `${name}.sql`)
        mkdirSync(dirname(join(folder, file)), { recursive: true })
        cpSync(join(root, "migrations", file), join(folder, file))
      }
    }
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Fills the columns of 0.1 from the current tables; a keyless caller was its address. */
const copyDown = Effect.fnUntraced(function* (from: SqlClient.SqlClient) {
  const to = yield* SqlClient.SqlClient
  const columnsOf = (sql: SqlClient.SqlClient, table: string) =>
    Effect.map(
      sql<{ name: string }>`select column_name as name from information_schema.columns where table_name = ${table}`,
      (rows) => rows.map(({ name }) => name)
    )
  for (const table of tables) {
    const now = yield* columnsOf(from, table)
    const shared = (yield* columnsOf(to, table)).filter((name) => now.includes(name))
    const names = shared.map((name) => `"${name}"`).join(", ")
    const values = shared
      .map((name) => (table === "kernel_settlements" && name === "principal" ? "budget_principal as principal" : name))
      .join(", ")
    const [row] = yield* from.unsafe<{ rows: string }>(
      `select coalesce(json_agg(t), '[]')::text as rows from (select ${values} from ${table}) t`
    ).unprepared
    const target = `insert into ${table} (${names}) overriding system value`
    yield* to.unsafe(`${target} select ${names} from json_populate_recordset(null::${table}, $1::json)`, [row!.rows])
  }
})

const countOpen = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ count: number }>`select count(*)::int as count from kernel_settlements
      where state in ('prepared', 'submitted')`,
    ([row]) => row!.count
  )

/** An ended payment, a sent one, and an unsent one: their records in the form of 0.1. */
const makeVersion01 = Effect.fnUntraced(function* (kind: DatabaseKind, world: Facilitator, sponsor: Keypair) {
  const held = new Set<Step>()
  const reached = new Set<Step>()
  const before = yield* startFacilitator({
    database: kind,
    ledgerUrl: world.ledgerUrl,
    environment: { SPONSOR_SECRET: sponsor.secret() },
    // Every waiting request is interrupted there, the follower too.
    atStep: (step) =>
      Effect.suspend(() => {
        reached.add(step)
        return held.has(step) ? Effect.never : Effect.void
      })
  })
  const payer = yield* world.account()
  const seller = yield* world.account(0n)
  const pay = world.payment({ payer, payTo: seller.publicKey(), amount: price, maxTimeoutSeconds: 300 })
  const [ended, sent, unsent] = [yield* pay, yield* pay, yield* pay]
  expect((yield* before.settle(ended.body)).json.success).toBe(true)
  reached.clear()
  held.add("beforeResolve")
  yield* Effect.forkScoped(before.settle(sent.body))
  yield* eventually(Effect.sync(() => reached.has("beforeResolve")))
  held.add("afterRecord")
  yield* Effect.forkScoped(before.settle(unsent.body))
  yield* eventually(Effect.map(countOpen(before.sql), (count) => count === 2))
  const source = yield* openOnce(kind)
  const folder = yield* folderOfVersion01
  const tables01 = Layer.effectDiscard(Effect.forEach(Object.keys(ofVersion01), Migrations.run)).pipe(
    Layer.provideMerge(Database.layer),
    Layer.provideMerge(Layer.merge(NodeServices.layer, NodeCrypto.layer)),
    Layer.provide(Layer.succeed(Migrations.MigrationsFolder, { path: folder })),
    Layer.provide(source),
    Layer.provide(Settings.layerTest({}, () => Option.none()))
  )
  yield* Effect.scoped(Effect.provide(copyDown(before.sql), tables01))
  yield* before.stop
  return { source, seller, payments: [ended, sent, unsent] as const }
})

describe("a database of version 0.1 with payments in flight", () => {
  it.live.each(databaseKinds)(
    "is migrated by a start, and each payment ends once, on %s [S87, S93]",
    (kind) =>
      Effect.gen(function* () {
        const world = yield* startFacilitator({ channels: 1, closeMillis: 500 })
        const sponsor = Keypair.random()
        const { payments, seller, source } = yield* makeVersion01(kind, world, sponsor)
        const after = yield* startFacilitator({
          database: source,
          ledgerUrl: world.ledgerUrl,
          environment: { SPONSOR_SECRET: sponsor.secret() },
          set: [plugins]
        })
        yield* eventually(Effect.map(countOpen(after.sql), (count) => count === 0))
        const states = yield* after.sql<{ state: string; principal: string }>`select state, principal
          from kernel_settlements`
        expect(states.map(({ principal, state }) => [state, principal])).toEqual(
          payments.map(() => ["settled", "anonymous"])
        )
        expect(yield* world.balance(seller.publicKey())).toBe(price * 3n)
        // When a caller without an answer asks again, it receives the truth, and nothing is paid twice.
        const retry = yield* after.settle(payments[2].body)
        expect(retry.json).toMatchObject({ success: true })
        expect(yield* world.balance(seller.publicKey())).toBe(price * 3n)
        // The journal of 0.1 is in the new order: readers see all of it.
        yield* eventually(
          Effect.map(
            after.sql<{ count: number }>`select count(*)::int as count from analytics_settlements`,
            ([row]) => row!.count === 3
          )
        )
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
