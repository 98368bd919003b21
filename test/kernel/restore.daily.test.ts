// A facilitator's database is moved while payments are in flight: dumped and restored into a fresh PostgreSQL cluster
// with transaction ids far behind, or the embedded database's folder dumped and opened elsewhere. Afterwards every
// reader of the journal agrees with the ledger.
import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe } from "vitest"
import { compare } from "../../kernel/audit/compare.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { openEmbedded } from "../../runtime/platform/pglite.ts"
import { eventually } from "../support/eventually.ts"
import { declaring, type Json, queryDeclaration, verified } from "../plugins/catalog/support.ts"
import { databaseKinds } from "../support/databases.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { moveDatabase, startCluster } from "../support/postgres.ts"
import { readBooks } from "../support/readBooks.ts"

const inFlight = 5

const audit = (facilitator: Facilitator) =>
  Effect.map(readBooks(facilitator), ({ claims, view }) => ({ claims, report: compare(claims, view) }))

const found = (facilitator: Facilitator, words: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(facilitator.ask(`/discovery/search?query=${words}&mode=lexical`), ({ json }) =>
    (json.resources ?? []).map(({ resource }: Json) => resource)
  )

const statuses = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.sql<{ status: string }>`select status from analytics_settlements order by occurred_at`,
    (rows) => rows.map(({ status }) => status)
  )

const states = (facilitator: Facilitator) =>
  Effect.map(facilitator.sql<{ state: string }>`select state from kernel_settlements`, (rows) =>
    rows.map(({ state }) => state)
  )

/** One facilitator with payments in flight, its database moved, and another facilitator over the moved database. */
const moved = (
  first: Layer.Layer<DatabaseSource>,
  move: Effect.Effect<Layer.Layer<DatabaseSource>, unknown, Scope.Scope>
) =>
  Effect.gen(function* () {
    const ledger = yield* startFacilitator({
      closeMillis: 500,
      channels: 1,
      set: ["plugins=[ledger-local,x402-exact]"]
    })
    const shared = {
      ledgerUrl: ledger.ledgerUrl,
      environment: { SPONSOR_SECRET: Keypair.random().secret() },
      channels: inFlight,
      set: [
        "plugins=[x402-exact,catalog,search-lexical,analytics]",
        "limits.settle_timeout_ms=2000",
        "catalog_security.probe_origins=false"
      ]
    }
    const before = yield* startFacilitator({ ...shared, database: first })
    const payer = yield* ledger.account()
    const payTo = (yield* ledger.account()).publicKey()
    const declare = (facilitator: Facilitator, url: string) =>
      Effect.flatMap(declaring(facilitator, { payer, payTo, url, extension: queryDeclaration() }), (body) =>
        verified(facilitator, body)
      )
    yield* declare(before, "https://shop.example.com/weather")
    const ordinary = yield* before.payment({ payer, payTo, amount: 10_000n })
    yield* eventually(before.settle(ordinary.body), ({ json }) => json.success === true)
    yield* eventually(statuses(before), (all) => all.length === 1 && all[0] === "success")
    yield* eventually(found(before, "weather"), (resources) => resources.length === 1)

    // For now the network accepts the transactions and lands none.
    yield* ledger.ledger.setFaults([{ drops: () => true }])
    const payments = yield* Effect.forEach(
      Array.from({ length: inFlight }),
      () => before.payment({ payer, payTo, amount: 10_000n, maxTimeoutSeconds: 300 }),
      { concurrency: inFlight }
    )
    const answers = yield* Effect.forEach(payments, ({ body }) => before.settle(body), { concurrency: inFlight })
    for (const { json, text } of answers) expect(json.errorReason, text).toContain("status_unknown")
    yield* eventually(statuses(before), (all) => all.filter((status) => status === "unknown").length === inFlight)
    // Stop first: the copy would lack the record of a submission during the copy.
    yield* before.stop
    const database = yield* move
    const after = yield* startFacilitator({ ...shared, database })
    yield* ledger.ledger.setFaults([])
    yield* eventually(states(after), (all) => all.every((state) => state === "settled"))

    const reported = yield* eventually(statuses(after), (all) => all.every((status) => status === "success"))
    expect(reported).toEqual(Array.from({ length: inFlight + 1 }, () => "success"))
    yield* declare(after, "https://shop.example.com/forecast")
    const listed = yield* eventually(found(after, "forecast"), (resources) => resources.length === 1)
    expect(listed).toEqual(["https://shop.example.com/forecast"])
    const { claims, report } = yield* audit(after)
    expect(report).toMatchObject({ mismatches: [], settlements: inFlight + 1, open: 0, unresolved: 0 })
    for (const { types } of claims.facts) expect(types).toEqual(["settlement.recorded", "settlement.settled"])
  })

describe.runIf(databaseKinds.includes("postgres"))("a database restored into a fresh cluster", () => {
  it.live(
    "a restore with payments in flight keeps analytics, search and audit consistent",
    () =>
      Effect.gen(function* () {
        const cluster = Effect.acquireRelease(Effect.promise(startCluster), ({ stop }) => Effect.promise(stop))
        const [from, to] = [yield* cluster, yield* cluster]
        const at = (url: string) =>
          Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })
        const run = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
          Effect.scoped(
            Effect.flatMap(SqlClient.SqlClient, use).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })))
          )
        // The old cluster has had many transactions; the fresh one none.
        yield* run(
          from.url,
          (sql) =>
            sql.unsafe("do $$ begin for i in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$")
              .unprepared
        )
        yield* moved(
          at(from.url),
          Effect.sync(() => {
            moveDatabase(from.url, to.url)
            return at(to.url)
          })
        )
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})

describe.runIf(databaseKinds.includes("pglite"))("an embedded database that was dumped and opened elsewhere", () => {
  it.live(
    "a restore with payments in flight keeps analytics, search and audit consistent",
    () =>
      Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-dump-"))),
          (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
        )
        const at = (opened: Effect.Success<ReturnType<typeof openEmbedded>>) =>
          Layer.succeed(DatabaseSource, {
            open: Effect.succeed({
              kind: "embedded" as const,
              connect: opened.connect,
              dump: opened.dump,
              connectionsMax: 8
            })
          })
        const from = yield* openEmbedded({})
        yield* moved(
          at(from),
          Effect.gen(function* () {
            const file = join(folder, "state.tar")
            writeFileSync(file, yield* from.dump)
            return at(yield* openEmbedded({ from: file }))
          })
        )
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
