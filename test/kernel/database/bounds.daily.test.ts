// A server that admits fewer connections than requested, a server that stops answering, and slow background work: over
// HTTP, with the test's own PostgreSQL.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Fiber, Latch, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { Lane } from "../../../kernel/database/Connections.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { startOwnPostgres } from "../../support/postgres.ts"

const ownServer = (connectionsMax: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => (await startOwnPostgres(connectionsMax))!),
    ({ stop, thaw }) => Effect.promise(async () => (thaw?.(), await stop()))
  )

const sourceOf = (url: string) =>
  Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })

/** Only the client, with its own settings. */
const clientOf = (url: string, settings: Record<string, unknown>) =>
  Effect.map(
    Layer.build(
      Database.layer.pipe(Layer.provide(sourceOf(url)), Layer.provide(Settings.layerTest({ database: settings })))
    ),
    (services) => ({ sql: Context.get(services, SqlClient.SqlClient), database: Context.get(services, Database) })
  )

const settleMany = Effect.fnUntraced(function* (world: Facilitator, at: Facilitator, count: number) {
  const payTo = (yield* world.account(0n)).publicKey()
  const bodies = yield* Effect.forEach(
    Array.from({ length: count }),
    Effect.fnUntraced(function* () {
      const payer = yield* world.account()
      const payment = { payer, payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 }
      return (yield* world.payment(payment)).body
    }),
    { concurrency: 4 }
  )
  // A slow machine may need longer than /settle waits. Then it answers busy, and a seller sends the payment again.
  const settleFinally = (body: unknown) => eventually(at.settle(body), ({ status }) => status !== 503)
  return yield* Effect.forEach(
    bodies,
    (body) => Effect.map(settleFinally(body), ({ json }) => json.errorReason ?? "settled"),
    { concurrency: "unbounded" }
  )
})

describe.skipIf(!databaseKinds.includes("postgres"))("a database server", () => {
  it.live(
    "works with fewer server connections than the replicas may open",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(9)
        const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
        const shared = {
          database: sourceOf(server.url),
          ledgerUrl: world.ledgerUrl,
          environment: { SPONSOR_SECRET: Keypair.random().secret() },
          channels: 10,
          set: ["limits.channel_wait_ms=20000"]
        }
        const first = yield* startFacilitator(shared)
        const second = yield* startFacilitator(shared)
        const answers = yield* Effect.all([settleMany(world, first, 15), settleMany(world, second, 15)], {
          concurrency: 2
        })
        expect(answers.flat()).toEqual(Array.from({ length: 30 }, () => "settled"))
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a statement waits for a connection when the server admits no more",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(9)
        const settings = { max_connections: 8, connection_wait_ms: 60_000 }
        const clients = [yield* clientOf(server.url, settings), yield* clientOf(server.url, settings)]
        const answers = yield* Effect.forEach(
          clients.flatMap(({ sql }) => Array.from({ length: 8 }, () => sql`select 1::int as one from pg_sleep(1)`)),
          (asked) => Effect.provideService(asked, Lane, "payments"),
          { concurrency: "unbounded" }
        )
        expect(answers).toEqual(answers.map(() => [{ one: 1 }]))
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a hanging server is an error in time and is used after recovery",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(20)
        const { database, sql } = yield* clientOf(server.url, {
          max_connections: 4,
          answer_timeout_ms: 1_500,
          connection_wait_ms: 2_000
        })
        const asPayments = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Lane, "payments")
        yield* asPayments(sql`create table kept (id int primary key)`)
        const insert = (id: number) => asPayments(sql.withTransaction(sql`insert into kept values (${id})`))
        yield* insert(1)
        server.freeze!()
        // More than there are connections: waiters for a connection fail too.
        const answers = yield* Effect.forEach(
          Array.from({ length: 8 }, (_, i) => i),
          (i) => Effect.exit(i % 2 === 0 ? asPayments(sql`select ${i}::int`) : insert(10 + i)),
          { concurrency: "unbounded" }
        ).pipe(Effect.timeout("100 seconds"))
        expect(answers.map(({ _tag }) => _tag)).toEqual(answers.map(() => "Failure"))
        expect((yield* Effect.exit(database.ping))._tag).toBe("Failure")
        server.thaw!()
        yield* Effect.retry(insert(2), { schedule: Schedule.spaced("100 millis"), times: 200 })
        yield* Effect.retry(database.ping, { schedule: Schedule.spaced("100 millis"), times: 200 })
        const rows = yield* asPayments(sql<{ id: number }>`select id from kept where id < 10 order by id`)
        expect(rows.map(({ id }) => id)).toEqual([1, 2])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "/settle is busy while the server hangs, and settles after recovery",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(30)
        const facilitator = yield* startFacilitator({
          database: sourceOf(server.url),
          closeMillis: 250,
          set: ["database.answer_timeout_ms=2000", "database.connection_wait_ms=2000"]
        })
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const payment = { payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 }
        const { body } = yield* facilitator.payment({ ...payment, payer: yield* facilitator.account() })
        server.freeze!()
        const answers = yield* Effect.forEach(Array.from({ length: 30 }), () => facilitator.settle(body), {
          concurrency: "unbounded"
        }).pipe(Effect.timeout("100 seconds"))
        for (const { json, status } of answers) {
          expect([status, json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
        }
        expect((yield* facilitator.ask("/health/ready")).status).toBe(503)
        server.thaw!()
        const settled = yield* Effect.repeat(facilitator.settle(body), {
          until: ({ status }) => status !== 503,
          schedule: Schedule.spaced("200 millis")
        })
        expect(settled.json).toMatchObject({ success: true })
        expect((yield* facilitator.ask("/health/ready")).status).toBe(200)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "an interrupted transaction is rolled back before its connection is reused",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(20)
        const { sql } = yield* clientOf(server.url, { max_connections: 2 })
        const observer = yield* clientOf(server.url, { max_connections: 2 })
        yield* sql`create table kept (id int primary key)`
        for (let round = 0; round < 5; round++) {
          const working = yield* sql
            .withTransaction(Effect.andThen(sql`insert into kept values (1)`, sql`select pg_sleep(60)`))
            .pipe(Effect.forkScoped)
          const sleeping = observer.sql`select 1 from pg_stat_activity where wait_event = 'PgSleep'`
          yield* Effect.repeat(sleeping, { until: ({ length }) => length > 0, schedule: Schedule.spaced("10 millis") })
          yield* Fiber.interrupt(working)
          // Either the key is free immediately, or the insert waits at most the lock timeout.
          yield* sql`insert into kept values (1)`
          yield* sql`delete from kept`
          const idle = observer.sql`select 1 from pg_stat_activity where state like 'idle in transaction%'`
          expect(yield* idle).toEqual([])
        }
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "background work uses at most half of the connections",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer(20)
        const holder = yield* clientOf(server.url, { max_connections: 2 })
        const { sql } = yield* clientOf(server.url, { max_connections: 4, connection_wait_ms: 60_000 })
        yield* sql`create table held (id int primary key)`
        yield* sql`insert into held values (1)`
        const locked = yield* Latch.make()
        const letGo = yield* Latch.make()
        const holding = yield* holder.sql
          .withTransaction(
            Effect.gen(function* () {
              yield* holder.sql`select 1 from held for update`
              yield* locked.open
              yield* letGo.await
            })
          )
          .pipe(Effect.forkScoped)
        yield* locked.await
        const background = yield* Effect.forEach(
          Array.from({ length: 10 }),
          () => sql.withTransaction(sql`select 1 from held for update`),
          { concurrency: "unbounded" }
        ).pipe(Effect.forkScoped)
        const waiting = sql<{
          n: number
        }>`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`
        const asPayments = Effect.map(Effect.provideService(waiting, Lane, "payments"), ([row]) => row!.n)
        yield* Effect.repeat(asPayments, { until: (n) => n >= 2, schedule: Schedule.spaced("20 millis") })
        expect(yield* Effect.forEach([1, 2, 3, 4], () => asPayments, { concurrency: "unbounded" })).toEqual([
          2, 2, 2, 2
        ])
        yield* letGo.open
        yield* Fiber.join(holding)
        expect(yield* Fiber.join(background)).toHaveLength(10)
      }).pipe(Effect.scoped),
    240_000
  )
})
