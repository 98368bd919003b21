import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Queue, Redacted, Stream } from "effect"
import { PgClient } from "@effect/sql-pg"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { inject } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { Database, inTransaction, isUniqueViolation } from "../../../kernel/database/Database.ts"
import { describeDatabases } from "../../support/databases.ts"

describeDatabases("the SQL client", (database, kind) => {
  layer(database, { timeout: "240 seconds" })((it) => {
    if (kind === "postgres") {
      it.effect("a connection lost within a transaction is an error; the next one works", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const lost = inTransaction(
            Effect.gen(function* () {
              const [own] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid`
              yield* Effect.ignore(sql`select pg_terminate_backend(${own!.pid})`)
              yield* sql`select 1`
            })
          )
          const exit = yield* Effect.exit(lost)
          expect(Exit.isFailure(exit) && exit.cause.reasons.map(({ _tag }) => _tag)).toEqual(["Fail"])
          expect(yield* sql`select 1 as one`).toEqual([{ one: 1 }])
        })
      )

      it.effect("refuses a database in another encoding than UTF8", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const name = `latin_${randomUUID().replaceAll("-", "")}`
          yield* Effect.acquireRelease(
            sql`create database ${sql(name)} encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'`
              .unprepared,
            () => Effect.orDie(sql`drop database ${sql(name)} with (force)`.unprepared)
          )
          const url = new URL(inject("postgresUrl"))
          url.pathname = `/${name}`
          const source = { kind: "server" as const, url: Redacted.make(url.href) }
          const opened = Layer.fresh(Database.layer).pipe(
            Layer.provide(Layer.succeed(DatabaseSource, { open: Effect.succeed(source) })),
            Layer.provide(Settings.layerTest())
          )
          const refused = yield* Effect.flip(Layer.build(opened))
          expect(refused.message).toMatch(/^the database's encoding must be UTF8, and is LATIN1; `create database/)
        }).pipe(Effect.scoped)
      )

      it.effect("disables JIT compilation and parallel workers for statements", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [shown] = yield* sql`select current_setting('jit') as jit,
            current_setting('max_parallel_workers_per_gather') as workers`
          expect(shown).toEqual({ jit: "off", workers: "0" })
        })
      )
    }

    if (kind === "pglite") {
      it.effect("the embedded database uses a quarter of the default cache", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          expect(yield* sql`show shared_buffers`).toEqual([{ shared_buffers: "32MB" }])
        })
      )
    }

    it.effect("both databases return bigint, numeric, date and json alike [S338]", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] =
          yield* sql`select 9007199254740993::int8 as big, 12.340::numeric as exact, '{"a":[1]}'::jsonb as json,
          '2026-01-02T03:04:05Z'::timestamptz as at, '\\x0102'::bytea as bytes,
          array['a','b'] as list, null::text as nothing`
        expect(row).toEqual({
          big: 9007199254740993n,
          exact: "12.340",
          json: { a: [1] },
          at: new Date("2026-01-02T03:04:05Z"),
          bytes: expect.any(Uint8Array),
          list: ["a", "b"],
          nothing: null
        })
        yield* (yield* Database).ping
      })
    )

    it.effect("isolates concurrent transactions and rolls back interrupted ones", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`create table account (id int primary key, balance int not null check (balance >= 0))`
        yield* sql`insert into account select g, 1000 from generate_series(1, 10) g`
        const transfer = (i: number) =>
          inTransaction(
            Effect.gen(function* () {
              const from = 1 + ((i * 7) % 10)
              const to = 1 + ((i * 3 + 1) % 10)
              if (from === to) return
              yield* sql`select 1 from account where id in ${sql.in([from, to])} order by id for update`
              yield* sql`update account set balance = balance - 1 where id = ${from}`
              yield* Effect.yieldNow
              yield* sql`update account set balance = balance + 1 where id = ${to}`
              if (i % 11 === 0) return yield* Effect.fail("undo")
            })
          ).pipe(Effect.ignore)
        const total = Effect.map(
          sql<{ total: number }>`select sum(balance)::int as total from account`,
          ([row]) => row?.total
        )
        const reader = Effect.forEach(Array.from({ length: 50 }), () => total)
        const indexes = Array.from({ length: 200 }, (_, i) => i)
        const [totals] = yield* Effect.all(
          [reader, Effect.forEach(indexes, transfer, { concurrency: 12, discard: true })],
          { concurrency: 2 }
        )
        expect(new Set(totals)).toEqual(new Set([10_000]))

        const inside = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          sql.withTransaction(
            sql`update account set balance = 0 where id = 1`.pipe(
              Effect.andThen(Deferred.succeed(inside, undefined)),
              Effect.andThen(Effect.never)
            )
          )
        )
        yield* Deferred.await(inside)
        yield* Fiber.interrupt(fiber)
        expect(yield* total).toBe(10_000)
      })
    )

    it.effect("errors are typed and leave the connection usable", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`create table once (id int constraint once_key primary key)`
        yield* sql`insert into once values (1)`
        const error = yield* Effect.flip(sql`insert into once values (1)`)
        expect(isUniqueViolation(error, "once_key")).toBe(true)
        expect(isUniqueViolation(error, "other", "once_key")).toBe(true)
        expect(isUniqueViolation(error, "other")).toBe(false)
        expect(isUniqueViolation(error)).toBe(false)
        const exits = yield* Effect.forEach(
          Array.from({ length: 60 }, (_, i) => i),
          (i) => Effect.exit(i % 2 === 0 ? sql`select 1 / 0` : sql<{ x: number }>`select ${i}::int as x`),
          { concurrency: 16 }
        )
        exits.forEach((exit, i) => {
          expect(Exit.isSuccess(exit)).toBe(i % 2 === 1)
          if (Exit.isSuccess(exit)) expect(exit.value).toEqual([{ x: i }])
        })
      })
    )

    it.effect(
      "streams, carries large results, and receives notifications",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          expect(yield* Stream.runCount(sql`select g from generate_series(1, 20000) g`.stream)).toBe(20_000)
          expect(
            yield* sql`select g from generate_series(1, 90000) g`.stream.pipe(Stream.take(10), Stream.runCollect)
          ).toHaveLength(10)
          expect(yield* sql`select repeat('x', 1000) as v from generate_series(1, 4000)`).toHaveLength(4_000)
          const received = yield* Effect.scoped(
            Effect.gen(function* () {
              const queue = yield* sql.listen("bell")
              const first = yield* Effect.forkChild(Queue.take(queue))
              yield* sql.notify("bell", "ding")
              return yield* Fiber.join(first).pipe(Effect.timeoutOption("100 seconds"))
            })
          )
          expect(Option.map(received, ({ payload }) => payload)).toEqual(Option.some("ding"))
        }),
      { timeout: 240_000 }
    )

    it.effect("assigns each job to exactly one of many workers", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`create table job (id int primary key, taken int not null default 0)`
        yield* sql`insert into job select g from generate_series(1, 100) g`
        const take = sql<{ id: number }>`update job set taken = taken + 1
          where id in (select id from job where taken = 0 order by id limit 1 for update skip locked) returning id`
        const drain: Effect.Effect<number, unknown> = Effect.flatMap(take, (rows) =>
          rows.length === 0 ? Effect.succeed(0) : Effect.map(drain, (n) => n + 1)
        )
        const counts = yield* Effect.all(
          Array.from({ length: 8 }, () => drain),
          { concurrency: "unbounded" }
        )
        expect(counts.reduce((a, b) => a + b, 0)).toBe(100)
        expect(yield* sql`select 1 from job where taken <> 1`).toEqual([])
      })
    )
  })
})
