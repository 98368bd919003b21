import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Ref } from "effect"
import { SqlClient } from "effect/sql"
import { Facts } from "../../kernel/Facts.ts"
import { Supervisor } from "../../kernel/Supervisor.ts"
import { describeDatabases } from "../support/databases.ts"

const fact = (subject: string) => ({ type: "test.happened", version: 1, subject, data: { amount: "5" } })

describeDatabases("the journal of facts", (database, kind) => {
  const facts = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
  layer(facts, { timeout: "60 seconds", excludeTestServices: true })((it) => {
    it.effect("a fact exists exactly when its transaction commits, and cannot be published outside one", () =>
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
      "a consumer sees every fact once, in batches, and goes on where it stopped",
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
        }).pipe(Effect.timeout("20 seconds")),
      { timeout: 30_000 }
    )

    it.effect(
      "tells whether a type was published since a mark, also by a transaction that was open when the mark was taken",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { publish, publishedSince } = yield* Facts
          const start = yield* publishedSince("test.happened", undefined)
          expect(start.published).toBe(true)
          const quiet = yield* publishedSince("test.happened", start.mark)
          expect(quiet.published).toBe(false)
          yield* sql.withTransaction(publish(fact("new")))
          expect((yield* publishedSince("test.other", quiet.mark)).published).toBe(false)
          const told = yield* publishedSince("test.happened", quiet.mark)
          expect(told.published).toBe(true)
          expect((yield* publishedSince("test.happened", told.mark)).published).toBe(false)
          // The embedded database has one session: nothing else runs while a transaction is open.
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
          const during = yield* publishedSince("test.happened", told.mark)
          expect(during.published).toBe(false)
          yield* Deferred.succeed(end, undefined)
          yield* Fiber.join(open)
          expect((yield* publishedSince("test.happened", during.mark)).published).toBe(true)
        })
    )

    it.effect(
      "a consumer reads by the number of the transaction, also where it gains a digit",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { consume } = yield* Facts
          yield* sql`delete from kernel_facts`
          for (const xid of ["99", "100", "101"]) {
            yield* sql`insert into kernel_facts (xid, type, version, subject, data) values (${xid}::xid8, 'test.happened', 1, ${xid}, '{}')`
          }
          const seen = yield* Ref.make<ReadonlyArray<string>>([])
          const last = yield* Deferred.make<void>()
          yield* consume({
            consumer: "counting",
            batchMax: 1,
            handle: ([one]) =>
              Effect.andThen(
                Ref.update(seen, (all) => [...all, one!.subject]),
                one!.subject === "101" ? Deferred.succeed(last, undefined) : Effect.void
              )
          })
          yield* Deferred.await(last)
          expect(yield* Ref.get(seen)).toEqual(["99", "100", "101"])
        }).pipe(Effect.scoped, Effect.timeout("20 seconds")),
      { timeout: 30_000 }
    )

    if (kind === "postgres") {
      it.effect(
        "the cursor does not overtake a transaction that is still open",
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
            const consumer = yield* consume({
              consumer: "careful",
              handle: (batch) =>
                Effect.flatMap(
                  Ref.updateAndGet(seen, (s) => [...s, ...batch.map((f) => f.subject)]),
                  (all) => (all.length === 2 ? Deferred.succeed(both, undefined) : Effect.void)
                )
            })
            yield* Effect.sleep("300 millis")
            expect(yield* Ref.get(seen)).toEqual([])
            yield* Deferred.succeed(release, undefined)
            yield* Fiber.join(slow)
            yield* consumer.wake
            yield* Deferred.await(both)
            expect((yield* Ref.get(seen)).toSorted()).toEqual(["early, slow", "late, quick"])
          }).pipe(Effect.scoped, Effect.timeout("20 seconds")),
        { timeout: 30_000 }
      )
    }
  })
})
