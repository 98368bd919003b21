import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Latch, Option } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { type ChannelLease, ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { type AdoptedSettlement, type SentNote, Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../../support/databases.ts"
import {
  books,
  byMachineClock,
  claimOf,
  channelName,
  emptyStore,
  endLeases,
  hashOf,
  idOf,
  keyedPrincipal,
  newSettlement,
  outcomeOf,
  storeLayer,
  takeOne
} from "../store.ts"

const lease = Effect.map(takeOne, Option.getOrThrow)
const factsOf = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql<{ type: string }>`select type from kernel_facts order by id`, (rows) => rows.map(({ type }) => type))
)
const channelRow = Effect.fnUntraced(function* (address: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    settlement: string | null
    sequence: bigint | null
    sequence_ledger: bigint
    fence: bigint
  }>`select settlement::text, sequence, sequence_ledger, fence
    from kernel_channels where address = ${address}`
  return row!
})

const nothing = { reserved: 0n, committed: 0n }

const adopted = (number: number, changes: Partial<AdoptedSettlement> = {}): AdoptedSettlement => {
  const { attempt: _, channel: __, ...settlement } = newSettlement(number, { address: "", fence: 0n, sequence: 0n })
  return {
    ...settlement,
    outerHash: hashOf(`b${number}`),
    envelope: "AAAA",
    channel: channelName(0),
    channelSequence: 107n,
    inclusionStroops: 200n,
    ledger: 1_005,
    closedAtSeconds: 1_767_000_025,
    feeChargedStroops: 12_345n,
    amountTransferred: 10n,
    ...changes
  }
}

for (const kind of databaseKinds) {
  describe(`the repository of settlements on ${kind}`, () =>
    layer(
      storeLayer(kind, { pendingSettlementsMax: 8 }),
      byMachineClock
    )((it) => {
      const fresh = <A, E, R>(effect: Effect.Effect<A, E, R>, channels = 3) =>
        Effect.andThen(emptyStore(channels), effect)

      it.effect("records a payment's envelope, channel hold, budget and fact together [S82, S102]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const channel = yield* lease
            expect(yield* settlements.record(newSettlement(1, channel))).toEqual({ _tag: "Recorded" })
            const [open, ...others] = yield* settlements.open(10)
            expect(others).toEqual([])
            expect(open).toMatchObject({
              id: idOf(1),
              state: "prepared",
              channel: channel.address,
              channelSequence: channel.sequence,
              amount: 10n,
              recordedLedger: 1_000
            })
            expect(open!.attempts).toEqual([
              {
                number: 1,
                kind: "payment",
                innerHash: hashOf("a1"),
                outerHash: hashOf("b1"),
                envelope: "AAAA",
                inclusionStroops: 200n,
                recordedLedger: 1_000,
                sentStatus: undefined,
                sentLedger: undefined,
                sentCode: undefined,
                taken: false
              }
            ])
            expect((yield* channelRow(channel.address)).settlement).toBe(idOf(1))
            expect(yield* books).toEqual({
              own: { reserved: 50_000n, committed: 0n },
              all: { reserved: 50_000n, committed: 0n }
            })
            expect(yield* factsOf).toEqual(["settlement.recorded"])
          })
        )
      )

      it.effect("the unique authorization decides between replicas, leaving no losers' rows [S85, S96]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const leases = yield* Effect.forEach(Array.from({ length: 8 }), () => lease)
            const answers = yield* Effect.forEach(
              leases,
              (channel, index) =>
                settlements.record(
                  newSettlement(index, channel, { authorizationKey: "one", identifier: Option.none() })
                ),
              { concurrency: "unbounded" }
            )
            expect(answers.map(({ _tag }) => _tag).sort()).toEqual([
              ...Array.from({ length: 7 }, () => "Known"),
              "Recorded"
            ])
            expect(yield* settlements.openCount).toBe(1)
            expect((yield* books).own.reserved).toBe(50_000n)
            expect((yield* books).all.reserved).toBe(50_000n)
            expect(yield* factsOf).toEqual(["settlement.recorded"])
            const held = yield* Effect.forEach(leases, ({ address }) => channelRow(address))
            expect(held.filter(({ settlement }) => settlement !== null)).toHaveLength(1)
          }),
          8
        )
      )

      it.effect("a duplicate id or transaction is not a known settlement [S85]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const first = newSettlement(1, yield* lease)
            expect(yield* settlements.record(first)).toEqual({ _tag: "Recorded" })
            const other = newSettlement(2, yield* lease)
            const before = yield* books
            for (const changes of [{ id: first.id }, { innerHash: first.innerHash }]) {
              const error = yield* Effect.flip(settlements.record({ ...other, ...changes }))
              expect(error).toMatchObject({ reason: { _tag: "UniqueViolation" } })
            }
            expect(yield* books).toEqual(before)
            expect(yield* settlements.record(other)).toEqual({ _tag: "Recorded" })
          }),
          2
        )
      )

      it.effect("an identifier names one payment per principal and seller [S95, S96]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const record = (number: number, changes: Parameters<typeof newSettlement>[2]) =>
              Effect.flatMap(lease, (channel) => settlements.record(newSettlement(number, channel, changes)))
            const identifier = Option.some("the-same-identifier")
            expect(yield* record(1, { identifier })).toEqual({ _tag: "Recorded" })
            expect(yield* record(2, { identifier })).toEqual({ _tag: "Known" })
            expect(yield* record(3, { identifier, principal: keyedPrincipal("key:b") })).toEqual({
              _tag: "Recorded"
            })
            expect(yield* record(4, { identifier, payTo: "another seller" })).toEqual({ _tag: "Recorded" })
            expect(yield* record(5, { identifier, payer: "another payer" })).toEqual({ _tag: "Recorded" })
            const query = {
              network: "ledger:testnet",
              scheme: "exact",
              authorizationKey: Option.none(),
              principal: "key:a",
              payTo: "seller",
              payer: Option.some("payer"),
              identifier
            } as const
            expect((yield* settlements.find(query)).map(({ id }) => id)).toEqual([idOf(1)])
            expect(yield* settlements.find({ ...query, principal: "key:c" })).toEqual([])
            const anothers = yield* settlements.find({ ...query, payer: Option.some("another payer") })
            expect(anothers.map(({ id }) => id)).toEqual([idOf(5)])
            expect(yield* settlements.find({ ...query, payer: Option.none() })).toEqual([])
            const both = yield* settlements.find({ ...query, authorizationKey: Option.some("authorization-3") })
            expect(both.map(({ id }) => id).sort()).toEqual([idOf(1), idOf(3)])
            // In concurrent requests, each gets the same answer as separately.
            const together = yield* Effect.forEach(
              [
                query,
                { ...query, principal: "key:c" },
                { ...query, payer: Option.some("another payer") },
                { ...query, payer: Option.none() },
                { ...query, payTo: "another seller" },
                { ...query, identifier: Option.none() },
                { ...query, scheme: "another", authorizationKey: Option.some("authorization-3") },
                { ...query, authorizationKey: Option.some("authorization-3") }
              ],
              (one) => settlements.find(one),
              { concurrency: "unbounded" }
            )
            expect(together.map((found) => found.map(({ id }) => id).sort())).toEqual(
              [[1], [], [5], [], [4], [], [1], [1, 3]].map((numbers) => numbers.map(idOf))
            )
            expect(together[0]).toEqual(yield* settlements.find(query))
          }),
          5
        )
      )

      it.effect("refuses a record on a lost lease and rolls it back", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const stale = yield* lease
            yield* endLeases
            const taken = yield* lease
            expect(taken).toEqual({ ...stale, fence: stale.fence + 1n })
            expect(yield* settlements.record(newSettlement(1, stale))).toEqual({ _tag: "FenceLost" })
            expect(yield* settlements.openCount).toBe(0)
            expect(yield* books).toEqual({ own: nothing, all: nothing })
            expect(yield* factsOf).toEqual([])
            // Its holder still has an expired lease that was not taken over.
            yield* endLeases
            expect(yield* settlements.record(newSettlement(2, taken))).toEqual({ _tag: "Recorded" })
            expect(yield* settlements.record(newSettlement(3, taken))).toEqual({ _tag: "FenceLost" })
          }),
          1
        )
      )

      it.effect("only one of concurrent records uses a lease", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const one = yield* lease
            const answers = yield* Effect.forEach(
              [1, 2, 3, 4, 5, 6],
              (number) => settlements.record(newSettlement(number, one)),
              { concurrency: "unbounded" }
            )
            expect(answers.map(({ _tag }) => _tag).toSorted()).toEqual([
              ...Array.from({ length: 5 }, () => "FenceLost"),
              "Recorded"
            ])
            expect(yield* settlements.openCount).toBe(1)
            expect((yield* books).own.reserved).toBe(newSettlement(1, one).budgetStroops)
          }),
          1
        )
      )

      // The embedded database has one session: no other transaction is open while a settlement is recorded.
      it.effect.skipIf(kind === "pglite")("checks a lease after a concurrent change has committed", () =>
        fresh(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const settlements = yield* Settlements
            const stale = yield* lease
            const [isTaken, mayCommit] = [yield* Latch.make(), yield* Latch.make()]
            const other = Effect.andThen(
              sql`update kernel_channels set fence = fence + 1 where address = ${stale.address}`,
              Effect.andThen(isTaken.open, mayCommit.await)
            )
            const taking = yield* Effect.forkChild(sql.withTransaction(other))
            yield* isTaken.await
            const birth = yield* Effect.forkChild(settlements.record(newSettlement(1, stale)))
            const waits = sql`select 1 from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock'`
            let polls = 0
            while ((yield* waits).length === 0) expect((polls += 1), "a birth waits for the lease").toBeLessThan(50_000)
            yield* mayCommit.open
            yield* Fiber.join(taking)
            expect(yield* Fiber.join(birth)).toEqual({ _tag: "FenceLost" })
            expect(yield* settlements.openCount).toBe(0)
            expect(yield* books).toEqual({ own: nothing, all: nothing })
            expect((yield* channelRow(stale.address)).settlement).toBeNull()
          }),
          1
        )
      )

      it.effect("refuses a record beyond the open limit [S85]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            for (let number = 1; number <= 8; number++)
              expect((yield* settlements.record(newSettlement(number, yield* lease)))._tag).toBe("Recorded")
            const last = yield* lease
            expect((yield* settlements.record(newSettlement(9, last)))._tag).toBe("TooManyOpen")
            expect((yield* books).own.reserved).toBe(400_000n)
            yield* settlements.resolve(idOf(1), outcomeOf("settled"))
            expect((yield* settlements.record(newSettlement(9, last)))._tag).toBe("Recorded")
          }),
          9
        )
      )

      /** Number of transactions that recorded settlements. */
      const births = Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.map(
          sql<{ count: number }>`select count(distinct xmin::text)::int as count from kernel_settlements`,
          ([row]) => row!.count
        )
      )

      it.effect("batches one principal's concurrent records in one transaction [S82]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const leases = yield* Effect.forEach(Array.from({ length: 5 }), () => lease)
            const other = keyedPrincipal("key:b")
            const asked = leases.map((channel, at) =>
              newSettlement(at, channel, {
                budgetStroops: 10_000n + BigInt(at),
                resourceUrl: Option.some('https://seller.example/"a\\b"'),
                ...(at === 4 ? { principal: other } : {})
              })
            )
            const answers = yield* Effect.forEach(asked, settlements.record, { concurrency: "unbounded" })
            expect(answers).toEqual(asked.map(() => ({ _tag: "Recorded" })))
            expect(yield* births).toBe(2)
            const open = yield* settlements.open(10)
            expect(open.map(({ id }) => id).sort()).toEqual(asked.map(({ id }) => id))
            for (const [at, { channel, id }] of asked.entries()) {
              expect(open.find((one) => one.id === id)).toMatchObject({
                channel: channel.address,
                channelSequence: channel.sequence,
                attempts: [{ number: 1, innerHash: hashOf(`a${at}`), envelope: "AAAA", inclusionStroops: 200n }]
              })
              expect((yield* channelRow(channel.address)).settlement).toBe(id)
            }
            expect(yield* factsOf).toEqual(asked.map(() => "settlement.recorded"))
            expect((yield* books).all.reserved).toBe(50_010n)
            // Each releases its reservation.
            for (const { id } of asked) yield* settlements.resolve(id, outcomeOf("settled"))
            expect((yield* books).all.reserved).toBe(0n)
          }),
          5
        )
      )

      it.effect("a known or fenced record does not fail its batch [S85]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const leases = yield* Effect.forEach(Array.from({ length: 6 }), () => lease)
            yield* settlements.record(newSettlement(0, leases[0]!))
            const asked = leases.slice(1).map((channel, at) => newSettlement(at + 1, channel))
            asked[1] = { ...asked[1]!, authorizationKey: "authorization-0" }
            asked[3] = { ...asked[3]!, channel: { ...asked[3]!.channel, fence: asked[3]!.channel.fence - 1n } }
            const answers = yield* Effect.forEach(asked, settlements.record, { concurrency: "unbounded" })
            expect(answers.map(({ _tag }) => _tag)).toEqual(["Recorded", "Known", "Recorded", "FenceLost", "Recorded"])
            const held = yield* Effect.forEach(leases, ({ address }) => channelRow(address))
            expect(held.map(({ settlement }) => settlement)).toEqual([
              ...[idOf(0), idOf(1), null, idOf(3), null, idOf(5)]
            ])
            expect((yield* books).all.reserved).toBe(200_000n)
          }),
          6
        )
      )

      it.effect("batched records use their own leases within the open limit [S85]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const leases = yield* Effect.forEach(Array.from({ length: 11 }), () => lease)
            const some = leases.slice(0, 3).map((channel, at) => newSettlement(at, channel, { budgetStroops: 1n }))
            some[1] = { ...some[1]!, channel: { ...leases[1]!, fence: leases[1]!.fence - 1n } }
            const first = yield* Effect.forEach(some, settlements.record, { concurrency: "unbounded" })
            expect(first.map(({ _tag }) => _tag)).toEqual(["Recorded", "FenceLost", "Recorded"])
            const more = leases.slice(3).map((channel, at) => newSettlement(3 + at, channel, { budgetStroops: 1n }))
            const second = yield* Effect.forEach(more.slice(0, 7), settlements.record, { concurrency: "unbounded" })
            expect(second.filter(({ _tag }) => _tag === "Recorded")).toHaveLength(6)
            expect(second.filter(({ _tag }) => _tag === "TooManyOpen")).toHaveLength(1)
            expect(yield* settlements.openCount).toBe(8)
          }),
          11
        )
      )

      it.effect("batched records fill the open limit and the budget [S85]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const leases = yield* Effect.forEach(Array.from({ length: 10 }), () => lease)
            const dear = leases.slice(0, 4).map((at, number) => newSettlement(number, at, { budgetStroops: 400_000n }))
            const first = yield* Effect.forEach(dear, settlements.record, { concurrency: "unbounded" })
            expect(first.map(({ _tag }) => _tag).sort()).toEqual([
              ...["BudgetExceeded", "BudgetExceeded", "Recorded", "Recorded"]
            ])
            expect((yield* books).own.reserved).toBe(800_000n)
            const cheap = leases.slice(4).map((at, number) => newSettlement(4 + number, at, { budgetStroops: 1n }))
            // Six, with two open ones, are as many as allowed.
            const second = yield* Effect.forEach(cheap, settlements.record, { concurrency: "unbounded" })
            expect(second.map(({ _tag }) => _tag)).toEqual(cheap.map(() => "Recorded"))
            expect(yield* births).toBe(3)
            const [refused] = dear.map((one) => ({ ...one, budgetStroops: 1n, id: idOf(99) }))
            expect(yield* settlements.record(refused!)).toMatchObject({ _tag: "TooManyOpen" })
          }),
          10
        )
      )

      it.effect("concurrent resolves end a settlement once, with channel, budget and fact [S103, S271]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const channel = yield* lease
            yield* settlements.record(newSettlement(1, channel))
            // For an attempt that was lost with the last commits of a database, with a reused number.
            const lost = { status: "Pending", code: undefined, ledger: 1_002, outerHash: "lost" } as const
            yield* settlements.noteSent(idOf(1), 1, lost)
            expect((yield* settlements.open(1))[0]!.attempts).toMatchObject([{ sentStatus: undefined, taken: false }])
            yield* settlements.noteSent(idOf(1), 1, { status: "Pending", code: undefined, ledger: 1_001 })
            const outcomes = (["settled", "failed", "expired", "settled"] as const).map((state) => outcomeOf(state))
            const ended = yield* Effect.forEach(outcomes, (outcome) => settlements.resolve(idOf(1), outcome), {
              concurrency: "unbounded"
            })
            expect(ended.filter(({ _tag }) => _tag === "Resolved")).toHaveLength(1)
            const [record] = yield* settlements.byIds([idOf(1)])
            const won = outcomes[ended.findIndex(({ _tag }) => _tag === "Resolved")]!
            expect(record?.state).toBe(won.state)
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: won.feeChargedStroops },
              all: { reserved: 0n, committed: won.feeChargedStroops }
            })
            expect(yield* factsOf).toEqual(["settlement.recorded", `settlement.${won.state}`])
            expect((yield* channelRow(channel.address)).settlement).toBeNull()
            expect(yield* settlements.addAttempt(idOf(1), newSettlement(1, channel).attempt, 1)).toBeUndefined()
          })
        )
      )

      it.effect("sets the channel's sequence by the outcome: used, unused, or unknown", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const channel = yield* lease
            yield* settlements.record(newSettlement(1, channel))
            yield* settlements.resolve(idOf(1), outcomeOf("expired"))
            expect(yield* channelRow(channel.address)).toMatchObject({
              settlement: null,
              sequence: 100n,
              sequence_ledger: 1_003n
            })
            yield* settlements.record(newSettlement(2, yield* lease))
            yield* settlements.resolve(idOf(2), outcomeOf("failed"))
            expect(yield* channelRow(channel.address)).toMatchObject({ settlement: null, sequence: 101n })
            yield* settlements.record(newSettlement(3, yield* lease))
            yield* settlements.resolve(
              idOf(3),
              outcomeOf("failed", { channel: { sequenceUsed: undefined, ledger: 1_009 } })
            )
            expect(yield* channelRow(channel.address)).toMatchObject({
              settlement: null,
              sequence: null,
              sequence_ledger: 1_009n
            })
            const store = yield* ChannelStore
            expect(Option.isNone(yield* takeOne)).toBe(true)
            yield* store.learn(channel.address, 300n, 1_008)
            expect(Option.isNone(yield* takeOne)).toBe(true)
            yield* store.learn(channel.address, 300n, 1_009)
            expect(Option.getOrThrow(yield* takeOne).sequence).toBe(301n)
          }),
          1
        )
      )

      it.effect("delivers a payment's success to one caller, after it settled [S96]", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            yield* settlements.record(newSettlement(1, yield* lease))
            expect(yield* settlements.claimDelivery(claimOf(1), "key:a")).toBe(false)
            yield* settlements.resolve(idOf(1), outcomeOf("settled"))
            expect(yield* settlements.claimDelivery(claimOf(1), "key:b")).toBe(false)
            const claims = yield* Effect.forEach(
              Array.from({ length: 10 }),
              () => settlements.claimDelivery(claimOf(1), "key:a"),
              {
                concurrency: "unbounded"
              }
            )
            expect(claims.filter(Boolean)).toHaveLength(1)
            yield* settlements.record(newSettlement(2, yield* lease))
            yield* settlements.resolve(idOf(2), outcomeOf("failed"))
            expect(yield* settlements.claimDelivery(claimOf(2), "key:a")).toBe(false)
          })
        )
      )

      it.effect("numbers attempts and stores each answer; a sent settlement is submitted", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const settlement = newSettlement(1, yield* lease)
            yield* settlements.record(settlement)
            expect(
              yield* settlements.addAttempt(
                idOf(1),
                { ...settlement.attempt, outerHash: hashOf("c1"), inclusionStroops: 2_000n, recordedLedger: 1_002 },
                1
              )
            ).toBe(2)
            yield* settlements.noteSent(idOf(1), 2, { status: "TryAgainLater", code: undefined, ledger: 1_003 })
            const [open] = yield* settlements.open(10)
            expect(open).toMatchObject({ state: "submitted" })
            expect(
              open!.attempts.map(({ number, outerHash, sentLedger, sentStatus }) => ({
                number,
                outerHash,
                sentLedger,
                sentStatus
              }))
            ).toEqual([
              { number: 1, outerHash: hashOf("b1"), sentLedger: undefined, sentStatus: undefined },
              { number: 2, outerHash: hashOf("c1"), sentLedger: 1_003, sentStatus: "TryAgainLater" }
            ])
            for (const hash of [hashOf("a1"), hashOf("b1"), hashOf("c1")])
              expect(yield* settlements.lookup("key:a", { hash })).toHaveLength(1)
            expect(yield* settlements.lookup("key:a", { identifier: "identifier-1" })).toHaveLength(1)
            expect(yield* settlements.lookup("key:b", { hash: hashOf("a1") })).toEqual([])
          })
        )
      )

      it.effect("keeps an attempt's accepted status and a later refusal's code", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            yield* emptyStore(4)
            yield* settlements.record(newSettlement(1, yield* lease))
            const sent = (status: SentNote["status"], code?: string, number = 1) =>
              Effect.andThen(
                settlements.noteSent(idOf(number), 1, { status, code, ledger: 1_001 }),
                Effect.map(settlements.open(9), (all) => all.find(({ id }) => id === idOf(number))!.attempts[0])
              )
            expect(yield* sent("Error", "txBadAuth")).toMatchObject({ taken: false, sentCode: "txBadAuth" })
            expect(yield* sent("Pending")).toMatchObject({ taken: true, sentCode: undefined })
            expect(yield* sent("Error", "txBadSeq")).toMatchObject({
              taken: true,
              sentStatus: "Error",
              sentCode: "txBadSeq"
            })
            // Without an answer it may have been taken; asked to come again, it was not.
            const statuses = ["TryAgainLater", "Duplicate", "Lost"] as const
            const taken: Array<boolean> = []
            for (const [at, status] of statuses.entries()) {
              yield* settlements.record(newSettlement(at + 2, yield* lease))
              taken.push((yield* sent(status, undefined, at + 2))!.taken)
            }
            expect(taken).toEqual([false, true, true])
          })
        )
      )

      it.effect("batches concurrent notes and deliveries with individual results", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const sql = yield* SqlClient.SqlClient
            const numbers = [1, 2, 3, 4]
            yield* emptyStore(numbers.length)
            for (const number of numbers) yield* settlements.record(newSettlement(number, yield* lease))
            const concurrently = { concurrency: "unbounded" } as const
            const note = (number: number) =>
              settlements.noteSent(
                idOf(number),
                1,
                number === 3
                  ? { status: "Error", code: "txBadAuth", ledger: 1_003 }
                  : { status: "Pending", code: undefined, ledger: 1_000 + number }
              )
            yield* Effect.forEach(numbers, note, concurrently)
            const transactions = () => sql<{ many: number }>`select count(distinct xmin::text)::int as many
              from kernel_settlements`
            expect(yield* transactions()).toEqual([{ many: 1 }])
            const noted = (yield* settlements.open(10)).map(({ attempts, id, state }) => ({
              id,
              state,
              sent: attempts.map(({ sentCode, sentLedger, sentStatus, taken }) => [
                sentStatus,
                sentCode,
                sentLedger,
                taken
              ])
            }))
            expect(noted).toEqual(
              numbers.map((number) => ({
                id: idOf(number),
                state: "submitted",
                sent: [
                  number === 3 ? ["Error", "txBadAuth", 1_003, false] : ["Pending", undefined, 1_000 + number, true]
                ]
              }))
            )
            // Two answers to one attempt: an accepted submission stays accepted, whichever answer is recorded last.
            const answers = ["Pending", "Error"] as const
            yield* Effect.forEach(
              answers,
              (status) => settlements.noteSent(idOf(3), 1, { status, code: undefined, ledger: 1_004 }),
              concurrently
            )
            const [third] = (yield* settlements.open(10)).filter(({ id }) => id === idOf(3))
            expect(third!.attempts).toMatchObject([{ taken: true, sentStatus: "Error" }])

            for (const number of [1, 2, 4]) yield* settlements.resolve(idOf(number), outcomeOf("settled"))
            const claims = [1, 1, 2, 3, 4].map((number) => ({ number, principal: number === 4 ? "key:b" : "key:a" }))
            expect(
              yield* Effect.forEach(
                claims,
                ({ number, principal }) => settlements.claimDelivery(claimOf(number), principal),
                concurrently
              )
            ).toEqual([true, false, true, false, false])
          })
        )
      )

      it.effect("batches concurrent resolves in one transaction with individual outcomes [S103, S271]", () =>
        fresh(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const settlements = yield* Settlements
            // Of three shards of the total, and two principals.
            const ids = Array.from({ length: 6 }, (_, at) => idOf(at + 1).replace(/^0{8}/, `0000000${at % 3}`))
            const principals = ids.map((_, at) => keyedPrincipal(at < 4 ? "key:a" : "key:b"))
            for (const [at, id] of ids.entries()) {
              const born = newSettlement(at + 1, yield* lease, { id, principal: principals[at]! })
              expect((yield* settlements.record(born))._tag).toBe("Recorded")
            }
            const outcomes = [
              outcomeOf("settled", { feeChargedStroops: 1n }),
              outcomeOf("failed", { feeChargedStroops: 20n }),
              outcomeOf("expired"),
              outcomeOf("failed", { feeChargedStroops: 300n, feeUnknown: true, channel: undefined }),
              outcomeOf("settled", { feeChargedStroops: 4_000n, amountTransferred: 10n }),
              outcomeOf("unresolved", {
                feeChargedStroops: 50_000n,
                channel: { sequenceUsed: undefined, ledger: 1_009 }
              })
            ]
            const answers = yield* Effect.forEach(outcomes, (outcome, at) => settlements.resolve(ids[at]!, outcome), {
              concurrency: "unbounded"
            })
            expect(answers.map(({ _tag }) => _tag)).toEqual(ids.map(() => "Resolved"))
            expect(
              answers.map((answer) => (answer._tag === "Resolved" ? [answer.record.id, answer.record.state] : []))
            ).toEqual(outcomes.map(({ state }, at) => [ids[at], state]))
            expect(yield* sql`select count(distinct xmin::text)::int as many from kernel_settlements`).toEqual([
              { many: 1 }
            ])
            expect(
              yield* sql`select principal, reserved_stroops as reserved, committed_stroops as committed
                from kernel_sponsor_budget order by principal`
            ).toEqual([
              { principal: "key:a", reserved: 0n, committed: 50_321n },
              { principal: "key:b", reserved: 0n, committed: 54_000n }
            ])
            expect((yield* books).all).toEqual({ reserved: 0n, committed: 104_321n })
            expect(
              yield* Effect.forEach(ids, (_, at) =>
                Effect.map(channelRow(channelName(at)), ({ sequence, settlement }) => [sequence, settlement])
              )
            ).toEqual([
              [101n, null],
              [101n, null],
              [100n, null],
              [100n, ids[3]],
              [101n, null],
              [null, null]
            ])
            const reported = yield* sql`select subject, type, principal, data->>'feeChargedStroops' as fee,
              data->>'moved' as moved from kernel_facts where type <> 'settlement.recorded' order by subject`
            const inOrder = ids.map((id, at) => ({ id, at })).toSorted((a, b) => (a.id < b.id ? -1 : 1))
            expect(reported).toEqual(
              inOrder.map(({ at, id }) => ({
                subject: id,
                type: `settlement.${outcomes[at]!.state}`,
                principal: principals[at]!.owner,
                fee: ["1", "20", "0", "50300", "4000", "50000"][at],
                moved: outcomes[at]!.amountTransferred?.toString() ?? null
              }))
            )
          }),
          6
        )
      )

      it.effect("an invalid or ended resolve does not fail its batch", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const numbers = [1, 2, 3, 4, 5]
            for (const number of numbers) yield* settlements.record(newSettlement(number, yield* lease))
            const paid = outcomeOf("settled", { transaction: hashOf("a1") })
            yield* settlements.resolve(idOf(1), paid)
            const ends = [
              { number: 2, outcome: paid },
              // No column holds so much.
              { number: 3, outcome: outcomeOf("settled", { feeChargedStroops: 10n ** 30n }) },
              { number: 4, outcome: outcomeOf("settled", { transaction: hashOf("a4") }) },
              { number: 5, outcome: outcomeOf("settled", { transaction: hashOf("a4") }) }
            ]
            const answers = yield* Effect.forEach(
              ends,
              ({ number, outcome }) => Effect.exit(settlements.resolve(idOf(number), outcome)),
              { concurrency: "unbounded" }
            )
            expect(answers.map((exit) => (exit._tag === "Success" ? exit.value._tag : "Failure"))).toEqual([
              "TransactionTaken",
              "Failure",
              "Resolved",
              "TransactionTaken"
            ])
            expect((yield* settlements.open(9)).map(({ id }) => id)).toEqual([2, 3, 5].map(idOf))
            expect((yield* books).own).toEqual({ reserved: 150_000n, committed: 24_690n })
            expect(yield* settlements.resolve(idOf(3), outcomeOf("settled"))).toMatchObject({ _tag: "Resolved" })
          }),
          5
        )
      )

      it.effect("changes nothing for a caller that missed the newest attempt", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const { attempt } = newSettlement(1, yield* lease)
            const again = (number: number) => ({ ...attempt, outerHash: hashOf(`c${number}`) })
            yield* settlements.record(newSettlement(1, yield* lease))
            const stale = (yield* settlements.open(1))[0]!.attemptCount
            expect(yield* settlements.addAttempt(idOf(1), again(2), stale)).toBe(2)
            expect(yield* settlements.addAttempt(idOf(1), again(3), stale)).toBeUndefined()
            expect(yield* settlements.resolve(idOf(1), outcomeOf("expired"), stale)).toEqual({ _tag: "Changed" })
            const [open] = yield* settlements.open(1)
            expect(open!.attempts).toHaveLength(2)
            expect(yield* settlements.resolve(idOf(1), outcomeOf("expired"), open!.attemptCount)).toMatchObject({
              _tag: "Resolved"
            })
          })
        )
      )

      it.effect("a ledger transaction ends one settlement only", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            for (const number of [1, 2]) yield* settlements.record(newSettlement(number, yield* lease))
            const outcome = outcomeOf("settled", { transaction: hashOf("a1") })
            expect(yield* settlements.resolve(idOf(1), outcome)).toMatchObject({ _tag: "Resolved" })
            const before = yield* books
            expect(yield* settlements.resolve(idOf(2), outcome)).toEqual({ _tag: "TransactionTaken" })
            expect(yield* books).toEqual(before)
            expect((yield* settlements.open(5)).map(({ id }) => id)).toEqual([idOf(2)])
            expect(yield* settlements.adopt(adopted(3, { innerHash: hashOf("a1") }))).toBe("TransactionTaken")
          })
        )
      )

      it.effect("returns the hash of the payment's transaction, none if nothing landed", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const notified = (number: number, outcome: Parameters<typeof settlements.resolve>[1]) =>
              Effect.gen(function* () {
                yield* settlements.record(newSettlement(number, yield* lease))
                yield* settlements.resolve(idOf(number), outcome)
                return (yield* settlements.byIds([idOf(number)]))[0]!.transaction
              })
            expect(yield* notified(1, outcomeOf("settled", { transaction: hashOf("b9") }))).toEqual(
              Option.some(hashOf("b9"))
            )
            expect(yield* notified(2, outcomeOf("failed", { transaction: hashOf("c9") }))).toEqual(
              Option.some(hashOf("a2"))
            )
            expect(yield* notified(3, outcomeOf("failed", { transaction: undefined }))).toEqual(Option.none())
            expect(yield* notified(4, outcomeOf("expired"))).toEqual(Option.some(hashOf("a4")))
            const found = yield* settlements.lookup("key:a", { hash: hashOf("b9") })
            expect(found.map(({ id }) => id)).toEqual([idOf(1)])
          }),
          5
        )
      )

      it.effect("charges the reservation of a payment that may have landed", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            yield* settlements.record(newSettlement(1, yield* lease))
            yield* settlements.resolve(idOf(1), outcomeOf("failed", { feeChargedStroops: 300n, feeUnknown: true }))
            const charged = { reserved: 0n, committed: 50_300n }
            expect(yield* books).toEqual({ own: charged, all: charged })
            expect((yield* settlements.byIds([idOf(1)]))[0]!.feeChargedStroops).toEqual(Option.some(50_300n))
          })
        )
      )

      it.effect("a channel freed early is fenced and untouched by the later outcome", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            const first = yield* lease
            yield* settlements.record(newSettlement(1, first))
            expect((yield* settlements.open(1))[0]!.channelHeld).toBe(true)
            expect(yield* settlements.freeChannel(idOf(1), 1_005, 1)).toBe(true)
            expect(yield* settlements.freeChannel(idOf(1), 1_005, 1)).toBe(false)
            expect((yield* settlements.open(1))[0]!.channelHeld).toBe(false)
            expect(yield* channelRow(first.address)).toMatchObject({ settlement: null, sequence: null })
            const store = yield* ChannelStore
            yield* store.learn(first.address, 300n, 1_005)
            const second = yield* lease
            expect(second).toEqual({ address: first.address, fence: first.fence + 2n, sequence: 301n })
            yield* settlements.record(newSettlement(2, second))
            const before = yield* channelRow(first.address)
            expect(yield* settlements.resolve(idOf(1), outcomeOf("settled"))).toMatchObject({ _tag: "Resolved" })
            expect(yield* channelRow(first.address)).toEqual(before)
          }),
          1
        )
      )

      it.effect("adopts an unrecorded payment as settled, charged and undelivered", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            expect(yield* settlements.adopt(adopted(1))).toBe("Adopted")
            const [record] = yield* settlements.byIds([idOf(1)])
            expect(record).toMatchObject({
              state: "settled",
              delivery: "undelivered",
              innerHash: hashOf("a1"),
              ledger: Option.some(1_005),
              amountTransferred: Option.some(10n),
              feeChargedStroops: Option.some(12_345n)
            })
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: 12_345n },
              all: { reserved: 0n, committed: 12_345n }
            })
            expect(yield* factsOf).toEqual(["settlement.recorded", "settlement.settled"])
            expect(yield* channelRow(channelName(0))).toMatchObject({ sequence: null, sequence_ledger: 1_005n })
            // A channel that was used since has its number.
            expect(yield* settlements.adopt(adopted(2, { channel: channelName(1), channelSequence: 100n }))).toBe(
              "Adopted"
            )
            expect((yield* channelRow(channelName(1))).sequence).toBe(100n)
          })
        )
      )

      it.effect("rebuilds a settlement on another channel once, keeping its former hash", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const sql = yield* SqlClient.SqlClient
          const settlements = yield* Settlements
          const store = yield* ChannelStore
          yield* settlements.record(newSettlement(1, Option.getOrThrow(yield* takeOne)))
          const attempt = { ...newSettlement(9, { address: "", fence: 0n, sequence: 0n }).attempt }
          const lease = Option.getOrThrow(yield* takeOne)
          const rebuild = (held: ChannelLease, known = 1) => settlements.rebuild(idOf(1), held, attempt, known)
          // It does nothing while the settlement holds its own channel, with a lost lease, or after a change.
          expect(yield* rebuild(lease)).toBeUndefined()
          yield* settlements.freeChannel(idOf(1), 1_001, 1)
          expect(yield* rebuild({ ...lease, fence: lease.fence - 1n })).toBeUndefined()
          expect(yield* rebuild(lease, 2)).toBeUndefined()
          expect(yield* rebuild(lease)).toBe(2)
          expect(yield* rebuild(lease, 2)).toBeUndefined()
          // A replica that read it before decides on the former channel, not on this one.
          expect(yield* settlements.freeChannel(idOf(1), 1_001, 1)).toBe(false)
          const [open] = yield* settlements.open(1)
          expect(open).toMatchObject({
            innerHash: attempt.innerHash,
            channel: lease.address,
            channelSequence: lease.sequence,
            channelHeld: true,
            attemptCount: 2
          })
          expect(open!.attempts.map(({ number }) => number)).toEqual([2])
          const { principal } = open!
          for (const hash of [attempt.innerHash, hashOf("a1")])
            expect((yield* settlements.lookup(principal, { hash })).map(({ id }) => id)).toEqual([idOf(1)])
          expect(yield* settlements.resolve(idOf(1), outcomeOf("settled"), 2)).toMatchObject({ _tag: "Resolved" })
          const held = yield* sql`select 1 from kernel_channels where settlement is not null`
          expect(held).toEqual([])
          // Distrusted numbers are read before they are leased, even if the channel is held in between.
          yield* settlements.record(newSettlement(2, Option.getOrThrow(yield* takeOne)))
          yield* store.distrust(1_010)
          expect(yield* store.take(3)).toEqual([])
          yield* settlements.resolve(idOf(2), outcomeOf("settled"))
          expect(yield* store.take(3)).toEqual([])
          yield* Effect.forEach([0, 1, 2], (number) => store.learn(channelName(number), 500n, 2_000))
          expect((yield* store.take(3)).map(({ sequence }) => sequence)).toEqual([501n, 501n, 501n])
          // Once for a ledger: a node that is behind calls good numbers bad.
          yield* store.distrust(1_010)
          expect(yield* sql`select 1 from kernel_channels where reread`).toEqual([])
          // A network that was reset begins again below.
          yield* store.distrust(3)
          expect(yield* sql`select 1 from kernel_channels where reread`).toHaveLength(3)
          yield* endLeases
          yield* Effect.forEach([0, 1, 2], (number) => store.learn(channelName(number), 500n, 3_000))
          // A failed write is not done.
          yield* sql`alter table kernel_channels add constraint refuses check (not reread)`
          expect((yield* Effect.exit(store.distrust(4)))._tag).toBe("Failure")
          yield* sql`alter table kernel_channels drop constraint refuses`
          yield* store.distrust(4)
          expect(yield* sql`select 1 from kernel_channels where reread`).toHaveLength(3)
        })
      )

      it.effect("leases nothing on a newly promoted database, and begins an epoch", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const sql = yield* SqlClient.SqlClient
          const store = yield* ChannelStore
          let woken = 0
          yield* store.onDistrusted(Effect.sync(() => void (woken += 1)))
          yield* sql`update kernel_journal_epochs set server = 'the one before'`
          expect(yield* store.take(1)).toEqual([])
          expect([yield* sql`select reread from kernel_channels`, woken]).toEqual([[{ reread: true }], 1])
          yield* store.learn(channelName(0), 700n, 2_000)
          expect((yield* store.take(1)).map(({ sequence }) => sequence)).toEqual([701n])
        }).pipe(Effect.scoped)
      )

      it.effect("lookups never return another network's or scheme's settlements", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const settlements = yield* Settlements
          yield* settlements.record(newSettlement(1, Option.getOrThrow(yield* takeOne)))
          const [born] = yield* settlements.byIds([idOf(1)])
          const own = {
            network: born!.network,
            scheme: born!.scheme,
            authorizationKey: Option.some(born!.authorizationKey),
            principal: born!.principal,
            payTo: born!.payTo,
            payer: Option.some(born!.payer),
            identifier: Option.none<string>()
          }
          const queries = [own, { ...own, network: "ledger:pubnet" as const }, { ...own, scheme: "another" }]
          const alone = yield* Effect.forEach(queries, settlements.find)
          const together = yield* Effect.forEach(queries, settlements.find, { concurrency: "unbounded" })
          for (const found of [alone, together]) expect(found.map(({ length }) => length)).toEqual([1, 0, 0])
        })
      )

      it.effect("does not adopt a payment known by authorization, hash or identifier", () =>
        fresh(
          Effect.gen(function* () {
            const settlements = yield* Settlements
            yield* settlements.record(newSettlement(1, yield* lease))
            const before = yield* books
            expect(yield* settlements.adopt(adopted(2, { authorizationKey: "authorization-1" }))).toBe("Known")
            expect(yield* settlements.adopt(adopted(3, { innerHash: hashOf("a1") }))).toBe("TransactionTaken")
            expect(yield* settlements.adopt(adopted(4, { identifier: Option.some("identifier-1") }))).toBe("Known")
            expect(yield* books).toEqual(before)
            expect(yield* factsOf).toEqual(["settlement.recorded"])
          })
        )
      )
    }))
}
