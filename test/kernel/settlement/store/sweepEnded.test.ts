// Ended settlements are deleted by age, unless they may still matter to money.
import { expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Facts } from "../../../../kernel/facts/Facts.ts"
import { Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import {
  sweepBudget,
  sweepSettlements,
  sweepSponsorTransactions
} from "../../../../kernel/settlement/store/sweepEnded.ts"
import { sweepFacts } from "../../../../kernel/facts/sweepFacts.ts"
import { databaseKinds } from "../../../support/databases.ts"
import {
  byMachineClock,
  channelName,
  emptyStore,
  idOf,
  newSettlement,
  outcomeOf,
  storeLayer,
  takeOne
} from "../store.ts"

const day = 86_400_000
const keep = 30 * day
const passed = { network: "ledger:testnet", sequence: 2_000 }

/** Settlements by their numbers: one open, one of each outcome, one unresolved, one with a live authorization. */
const populate = Effect.gen(function* () {
  yield* emptyStore(6)
  const settlements = yield* Settlements
  for (let number = 0; number < 6; number++) {
    const channel = Option.getOrThrow(yield* takeOne)
    const expires = number === 5 ? { authorizationExpiresLedger: 2_000 } : {}
    expect(yield* settlements.record(newSettlement(number, channel, expires))).toEqual({ _tag: "Recorded" })
  }
  for (const [number, state] of [
    [1, "settled"],
    [2, "failed"],
    [3, "expired"],
    [4, "unresolved"],
    [5, "settled"]
  ] as const)
    yield* settlements.resolve(idOf(number), outcomeOf(state))
})

/** Moves everything into the past by as many days. */
const age = Effect.fnUntraced(function* (days: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update kernel_settlements set recorded_at = recorded_at - make_interval(days => ${days}),
    resolved_at = resolved_at - make_interval(days => ${days})`
  yield* sql`update kernel_facts set at = at - make_interval(days => ${days})`
  yield* sql`update kernel_sponsor_budget set day = day - ${days}::int`
  yield* sql`update kernel_sponsor_budget_total set day = day - ${days}::int`
})

const kept = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const settlements = yield* sql<{ id: string }>`select id::text as id from kernel_settlements order by 1`
  const attempts = yield* sql<{ id: string }>`select settlement::text as id from kernel_attempts order by 1`
  expect(attempts).toEqual(settlements)
  return settlements.map(({ id }) => Number(id.slice(-3)))
})

for (const kind of databaseKinds) {
  describe(`retention of ended settlements on ${kind}`, () =>
    layer(
      storeLayer(kind),
      byMachineClock
    )((it) => {
      it.effect("ended settlements stay for the configured retention, with attempts", () =>
        Effect.gen(function* () {
          yield* populate
          yield* age(29)
          expect(yield* sweepSettlements(keep, passed)).toBe(false)
          expect(yield* kept).toEqual([0, 1, 2, 3, 4, 5])
        })
      )

      it.effect("deletes expired settlements except open, unresolved, foreign or live ones", () =>
        Effect.gen(function* () {
          yield* populate
          yield* age(31)
          yield* sweepSettlements(keep, { ...passed, network: "ledger:pubnet" })
          expect(yield* kept).toEqual([0, 1, 2, 3, 4, 5])
          yield* sweepSettlements(keep, passed)
          expect(yield* kept).toEqual([0, 4, 5])
          yield* sweepSettlements(keep, { ...passed, sequence: 2_001 })
          expect(yield* kept).toEqual([0, 4])
        })
      )

      it.effect("an ended settlement stays while it holds a channel", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* populate
          yield* age(31)
          yield* sql`update kernel_channels set settlement = ${idOf(2)}::uuid where address = ${channelName(5)}`
          yield* sweepSettlements(keep, passed)
          expect(yield* kept).toEqual([0, 2, 4, 5])
        })
      )

      it.effect("deleting settlements deletes their budget days", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* populate
          yield* age(29)
          yield* sweepBudget(keep)
          expect(yield* sql`select 1 from kernel_sponsor_budget`).toHaveLength(1)
          yield* age(2)
          yield* sweepBudget(keep)
          expect(yield* sql`select 1 from kernel_sponsor_budget`).toEqual([])
          expect(yield* sql`select 1 from kernel_sponsor_budget_total`).toEqual([])
        })
      )

      it.effect("deletes old sponsor transactions except those that decide the next", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* emptyStore(1)
          /** In the order of their time; the last ones are the newest. */
          const add = Effect.fnUntraced(function* (
            sponsor: string,
            states: ReadonlyArray<readonly [state: string, ledger: number | null]>,
            network = passed.network
          ) {
            for (const [at, [state, ledger]] of states.entries())
              yield* sql`insert into kernel_sponsor_transactions
                (hash, network, sponsor, purpose, envelope, ledger_max, recorded_at, state, ledger)
                values (${`${sponsor}${at}`}, ${network}, ${sponsor}, 'channels', ''::bytea, 1,
                  now() - interval '31 days' + make_interval(secs => ${at}), ${state}, ${ledger}::int8)`
          })
          const known = Effect.map(
            sql<{ hash: string }>`select hash from kernel_sponsor_transactions order by hash`,
            (rows) => rows.map(({ hash }) => hash)
          )
          // The last landed transaction is not among the newest; an open transaction may be old.
          yield* add("A", [
            ["open", null],
            ["landed", 7],
            ["landed", 9],
            ["expired", null],
            ["failed", 8],
            ["expired", null]
          ])
          yield* add("B", [
            ["landed", 1],
            ["landed", 2]
          ])
          yield* add("C", [
            ["expired", null],
            ["expired", null],
            ["expired", null]
          ])
          yield* add(
            "D",
            [
              ["landed", 1],
              ["landed", 2],
              ["landed", 3]
            ],
            "ledger:pubnet"
          )
          const all = yield* known
          expect(yield* sweepSponsorTransactions(32 * day, passed.network)).toBe(false)
          expect(yield* known).toEqual(all)
          expect(yield* sweepSponsorTransactions(keep, passed.network)).toBe(false)
          expect(yield* known).toEqual(["A0", "A2", "A4", "A5", "B0", "B1", "C1", "C2", "D0", "D1", "D2"])
        })
      )

      it.effect("retention counts from a settlement's end, not its record", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* populate
          yield* age(31)
          yield* sql`update kernel_settlements set resolved_at = clock_timestamp() where id = ${idOf(1)}`
          while (yield* sweepSettlements(keep, passed));
          const left = yield* sql<{ id: string }>`select id::text as id from kernel_settlements`
          expect(left.map(({ id }) => id)).toContain(idOf(1))
          expect(left.map(({ id }) => id)).not.toContain(idOf(2))
        })
      )

      it.effect("keeps facts until every consumer has read them, and the newest", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const facts = yield* Facts
          yield* populate
          const { end } = yield* facts.end
          const count = Effect.map(sql`select 1 from kernel_facts`, (rows) => rows.length)
          const all = yield* count
          yield* sql`insert into kernel_fact_cursors (consumer, position) values ('quick', ${end}), ('slow', ${
            end - 4n
          }) on conflict (consumer) do update set position = excluded.position`
          yield* sweepFacts(keep)
          expect(yield* count).toBe(all)
          yield* age(31)
          yield* sweepFacts(keep)
          expect(yield* count).toBe(4)
          yield* sql`update kernel_fact_cursors set position = ${end}`
          yield* sweepFacts(keep)
          expect(yield* sql`select position from kernel_facts`).toEqual([{ position: end }])
          expect((yield* facts.end).end).toBe(end)
          yield* sql`delete from kernel_fact_cursors`
        })
      )
    }))
}
