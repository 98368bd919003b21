// Connection poolers in front of the database, with a real PgBouncer before a real PostgreSQL, in transaction and in
// session mode: whole replicas start, settle and notify each other; limits hold without session state; and connection
// errors are reported with their cause.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Deferred, Effect, Layer, Logger, Option, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { databaseKinds } from "../../support/databases.ts"
import { migrationsFolder } from "../../support/migratedDumps.ts"
import { openEvents } from "../../support/eventStream.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { pgbouncerProgram, type PgbouncerOptions, startPgbouncer } from "../../support/pgbouncer.ts"
import { startOwnPostgres } from "../../support/postgres.ts"

const isPossible = databaseKinds.includes("postgres") && pgbouncerProgram() !== undefined

const ownServer = Effect.acquireRelease(
  Effect.promise(async () => (await startOwnPostgres(90))!),
  ({ stop }) => Effect.promise(stop)
)

const poolerOf = (serverUrl: string, options: Omit<PgbouncerOptions, "serverUrl">) =>
  Effect.acquireRelease(
    Effect.promise(() => startPgbouncer({ serverUrl, ...options })),
    ({ stop }) => Effect.promise(stop)
  )

const sourceOf = (url: string, directUrl?: string) =>
  Layer.succeed(DatabaseSource, {
    open: Effect.succeed({
      kind: "server" as const,
      url: Redacted.make(url),
      directUrl: directUrl === undefined ? undefined : Redacted.make(directUrl)
    })
  })

const databaseOf = (source: Layer.Layer<DatabaseSource>, settings: Record<string, unknown> = {}) =>
  Database.layer.pipe(Layer.provide(source), Layer.provide(Settings.layerTest({ database: settings }, Option.none)))

const refusalOf = (url: string) =>
  Effect.flip(Layer.build(databaseOf(sourceOf(url), { connection_wait_ms: 500 }))).pipe(
    Effect.map(({ message }) => message),
    Effect.scoped
  )

const plugins = "plugins=[x402-exact,catalog,search-lexical,search-semantic,analytics,webhooks,dashboard]"

describe.skipIf(!isPossible)("a connection pooler", () => {
  it.live.each(["transaction", "session"] as const)(
    "in %s mode carries whole replicas: they start, settle, and one follows what the other settles [S338]",
    (mode) =>
      Effect.gen(function* () {
        const server = yield* ownServer
        // In transaction mode there are far fewer sessions than connections of the replicas.
        const pooler = yield* poolerOf(server.url, { mode, poolSize: mode === "transaction" ? 4 : 40 })
        const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
        const shared = {
          database: sourceOf(pooler.url, mode === "transaction" ? server.url : pooler.url),
          ledgerUrl: world.ledgerUrl,
          environment: { SPONSOR_SECRET: Keypair.random().secret() },
          channels: 4,
          set: [plugins, "limits.channel_wait_ms=20000"]
        }
        const first = yield* startFacilitator(shared)
        const second = yield* startFacilitator(shared)
        expect(Context.getUnsafe(first.services, Database as never)).toMatchObject({ reach: "pooled" })
        const received = yield* openEvents(`${second.url}/settlements/events`)
        const payTo = (yield* world.account(0n)).publicKey()
        const bodies = yield* Effect.forEach(
          Array.from({ length: 12 }),
          Effect.fnUntraced(function* () {
            const payer = yield* world.account()
            const payment = { payer, payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 }
            return (yield* world.payment(payment)).body
          }),
          { concurrency: 4 }
        )
        const answers = yield* Effect.forEach(
          bodies,
          (body) => Effect.map(first.settle(body), ({ json, text }) => (json?.success === true ? "settled" : text)),
          { concurrency: "unbounded" }
        )
        expect(answers).toEqual(bodies.map(() => "settled"))
        yield* received.until((events) => events.filter(({ event }) => event === "settlement.settled").length === 12)
        expect(pooler.log()).not.toMatch(/prepared statement/i)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "in transaction mode, replicas listen through DATABASE_DIRECT_URL or not at all",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer
        const pooler = yield* poolerOf(server.url, { mode: "transaction", poolSize: 3 })
        const journal = Facts.layer.pipe(Layer.provideMerge(Supervisor.layer))
        const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, migrationsFolder)
        const replica = (source: Layer.Layer<DatabaseSource>) =>
          Layer.build(Layer.provideMerge(Layer.fresh(journal), Layer.fresh(databaseOf(source))))
        const direct = sourceOf(pooler.url, server.url)
        yield* Migrations.run("kernel").pipe(Effect.provide(Layer.provideMerge(databaseOf(direct), platform)))
        const [one, other] = [yield* replica(direct), yield* replica(direct)]
        let observed = 0
        yield* Context.get(other, Facts).onPublished(Effect.sync(() => void (observed += 1)))
        const publish = Context.get(one, SqlClient.SqlClient).withTransaction(
          Context.get(one, Facts).publish({ type: "test.happened", version: 1, subject: "s", data: {} })
        )
        // Once when it begins to listen; afterwards only a notification wakes it.
        yield* Effect.repeat(publish, {
          until: () => observed >= 3,
          schedule: Schedule.spaced("200 millis")
        }).pipe(Effect.timeout("100 seconds"))
        expect(Context.get(yield* replica(sourceOf(pooler.url)), Database).listen).toBeUndefined()
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a pooled DATABASE_DIRECT_URL drops notifications, is reported, and consumers poll",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer
        const pooler = yield* poolerOf(server.url, { mode: "transaction", poolSize: 3 })
        const source = sourceOf(pooler.url, pooler.url)
        const journal = Facts.layer.pipe(Layer.provideMerge(Supervisor.layer))
        const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, migrationsFolder)
        yield* Migrations.run("kernel").pipe(Effect.provide(Layer.provideMerge(databaseOf(source), platform)))
        const said: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ message }) => void said.push(message))])
        const replica = Layer.build(
          Layer.provideMerge(Layer.fresh(journal), Layer.fresh(databaseOf(source))).pipe(Layer.provide(logger))
        )
        const [one, other] = [yield* replica, yield* replica]
        const sql = Context.get(one, SqlClient.SqlClient)
        const received = yield* Deferred.make<string>()
        yield* Context.get(other, Facts).consume({
          consumer: "deaf",
          handle: ([fact]) => Deferred.succeed(received, fact!.subject)
        })
        // Its first poll is done, so it finds no more facts until the next one.
        yield* Effect.repeat(sql`select 1 from kernel_fact_cursors where consumer = 'deaf'`, {
          until: (rows) => rows.length > 0,
          schedule: Schedule.spaced("20 millis")
        })
        const isSaid = Effect.sync(() => /notifications of the database do not arrive/.test(said.flat().join()))
        yield* Effect.repeat(isSaid, { until: (is) => is, schedule: Schedule.spaced("50 millis") })
        const fact = { type: "test.happened", version: 1, subject: "s", data: {} }
        yield* sql.withTransaction(Context.get(one, Facts).publish(fact))
        // It polls every five seconds.
        expect(yield* Deferred.await(received).pipe(Effect.timeout("100 seconds"))).toBe("s")
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "in transaction mode, limits hold per transaction and do not leak",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer
        const pooler = yield* poolerOf(server.url, { mode: "transaction", poolSize: 2 })
        const limits = { statement_timeout_ms: 9_000, lock_timeout_ms: 300, idle_transaction_timeout_ms: 8_000 }
        const services = yield* Layer.build(databaseOf(sourceOf(pooler.url), limits))
        const sql = Context.get(services, SqlClient.SqlClient)
        const shown = sql<Record<string, string>>`select current_setting('statement_timeout') as statement,
          current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`
        expect(yield* sql.withTransaction(shown)).toEqual([{ statement: "9s", lock: "300ms", idle: "8s" }])
        expect(yield* shown).toEqual([{ statement: "0", lock: "0", idle: "0" }])
        yield* sql`create table held (id int primary key)`
        yield* sql`insert into held values (1)`
        const other = Context.get(yield* Layer.build(databaseOf(sourceOf(pooler.url), limits)), SqlClient.SqlClient)
        const waits = Effect.flip(other.withTransaction(other`select 1 from held for update`))
        const locked = yield* sql.withTransaction(Effect.andThen(sql`select 1 from held for update`, waits))
        expect(locked).toMatchObject({ reason: { _tag: "LockTimeoutError" } })
        // More concurrent statements than sessions, with texts and types that would collide under names.
        const many = yield* Effect.forEach(
          Array.from({ length: 200 }, (_, i) => i),
          (i) =>
            i % 2 === 0
              ? sql<{ n: number }>`select ${i}::int as n`
              : sql.withTransaction(sql<{ n: number }>`select ${`${i}`}::text::int as n`),
          { concurrency: 16 }
        )
        expect(many.map(([row]) => row!.n)).toEqual(Array.from({ length: 200 }, (_, i) => i))
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a connection error quotes the pooler's or server's message, or its silence",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer
        const pooler = yield* poolerOf(server.url, { mode: "transaction", poolSize: 2 })
        const at = (url: string, path: string) => Object.assign(new URL(url), { pathname: path }).href
        expect(yield* refusalOf(at(pooler.url, "/nowhere"))).toMatch(/refuses the connection: "no such database: nowh/)
        expect(yield* refusalOf(at(server.url, "/nowhere"))).toMatch(/"database "nowhere" does not exist"/)
        const options = `${pooler.url}?options=-c%20lock_timeout%3D5`
        expect(yield* refusalOf(options)).toMatch(/"unsupported startup parameter: options"/)
        expect(yield* refusalOf(pooler.url.replace("postgres@", "stranger@"))).toMatch(/rejects this user/)
        const noUser = Object.assign(new URL(server.url), { username: "" }).href
        expect(yield* refusalOf(noUser)).toMatch(/rejects this user \(No username configured\)/)
        yield* Effect.promise(server.stop)
        expect(yield* refusalOf(server.url)).toMatch(/does not answer \(connect ECONNREFUSED/)
        expect(yield* refusalOf(pooler.url)).toMatch(/does not answer|refuses the connection: "/)
      }).pipe(Effect.scoped),
    240_000
  )
})
