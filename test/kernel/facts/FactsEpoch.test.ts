import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { describe, it } from "vitest"
import { Facts, ServesFacts } from "../../../kernel/facts/Facts.ts"
import { decodeCursor, encodeCursor, resumeAt } from "../../../kernel/facts/FactsEpoch.ts"
import { SettlementEvents } from "../../../kernel/settlement/operators/SettlementEvents.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { describeDatabases } from "../../support/databases.ts"

describe("a cursor", () => {
  it("a cursor round-trips; a plain position has no epoch; others are refused", () => {
    const cursor = { position: 71n, epoch: 1_795_000_000_123_456n }
    expect(Option.getOrThrow(decodeCursor(encodeCursor(cursor)))).toEqual(cursor)
    expect(Option.getOrThrow(decodeCursor("71"))).toEqual({ position: 71n, epoch: 0n })
    for (const text of ["", "-1", "x", "1-", "1-A", "1-z-z", "9".repeat(19), "1".repeat(20), `1-${"z".repeat(13)}`])
      expect([text, decodeCursor(text)]).toEqual([text, Option.none()])
  })
})

const shop = { principal: "shop" }
const fact = (n: number) => ({
  type: "settlement.recorded",
  version: 1,
  subject: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
  principal: "shop",
  data: {}
})

describeDatabases("epochs of the journal", (database) => {
  const tested = SettlementEvents.layer.pipe(
    Layer.provideMerge(Facts.layer),
    Layer.provideMerge(database),
    Layer.provideMerge(Supervisor.layer)
  )
  /** The state of a promoted standby: the facts up to a position, and no trace of the epochs after it. */
  const loseAfter = Effect.fnUntraced(function* (position: bigint, epoch: bigint) {
    const sql = yield* SqlClient.SqlClient
    yield* sql`delete from kernel_facts where position > ${position} or position is null`
    yield* sql`delete from kernel_journal_epochs where epoch > ${epoch}`
    yield* sql`update kernel_journal_epochs set server = 'the one before'`
  })
  const publish = Effect.fnUntraced(function* (count: number) {
    const sql = yield* SqlClient.SqlClient
    const facts = yield* Facts
    for (let n = 0; n < count; n++) yield* sql.withTransaction(facts.publish(fact(n)))
    return yield* facts.end
  })

  layer(tested, { timeout: "240 seconds", excludeTestServices: true })((it) => {
    it.effect("a command beside no facilitator begins no epoch", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`update kernel_journal_epochs set server = 'the one before'`
        const epochs = sql`select epoch, server from kernel_journal_epochs order by epoch`
        const before = yield* epochs
        const opened = (serves: boolean) => {
          const own = Layer.fresh(Facts.layer).pipe(
            Layer.provide(Layer.fresh(Supervisor.layer)),
            Layer.provide(Layer.succeed(ServesFacts, serves))
          )
          return Effect.scoped(Layer.build(own))
        }
        yield* opened(false)
        expect(yield* epochs).toEqual(before)
        yield* opened(true)
        expect(yield* epochs).not.toEqual(before)
      })
    )

    it.effect("a page of facts without settlements is not the end", () =>
      Effect.gen(function* () {
        const events = yield* SettlementEvents
        const before = yield* events.end
        const { end, epoch } = yield* publish(7)
        const first = yield* events.after(shop, { epoch, position: before.end }, 5)
        expect(first).toMatchObject({ events: [], isEnd: false, next: { epoch, position: end - 2n } })
        expect(yield* events.after(shop, first.next, 5)).toMatchObject({
          events: [],
          isEnd: true,
          next: { position: end }
        })
      })
    )

    it.effect("a rewound journal begins an epoch before assigning positions", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const events = yield* SettlementEvents
        const facts = yield* Facts
        const common = yield* publish(3)
        const lost = yield* publish(4)
        expect(lost.epoch).toBe(common.epoch)
        const mark = (yield* facts.publishedSince("settlement.recorded", undefined)).mark
        yield* loseAfter(common.end, common.epoch)
        // The journal grows past the lost part before any client returns.
        yield* Effect.forEach([1, 2, 3, 4, 5, 6], (n) => sql.withTransaction(facts.publish(fact(n))))
        const now = yield* facts.end
        expect(now.end).toBeGreaterThan(lost.end)
        expect(now.epoch).toBeGreaterThan(common.epoch)
        const page = yield* events.after(shop, { epoch: lost.epoch, position: lost.end }, 3)
        expect(page.rewoundTo).toEqual({ epoch: now.epoch, position: common.end })
        expect(page.next).toEqual({ epoch: now.epoch, position: common.end + 3n })
        // A position in the common part resumes there.
        const early = { epoch: common.epoch, position: common.end - 1n }
        expect(yield* events.after(shop, early, 1)).toMatchObject({
          rewoundTo: undefined,
          next: { position: common.end }
        })
        // For an unknown epoch we do not have the point where it left the journal, so the client resumes after the
        // previous epoch's beginning.
        const gone = { epoch: common.epoch + 1n, position: lost.end }
        const [known] = yield* sql<{ begins: bigint }>`select begins_after as begins from kernel_journal_epochs
          where epoch = ${common.epoch}`
        expect((yield* events.after(shop, gone, 1)).rewoundTo?.position).toBe(known!.begins)
        expect(known!.begins).toBeLessThan(common.end)
        // A position of version 0.1 counts as one of the first epoch.
        const [second] = yield* sql<{ begins: bigint }>`select begins_after as begins from kernel_journal_epochs
          order by epoch offset 1 limit 1`
        const plain = yield* events.after(shop, { epoch: 0n, position: lost.end }, 1)
        expect(plain.rewoundTo?.position).toBe(second!.begins)
        const since = yield* facts.publishedSince("test.never", mark)
        expect(since).toMatchObject({ published: true, subjects: undefined })
        expect((yield* facts.publishedSince("test.never", since.mark)).published).toBe(false)
      })
    )

    it.effect("a journal end below the cursor begins an epoch on any server", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const facts = yield* Facts
        const before = yield* publish(3)
        yield* sql`delete from kernel_facts where position > ${before.end - 2n}`
        const after = yield* facts.end
        expect(after.end).toBe(before.end - 2n)
        expect(after.epoch).toBeGreaterThan(before.epoch)
        expect((yield* facts.end).epoch).toBe(after.epoch)
      })
    )

    it.effect("wakes streams when the journal was rewound", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const events = yield* SettlementEvents
        const before = yield* publish(2)
        const woken = yield* events.attend({ principal: "another" })
        // The first poll of the waiting streams wakes all of them.
        yield* woken
        const again = yield* Effect.forkScoped(woken)
        yield* loseAfter(before.end - 1n, before.epoch)
        yield* sql.withTransaction((yield* Facts).publish({ ...fact(9), principal: "unrelated" }))
        yield* Fiber.join(again)
        expect((yield* events.end).epoch).toBeGreaterThan(before.epoch)
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("a journal that was restored in place begins an epoch, once", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const facts = yield* Facts
        const restore = {
          "a dump over its own database": sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`create table restored (like kernel_journal_epochs including all)`
              yield* sql`insert into restored select * from kernel_journal_epochs`
              yield* sql`drop table kernel_journal_epochs`
              yield* sql`alter table restored rename to kernel_journal_epochs`
              yield* sql`create trigger kernel_channels_of_new_epoch after insert on kernel_journal_epochs
                for each row execute function kernel_channels_of_new_epoch()`
            })
          ),
          "its rows alone": sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`create temporary table rows on commit drop as select * from kernel_journal_epochs`
              yield* sql`truncate kernel_journal_epochs`
              yield* sql`insert into kernel_journal_epochs select * from rows`
            })
          )
        }
        for (const [what, restored] of Object.entries(restore)) {
          const before = yield* publish(1)
          yield* restored
          yield* sql.withTransaction(facts.publish(fact(1)))
          const after = yield* facts.end
          expect(after.epoch, what).toBeGreaterThan(before.epoch)
          expect((yield* publish(1)).epoch, what).toBe(after.epoch)
        }
      })
    )

    it.effect("a restore under live replicas resumes at the last common position", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const events = yield* SettlementEvents
        const dumped = yield* publish(5)
        // The server started after the dump was made, so the dump does not have this epoch.
        yield* sql`update kernel_journal_epochs set server = 'the one before'`
        const live = yield* publish(3)
        expect(live.epoch).toBeGreaterThan(dumped.epoch)
        const epochs = sql<{ epoch: bigint }>`select epoch from kernel_journal_epochs order by epoch`
        // The steps of `pg_restore --clean`: new tables, then their rows, then their keys.
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`create table stashed as select * from kernel_facts where position <= ${dumped.end}`
            yield* sql`create table restored as select * from kernel_journal_epochs where epoch <= ${dumped.epoch}`
            yield* sql`drop table kernel_journal_epochs`
            yield* sql`alter table restored rename to kernel_journal_epochs`
            yield* sql`delete from kernel_facts`
            yield* sql`alter table kernel_facts drop constraint kernel_facts_pkey`
          })
        )
        const loading = yield* epochs
        expect((yield* events.end).epoch).toBe(0n)
        expect(yield* epochs).toEqual(loading)
        const read = { epoch: live.epoch, position: live.end }
        expect(resumeAt(read, yield* events.end)).toEqual(read)
        const columns = "at, type, version, subject, data, position, principal"
        yield* sql`insert into kernel_facts (${sql.literal(columns)}) select ${sql.literal(columns)} from stashed`
        yield* sql`drop table stashed`
        yield* sql`alter table kernel_journal_epochs add primary key (epoch)`
        yield* sql`alter table kernel_facts add primary key (id)`
        yield* sql`create trigger kernel_channels_of_new_epoch after insert on kernel_journal_epochs
          for each row execute function kernel_channels_of_new_epoch()`
        const after = yield* events.end
        expect(after.epoch).toBeGreaterThan(live.epoch)
        expect(resumeAt({ ...after, position: after.end + 1n }, after)).toEqual({ epoch: after.epoch, position: 0n })
        const page = yield* events.after(shop, read, 5)
        expect(page.rewoundTo).toEqual({ epoch: after.epoch, position: dumped.end })
      })
    )

    it.effect("a new epoch rereads channels and voids lost leases", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`insert into kernel_channels (address, network, sponsor, number, state, sequence, fence) values
          ('C', 'ledger:testnet', 'S', 1, 'ready', 5, 7)`
        yield* sql`update kernel_journal_epochs set server = 'the one before'`
        yield* (yield* Facts).end
        expect(yield* sql`select reread, fence from kernel_channels`).toEqual([{ reread: true, fence: 1_000_007n }])
      })
    )
  })
})
