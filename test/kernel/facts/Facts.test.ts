import { expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Metric, Ref } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { watchConsumers } from "../../../kernel/facts/FactsWatch.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { describeDatabases } from "../../support/databases.ts"

const fact = (subject: string) => ({ type: "test.happened", version: 1, subject, data: { amount: "5" } })

describeDatabases("the journal of facts", (database, kind) => {
  const facts = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
  layer(facts, { timeout: "240 seconds", excludeTestServices: true })((it) => {
    it.effect("a fact exists only if its transaction commits, and requires one", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { publish } = yield* Facts
        yield* Effect.exit(sql.withTransaction(Effect.andThen(publish(fact("undone")), Effect.fail("undo"))))
        yield* sql.withTransaction(publish(fact("done")))
        expect(yield* sql`select subject, type, data from kernel_facts`).toEqual([
          { subject: "done", type: "test.happened", data: { amount: "5" } }
        ])
        expect(Exit.isFailure(yield* Effect.exit(publish(fact("outside"))))).toBe(true)
        expect(yield* sql`select subject from kernel_facts where subject = 'outside'`).toEqual([])
      })
    )

    it.effect(
      "a consumer reads every fact once, in batches, and resumes at its cursor",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { consume, publish } = yield* Facts
          yield* sql`delete from kernel_facts`
          yield* sql`create table seen (position bigint generated always as identity, subject text)`
          for (let i = 0; i < 25; i++) yield* sql.withTransaction(publish(fact(`s${i}`)))
          const readUntil = (subject: string) =>
            Effect.scoped(
              Effect.gen(function* () {
                const done = yield* Deferred.make<void>()
                yield* consume({
                  consumer: "reader",
                  batchMax: 10,
                  handle: (batch) =>
                    Effect.gen(function* () {
                      expect(batch.length).toBeLessThanOrEqual(10)
                      for (const { subject } of batch) yield* sql`insert into seen (subject) values (${subject})`
                      if (batch.at(-1)?.subject === subject)
                        yield* sql.afterCommit(Effect.asVoid(Deferred.succeed(done, undefined)))
                    })
                })
                if (subject === "later") yield* sql.withTransaction(publish(fact(subject)))
                yield* Deferred.await(done)
              })
            )
          yield* readUntil("s24")
          yield* readUntil("later")
          const seen = yield* sql<{ subject: string }>`select subject from seen order by position`
          expect(seen.map(({ subject }) => subject)).toEqual([
            ...Array.from({ length: 25 }, (_, i) => `s${i}`),
            "later"
          ])
        }).pipe(Effect.timeout("100 seconds")),
      { timeout: 240_000 }
    )

    it.effect("detects a type published since a mark, including by transactions open then", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { publish, publishedSince } = yield* Facts
        const start = yield* publishedSince("test.happened", undefined)
        expect(start.published).toBe(true)
        const quiet = yield* publishedSince("test.happened", start.mark)
        expect(quiet.published).toBe(false)
        yield* sql.withTransaction(publish(fact("new")))
        expect((yield* publishedSince("test.other", quiet.mark)).published).toBe(false)
        const reported = yield* publishedSince("test.happened", quiet.mark)
        expect(reported.published).toBe(true)
        expect([start.subjects, quiet.subjects, reported.subjects]).toEqual([undefined, [], ["new"]])
        expect((yield* publishedSince("test.happened", reported.mark)).published).toBe(false)
        const many = (count: number) => sql`insert into kernel_facts (type, version, subject, data)
            select 'test.happened', 1, n::text, '{}'::jsonb from generate_series(1, ${count}::int) n`
        yield* many(1_000)
        const all = yield* publishedSince("test.happened", reported.mark)
        expect([all.published, all.subjects?.length]).toEqual([true, 1_000])
        yield* many(1_001)
        const tooMany = yield* publishedSince("test.happened", all.mark)
        expect([tooMany.published, tooMany.subjects]).toEqual([true, undefined])
        // The embedded database has one session: no other statement runs while a transaction is open.
        if (kind === "pglite") return
        const [begun, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const open = yield* Effect.forkScoped(
          sql.withTransaction(
            Effect.andThen(
              publish(fact("late")),
              Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(end))
            )
          )
        )
        yield* Deferred.await(begun)
        const during = yield* publishedSince("test.happened", tooMany.mark)
        expect(during.published).toBe(false)
        yield* Deferred.succeed(end, undefined)
        yield* Fiber.join(open)
        expect((yield* publishedSince("test.happened", during.mark)).published).toBe(true)
      })
    )

    it.effect(
      "reads new facts after a restore with later cursors or another order",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { consume, publish, publishedSince } = yield* Facts
          yield* sql`delete from kernel_facts`
          yield* sql`insert into kernel_fact_cursors (consumer, position) values ('restored', 24233)`
          const { mark } = yield* publishedSince("test.happened", undefined)
          yield* sql.withTransaction(publish(fact("new")))
          const read = yield* Deferred.make<string>()
          yield* consume({ consumer: "restored", handle: ([one]) => Deferred.succeed(read, one!.subject) })
          expect(yield* Deferred.await(read)).toBe("new")
          const positions = yield* sql`select position from kernel_facts`
          expect(positions).toEqual([{ position: 24234n }])
          // An earlier mark, in a process that lives on.
          yield* sql`delete from kernel_facts`
          yield* sql`update kernel_fact_cursors set position = 0`
          yield* sql.withTransaction(publish(fact("lower")))
          const notified = yield* publishedSince("test.happened", mark.replace(/^[0-9]+/, "24234"))
          expect(notified).toEqual({ published: true, mark: mark.replace(/^[0-9]+/, "1") })
          expect(mark).not.toBe(notified.mark)
        }).pipe(Effect.scoped, Effect.timeout("100 seconds")),
      { timeout: 240_000 }
    )

    it.effect("a stalled consumer is warned of once and measured until it advances", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { publish, publishedSince } = yield* Facts
        const warnings: Array<unknown> = []
        const logger = Logger.make(({ logLevel, message }) => {
          if (logLevel !== "Info" && logLevel !== "Debug") warnings.push(message)
        })
        const stalled = Effect.map(Metric.snapshot, (all) =>
          all
            .filter(({ attributes, id }) => id === "tollkeeper_facts_stalled" && attributes?.["consumer"] === "still")
            .map(({ state }) => (state as { readonly value: number }).value)
        )
        const watch = watchConsumers(sql)
        const poll = Effect.gen(function* () {
          yield* publishedSince("test.happened", undefined)
          yield* watch(["still"])
          return yield* stalled
        }).pipe(Effect.provide(Logger.layer([logger])))
        const end = sql<{ end: bigint }>`select coalesce(max(position), 0) as "end" from kernel_facts`
        yield* sql`insert into kernel_fact_cursors (consumer, position) values ('still', ${(yield* end)[0]!.end})`
        expect(yield* poll).toEqual([0])
        // Nothing was written: a consumer at the end is not stalled.
        expect(yield* poll).toEqual([0])
        yield* sql.withTransaction(publish(fact("waits")))
        expect(yield* poll).toEqual([0])
        expect(yield* poll).toEqual([1])
        expect(yield* poll).toEqual([1])
        expect(warnings).toHaveLength(1)
        yield* sql`update kernel_fact_cursors set position = ${(yield* end)[0]!.end} where consumer = 'still'`
        expect(yield* poll).toEqual([0])
        expect(warnings).toHaveLength(1)
      })
    )

    if (kind === "postgres") {
      it.effect(
        "position assignment is serialized, and an assigned position is kept",
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const { publish, publishedSince } = yield* Facts
            yield* sql`delete from kernel_facts`
            yield* sql`delete from kernel_fact_cursors`
            const gate = () => Effect.all([Deferred.make<void>(), Deferred.make<void>()])
            const held = ([reached, left]: readonly [Deferred.Deferred<void>, Deferred.Deferred<void>]) =>
              Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(left))
            const place = publishedSince("test.happened", undefined)
            const [writing, placing] = [yield* gate(), yield* gate()]
            const late = yield* Effect.forkChild(
              sql.withTransaction(Effect.andThen(publish(fact("late")), held(writing)))
            )
            yield* Deferred.await(writing[0])
            yield* sql.withTransaction(publish(fact("quick")))
            const slow = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(place, held(placing))))
            yield* Deferred.await(placing[0])
            yield* Deferred.succeed(writing[1], undefined)
            yield* Fiber.join(late)
            const second = yield* Effect.forkChild(place)
            const isBlocked = sql`select 1 from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock'`
            while ((yield* isBlocked).length === 0) yield* Effect.sleep("5 millis")
            yield* Deferred.succeed(placing[1], undefined)
            yield* Fiber.join(slow)
            yield* Fiber.join(second)
            expect(yield* sql`select subject, position from kernel_facts order by position`).toEqual([
              { subject: "quick", position: 1n },
              { subject: "late", position: 2n }
            ])
          }).pipe(Effect.timeout("100 seconds")),
        { timeout: 240_000 }
      )

      it.effect(
        "two concurrent replicas assign each fact one position and one order",
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`delete from kernel_facts`
            yield* sql`delete from kernel_fact_cursors`
            const count = 400
            const readers = ["a", "b", "c", "d"]
            const seen = new Map(readers.map((reader) => [reader, [] as Array<string>]))
            const replica = (readers: ReadonlyArray<string>) =>
              Effect.gen(function* () {
                const { consume, publish } = yield* Facts
                const done = yield* Deferred.make<void>()
                for (const consumer of readers) {
                  yield* consume({
                    consumer,
                    batchMax: 7,
                    handle: (batch) =>
                      sql.afterCommit(
                        Effect.suspend(() => {
                          seen.get(consumer)!.push(...batch.map(({ position, subject }) => `${position} ${subject}`))
                          return readers.every((reader) => seen.get(reader)!.length >= count)
                            ? Effect.asVoid(Deferred.succeed(done, undefined))
                            : Effect.void
                        })
                      )
                  })
                }
                return { publish, done }
              })
            const layers = yield* Effect.forEach([readers.slice(0, 2), readers.slice(2)], (names) =>
              Effect.provide(replica(names), Facts.layer.pipe(Layer.provide(Supervisor.layer)), { local: true })
            )
            yield* Effect.forEach(
              Array.from({ length: count }, (_, at) => at),
              (at) => sql.withTransaction(layers[at % 2]!.publish(fact(String(at)))),
              { concurrency: 8, discard: true }
            )
            for (const { done } of layers) yield* Deferred.await(done)
            const [first] = [...seen.values()]
            expect(new Set(first).size).toBe(count)
            for (const reader of readers) expect(seen.get(reader)).toEqual(first)
          }).pipe(Effect.scoped, Effect.timeout("100 seconds")),
        { timeout: 240_000 }
      )

      it.effect(
        "facts of a publish-only process are read within seconds of notification",
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const replica = Facts.layer.pipe(Layer.provide(Supervisor.layer))
            let [received, seen] = [0, 0]
            const query = sql`select 1`
            const until = (holds: () => boolean) => Effect.repeat(query, { while: () => !holds() })
            // The reader's own beat never comes, because its clock moves only ten seconds in total.
            yield* Effect.gen(function* () {
              const reader = yield* Facts
              yield* reader.onPublished(Effect.sync(() => void (received += 1)))
              yield* reader.consume({
                consumer: "reliever",
                from: "end",
                handle: (batch) => Effect.sync(() => void (seen += batch.length))
              })
              const begun = sql`select 1 from kernel_fact_cursors where consumer = 'reliever'`
              while ((yield* begun).length === 0) yield* Effect.yieldNow
              yield* until(() => received >= 1)
              // It notifies once when it begins to listen.
              const other = Context.get(yield* Layer.build(Layer.fresh(replica)), Facts)
              yield* until(() => received >= 2)
              yield* sql.withTransaction(other.publish(fact("unread")))
              yield* until(() => received >= 3)
              for (let second = 0; second < 10; second++) yield* Effect.andThen(TestClock.adjust("1 second"), query)
              yield* until(() => seen === 1)
            }).pipe(Effect.provide(replica, { local: true }), Effect.provide(TestClock.layer()))
          }).pipe(Effect.scoped, Effect.timeout("100 seconds")),
        { timeout: 240_000 }
      )

      it.effect(
        "a late commit is read late, never skipped, and blocks no reader",
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const { consume, publish } = yield* Facts
            yield* sql`delete from kernel_facts`
            const seen = yield* Ref.make<ReadonlyArray<string>>([])
            const both = yield* Deferred.make<void>()
            const written = yield* Deferred.make<void>()
            const release = yield* Deferred.make<void>()
            const slow = yield* Effect.forkChild(
              sql.withTransaction(
                publish(fact("early, slow")).pipe(
                  Effect.andThen(Deferred.succeed(written, undefined)),
                  Effect.andThen(Deferred.await(release))
                )
              )
            )
            yield* Deferred.await(written)
            yield* sql.withTransaction(publish(fact("late, quick")))
            const one = yield* Deferred.make<void>()
            const consumer = yield* consume({
              consumer: "careful",
              handle: (batch) =>
                Effect.flatMap(
                  Ref.updateAndGet(seen, (s) => [...s, ...batch.map((f) => f.subject)]),
                  (all) => Deferred.succeed(all.length === 1 ? one : both, undefined)
                )
            })
            yield* Deferred.await(one)
            expect(yield* Ref.get(seen)).toEqual(["late, quick"])
            yield* Deferred.succeed(release, undefined)
            yield* Fiber.join(slow)
            yield* consumer.wake
            yield* Deferred.await(both)
            expect(yield* Ref.get(seen)).toEqual(["late, quick", "early, slow"])
          }).pipe(Effect.scoped, Effect.timeout("100 seconds")),
        { timeout: 240_000 }
      )
    }
  })
})
