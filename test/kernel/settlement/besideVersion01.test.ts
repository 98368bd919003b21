// Replicas of version 0.1 and of the current version over one database. The statements of 0.1 are copied here: it has
// one principal, ends a settlement in the budget of the row's principal, and does not use any column that came after
// migration 0004. `npm run upgrade -- --from REF` tests the same with the old program itself.
import { expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Settlements } from "../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../support/databases.ts"
import { claimOf, books, emptyStore, hashOf, idOf, newSettlement, outcomeOf, storeLayer, takeOne } from "./store.ts"

const keyless = { owner: "anonymous", source: "ip:192.0.2.1", keyed: false }
const bob = { owner: "key:bob", source: "key:bob", keyed: true }
const lease = Effect.map(takeOne, Option.getOrThrow)

/** Records with the current version. */
const recordToday = Effect.fnUntraced(function* (number: number, principal = keyless) {
  const { record } = yield* Settlements
  expect(yield* record(newSettlement(number, yield* lease, { principal }))).toEqual({ _tag: "Recorded" })
})

/** Ends with the current version. */
const endToday = (number: number, state: "settled" | "expired" = "settled") =>
  Effect.flatMap(Settlements, ({ resolve }) =>
    resolve(idOf(number), outcomeOf(state, { transaction: state === "settled" ? hashOf(`a${number}`) : undefined }))
  )

/** Records like 0.1. */
const recordOld = (number: number, principal = "ip:192.0.2.1", stroops = 50_000n) =>
  inTransaction(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into kernel_sponsor_budget as b (day, principal, reserved_stroops)
        values ('2026-01-02', ${principal}, ${stroops}) on conflict (day, principal) do update
        set reserved_stroops = b.reserved_stroops + excluded.reserved_stroops`
      yield* sql`insert into kernel_sponsor_budget_total as t (day, keyed, shard, reserved_stroops)
        values ('2026-01-02', false, 0, ${stroops}) on conflict (day, keyed, shard) do update
        set reserved_stroops = t.reserved_stroops + excluded.reserved_stroops`
      yield* sql`insert into kernel_settlements ${sql.insert({
        ...{
          id: idOf(number),
          network: "ledger:testnet",
          scheme: "exact",
          principal,
          payer: "payer",
          pay_to: "seller"
        },
        ...{ authorization_key: `authorization-${number}`, authorization_expires_ledger: 1_012, fingerprint: "f" },
        ...{ identifier: `identifier-${number}`, asset: "asset", amount_max: "10", amount: "10", sponsor: "sponsor" },
        ...{ inner_hash: hashOf(`a${number}`), channel: "channel-0", channel_sequence: 101, recorded_ledger: 1_000 },
        ...{
          resource_fee_stroops: 40_000,
          deadline_at: new Date(0),
          budget_day: "2026-01-02",
          budget_stroops: stroops
        },
        ...{ budget_shard: 0, budget_keyed: false }
      })}`
      yield* sql`insert into kernel_facts ${sql.insert(factOld(number, "recorded"))}`
      yield* attemptOld(number, 1)
    })
  )

const factOld = (number: number, what: string) => ({
  type: `settlement.${what}`,
  version: 1,
  subject: idOf(number),
  data: "{}"
})

const attemptOld = Effect.fnUntraced(function* (settlement: number, number: number) {
  const sql = yield* SqlClient.SqlClient
  const row = { settlement: idOf(settlement), number, kind: "payment", inner_hash: hashOf(`a${settlement}`) }
  const sent = { outer_hash: hashOf(`b${number}`), envelope: new Uint8Array(), inclusion_stroops: 200 }
  yield* sql`insert into kernel_attempts ${sql.insert({ ...row, ...sent, recorded_ledger: 1_000 })}`
})

interface EndedOld {
  readonly day: string
  readonly principal: string
  readonly keyed: boolean
  readonly shard: number
  readonly stroops: bigint
}

/** How 0.1 changed the budget of the row's principal, found or not. */
const commitOld = Effect.fnUntraced(function* (row: EndedOld, reserved: bigint, charged: bigint) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update kernel_sponsor_budget set reserved_stroops = reserved_stroops - ${reserved}::int8,
    committed_stroops = committed_stroops + ${charged}::int8
    where day = ${row.day}::date and principal = ${row.principal}`
  yield* sql`update kernel_sponsor_budget_total set reserved_stroops = reserved_stroops - ${reserved}::int8,
    committed_stroops = committed_stroops + ${charged}::int8
    where day = ${row.day}::date and keyed = ${row.keyed} and shard = ${row.shard}`
})

/** Ends like 0.1: from `from`; charges the amount that was not charged `before`. */
const endOld = (number: number, state: string, charged: bigint, from: "open" | "unresolved" = "open", before = 0n) =>
  inTransaction(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<EndedOld>`update kernel_settlements set state = ${state},
          resolved_at = clock_timestamp(), ledger = 1003, fee_charged_stroops = ${charged}::int8
        where id = ${idOf(number)} and (state in ('prepared', 'submitted')) = ${from === "open"}::boolean
        returning budget_day::text as day, principal, budget_keyed as keyed, budget_shard as shard,
          budget_stroops as stroops`
      yield* commitOld(row!, from === "open" ? row!.stroops : 0n, charged - before)
      yield* sql`insert into kernel_facts ${sql.insert(factOld(number, state))}`
    })
  )

/** Reserved and charged amounts by principal; asserts that the totals agree. */
const spent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { all, own } = yield* books
  expect(own).toEqual(all)
  const rows = yield* sql<{ principal: string; reserved: bigint; committed: bigint }>`select principal,
    reserved_stroops as reserved, committed_stroops as committed from kernel_sponsor_budget order by principal`
  return rows.map(({ committed, principal, reserved }) => [principal, reserved, committed])
})

for (const kind of databaseKinds) {
  describe(`beside version 0.1 on ${kind}`, () =>
    layer(storeLayer(kind), { timeout: "60 seconds", excludeTestServices: true })((it) => {
      it.effect("a new payment ended by 0.1 is charged to the reserving principal [S271]", () =>
        Effect.gen(function* () {
          yield* emptyStore(4)
          for (const number of [1, 2, 3]) yield* recordToday(number)
          yield* recordToday(4, bob)
          yield* endOld(1, "settled", 12_345n)
          expect((yield* spent)[0]).toEqual(["ip:192.0.2.1", 100_000n, 12_345n])
          yield* endOld(2, "expired", 0n)
          yield* endOld(4, "settled", 700n)
          expect(yield* spent).toEqual([
            ["ip:192.0.2.1", 50_000n, 12_345n],
            ["key:bob", 0n, 700n]
          ])
          // Given up, and then found to have been charged: an operator's move of 0.1.
          yield* endOld(3, "unresolved", 50_000n)
          expect((yield* spent)[0]).toEqual(["ip:192.0.2.1", 0n, 62_345n])
          yield* endOld(3, "failed", 300n, "unresolved", 50_000n)
          expect((yield* spent)[0]).toEqual(["ip:192.0.2.1", 0n, 12_645n])
        })
      )

      it.effect("a 0.1 payment is charged to the reserving principal, whichever version ends it", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          for (const number of [1, 2, 3]) yield* recordOld(number)
          yield* endToday(1)
          yield* endToday(2, "expired")
          expect(yield* spent).toEqual([["ip:192.0.2.1", 50_000n, 12_345n]])
          yield* endOld(3, "settled", 800n)
          expect(yield* spent).toEqual([["ip:192.0.2.1", 0n, 13_145n]])
        })
      )

      it.effect("a new payment ended by a new replica is charged once", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          for (const number of [1, 2, 3]) yield* recordToday(number)
          yield* endToday(1)
          yield* inTransaction(inTransaction(endToday(2)))
          yield* inTransaction(Effect.andThen(inTransaction(endToday(3, "expired")), inTransaction(Effect.void)))
          expect(yield* spent).toEqual([["ip:192.0.2.1", 0n, 24_690n]])
        })
      )

      it.effect("a keyless 0.1 payment is found, reported and delivered once [S91, S93]", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { claimDelivery, find, lookup } = yield* Settlements
          yield* emptyStore(1)
          yield* recordOld(1)
          yield* recordOld(2, "key:shop")
          yield* endOld(1, "settled", 5n)
          const query = { network: "ledger:testnet" as const, scheme: "exact", payTo: "seller" }
          const found = yield* find({
            ...{ ...query, payer: Option.some("payer"), principal: "anonymous" },
            ...{ identifier: Option.some("identifier-1"), authorizationKey: Option.none() }
          })
          expect(found.map(({ id, principal }) => [id, principal])).toEqual([[idOf(1), "anonymous"]])
          expect((yield* lookup("key:shop", { identifier: "identifier-2" })).map(({ id }) => id)).toEqual([idOf(2)])
          expect([
            yield* claimDelivery(claimOf(1), "anonymous"),
            yield* claimDelivery(claimOf(1), "anonymous")
          ]).toEqual([true, false])
          const facts = yield* sql`select type, principal from kernel_facts order by id`
          expect(facts.map(({ principal, type }) => [type, principal])).toEqual([
            ["settlement.recorded", "anonymous"],
            ["settlement.recorded", "key:shop"],
            ["settlement.settled", "anonymous"]
          ])
          const ended = yield* sql`select ended_by from kernel_settlements order by id`
          expect(ended.map(({ ended_by }) => ended_by)).toEqual([hashOf("a1"), null])
        })
      )

      it.effect("attempts of 0.1 are counted, with their accepted status", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* emptyStore(1)
          yield* recordOld(1)
          yield* attemptOld(1, 2)
          for (const [number, status] of [
            [1, "Pending"],
            [2, "Error"]
          ] as const)
            yield* sql`update kernel_attempts set sent_status = ${status}, sent_ledger = 1001
              where settlement = ${idOf(1)} and number = ${number}`
          yield* sql`update kernel_attempts set sent_status = 'Error' where settlement = ${idOf(1)} and number = 1`
          const { addAttempt, open } = yield* Settlements
          const [record] = yield* open(10)
          expect([record!.attemptCount, record!.attempts.map(({ taken }) => taken)]).toEqual([2, [true, false]])
          const { attempt } = newSettlement(1, { address: "", fence: 0n, sequence: 0n })
          // A decision made before the second attempt changes nothing.
          expect([yield* addAttempt(idOf(1), attempt, 1), yield* addAttempt(idOf(1), attempt, 2)]).toEqual([
            undefined,
            3
          ])
          expect((yield* open(10))[0]!.attemptCount).toBe(3)
        })
      )
    }))
}
