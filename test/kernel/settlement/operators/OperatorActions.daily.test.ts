import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Facts } from "../../../../kernel/facts/Facts.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { OperatorActions } from "../../../../kernel/settlement/operators/OperatorActions.ts"
import { OperatorReports } from "../../../../kernel/settlement/operators/OperatorReports.ts"
import { Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../../support/databases.ts"
import {
  books,
  byMachineClock,
  claimOf,
  emptyStore,
  hashOf,
  idOf,
  newSettlement,
  outcomeOf,
  storeLayer,
  takeOne
} from "../store.ts"

const born = Effect.fnUntraced(function* (number: number) {
  const settlements = yield* Settlements
  yield* settlements.record(newSettlement(number, Option.getOrThrow(yield* takeOne)))
})

for (const kind of databaseKinds) {
  describe(`an operator on ${kind}`, () =>
    layer(
      Layer.merge(OperatorActions.layer, OperatorReports.layer).pipe(Layer.provideMerge(storeLayer(kind))),
      byMachineClock
    )((it) => {
      it.effect("an operator finds unresolved settlements by id and every hash", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const moves = yield* OperatorActions
          const settlements = yield* Settlements
          for (const number of [1, 2, 3]) yield* born(number)
          yield* settlements.resolve(idOf(1), outcomeOf("settled"))
          yield* settlements.resolve(idOf(2), outcomeOf("unresolved"))
          expect((yield* moves.list({ which: "all" })).map(({ id }) => id)).toEqual([idOf(2), idOf(3)])
          expect((yield* moves.list({ which: "open" })).map(({ id }) => id)).toEqual([idOf(3)])
          expect((yield* moves.list({ which: "unresolved" })).map(({ id }) => id)).toEqual([idOf(2)])
          for (const text of [idOf(2), hashOf("a2"), hashOf("b2"), hashOf("b2").toUpperCase()])
            expect((yield* moves.find(text))?.id).toBe(idOf(2))
          expect(yield* moves.find("nothing")).toBeUndefined()
          const sql = yield* SqlClient.SqlClient
          yield* sql`update kernel_settlements set recorded_at = clock_timestamp() - interval '1 hour'
            where state in ('settled', 'unresolved')`
          const reported = yield* (yield* OperatorReports).unended
          expect(reported).toMatchObject({ open: 1, unresolved: 1 })
          expect(reported.oldestOpenSeconds).toBeLessThan(3_600)
          expect(reported.oldestUnresolvedSeconds).toBeGreaterThanOrEqual(3_600)
        })
      )

      it.effect("an operator resolves a settlement, correcting its fee and publishing a fact [S94, S271]", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const moves = yield* OperatorActions
          const settlements = yield* Settlements
          yield* born(1)
          yield* settlements.resolve(idOf(1), outcomeOf("unresolved", { feeChargedStroops: 0n }))
          const record = yield* moves.resolve(idOf(1), {
            state: "settled",
            ledger: 1_004,
            feeChargedStroops: 12_345n,
            note: "seen in an explorer"
          })
          expect(record).toMatchObject({
            state: "settled",
            amountTransferred: Option.some(10n),
            feeChargedStroops: Option.some(12_345n),
            reasonMessage: Option.some("seen in an explorer")
          })
          expect(yield* books).toEqual({
            own: { reserved: 0n, committed: 12_345n },
            all: { reserved: 0n, committed: 12_345n }
          })
          expect(yield* settlements.claimDelivery(claimOf(1), "key:a")).toBe(true)
          yield* born(2)
          yield* settlements.resolve(idOf(2), outcomeOf("unresolved", { feeChargedStroops: 400n }))
          yield* moves.resolve(idOf(2), {
            state: "expired",
            ledger: undefined,
            feeChargedStroops: 0n,
            note: "never landed"
          })
          expect((yield* books).own).toEqual({ reserved: 0n, committed: 12_345n })
          const sql = yield* SqlClient.SqlClient
          expect(yield* sql`select type, data->>'by' as by from kernel_facts where data ? 'by' order by id`).toEqual([
            { type: "settlement.settled", by: "operator" },
            { type: "settlement.expired", by: "operator" }
          ])
        })
      )

      it.effect("an operator abandons an open settlement, freeing its channel after expiry", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const moves = yield* OperatorActions
          const store = yield* ChannelStore
          yield* born(1)
          expect(yield* moves.giveUp(idOf(1), "the test network was reset")).toMatchObject({
            state: "unresolved",
            authorizationExpiresLedger: 1_012
          })
          // It may have landed, so its possible cost stays charged.
          expect((yield* books).own).toEqual({ reserved: 0n, committed: 50_000n })
          yield* store.learn("channel-0", 200n, 1_011)
          expect(Option.isNone(yield* takeOne)).toBe(true)
          yield* store.learn("channel-0", 200n, 1_012)
          expect(Option.getOrThrow(yield* takeOne).sequence).toBe(201n)
        })
      )

      it.effect("an operator assigns an unrecorded settlement to one principal", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const moves = yield* OperatorActions
          const { wasOwner } = yield* Settlements
          const sql = yield* SqlClient.SqlClient
          expect(yield* wasOwner(hashOf("a9"), "key:shop")).toBe(false)
          yield* moves.give(hashOf("a9"), "key:other", "a mistake")
          yield* moves.give(hashOf("a9"), "key:shop", "as its own books say")
          const owners = ["key:shop", "key:other", "anonymous"]
          expect(yield* Effect.forEach(owners, (owner) => wasOwner(hashOf("a9"), owner))).toEqual([true, false, false])
          expect(yield* wasOwner(hashOf("a8"), "key:shop")).toBe(false)
          for (const [hash, owner] of [
            [hashOf("a9"), "shop"],
            [hashOf("a9"), "ip:1"],
            ["a9", "key:shop"]
          ] as const)
            expect((yield* Effect.flip(moves.give(hash, owner, "why")))._tag).toBe("ActionRefused")
          // A stored settlement has its owner; a settlement that is only in the journal has the journal's owner.
          yield* born(1)
          yield* (yield* Facts).end
          expect((yield* Effect.flip(moves.give(hashOf("a1"), "key:shop", "why")))._tag).toBe("ActionRefused")
          const [row] = yield* sql<{ principal: string }>`select principal from kernel_settlements`
          // Also by the transaction that ended it, without a recorded attempt, and by one before a rebuild.
          yield* sql`update kernel_settlements set ended_by = ${hashOf("d1")}`
          yield* sql`insert into kernel_rebuilds (settlement, inner_hash) values (${idOf(1)}, ${hashOf("c1")})`
          for (const hash of ["d1", "c1"]) {
            expect(yield* moves.find(hashOf(hash))).toMatchObject({ id: idOf(1) })
            expect((yield* Effect.flip(moves.give(hashOf(hash), "key:shop", "why"))).message).toContain("is stored")
          }
          expect(yield* wasOwner(hashOf("a1"), row!.principal)).toBe(true)
          expect(yield* wasOwner(hashOf("a1"), "key:another")).toBe(false)
          yield* sql`update kernel_facts set data = data || '{"network": "ledger:pubnet"}'`
          expect(yield* wasOwner(hashOf("a1"), row!.principal)).toBe(false)
        })
      )

      it.effect("refuses operator actions in another state or with invalid input", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const moves = yield* OperatorActions
          const settlements = yield* Settlements
          const finding = { state: "settled", ledger: 1_004, feeChargedStroops: 1n, note: "why" } as const
          yield* born(1)
          expect((yield* Effect.flip(moves.resolve(idOf(1), finding)))._tag).toBe("ActionRefused")
          yield* settlements.resolve(idOf(1), outcomeOf("failed"))
          expect((yield* Effect.flip(moves.resolve(idOf(1), finding)))._tag).toBe("ActionRefused")
          expect((yield* Effect.flip(moves.giveUp(idOf(1), "why")))._tag).toBe("ActionRefused")
          expect((yield* Effect.flip(moves.giveUp(idOf(9), "why")))._tag).toBe("ActionRefused")
          yield* born(2)
          yield* settlements.resolve(idOf(2), outcomeOf("unresolved"))
          const before = yield* books
          for (const wrong of [
            { ...finding, ledger: undefined },
            { ...finding, note: " " },
            { ...finding, note: "x".repeat(501) },
            { ...finding, feeChargedStroops: -1n },
            { ...finding, state: "expired" },
            { ...finding, state: "expired", ledger: undefined }
          ] as const)
            expect((yield* Effect.flip(moves.resolve(idOf(2), wrong)))._tag).toBe("ActionRefused")
          expect(yield* books).toEqual(before)
          expect((yield* settlements.byIds([idOf(2)]))[0]?.state).toBe("unresolved")
        })
      )
    }))
}
