// The delivery of successes over the SQL repository: claims with lost answers, processes that died or were only slow,
// and a database that loses its last commits.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { describe } from "vitest"
import { ResponseEnd } from "../../../../kernel/platform/ResponseEnd.ts"
import { CurrentDelivery, Deliveries, RequestDelivery } from "../../../../kernel/settlement/delivery/Deliveries.ts"
import { ThisProcess } from "../../../../kernel/settlement/delivery/ThisProcess.ts"
import { type SettlementRecord, Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import { emptyStore, hashOf, idOf, newSettlement, outcomeOf, storeLayer, takeOne } from "../store.ts"

/** A separate process over the shared database; `claiming` changes the results of its claims. */
const startProcess = (
  claiming: (settlements: Settlements["Service"]) => Settlements["Service"]["claimDelivery"] = (store) =>
    store.claimDelivery
) =>
  Effect.gen(function* () {
    const settlements = yield* Settlements
    const own = Layer.succeed(Settlements, { ...settlements, claimDelivery: claiming(settlements) })
    const services = yield* Layer.build(
      Layer.fresh(Deliveries.layer.pipe(Layer.provideMerge(Layer.fresh(ThisProcess.layer)), Layer.provide(own)))
    )
    const deliveries = Context.get(services, Deliveries)
    const process = Context.get(services, ThisProcess)
    yield* process.renewIfStale
    return { deliveries, process }
  })

const settled = Effect.fnUntraced(function* (number = 1) {
  const settlements = yield* Settlements
  yield* settlements.record(newSettlement(number, Option.getOrThrow(yield* takeOne)))
  yield* settlements.resolve(idOf(number), outcomeOf("settled"))
  return yield* read(number)
})

const read = (number = 1) =>
  Effect.flatMap(Settlements, ({ byIds }) => Effect.map(byIds([idOf(number)]), ([record]) => record!))

/** A request that claims the success; `end` closes it with the answer sent, cut off, or missing. */
const request = Effect.fnUntraced(function* (
  deliveries: Deliveries["Service"],
  record: SettlementRecord,
  key?: string
) {
  const delivery = new RequestDelivery()
  const isGranted = yield* Effect.provideService(deliveries.claim(record, key), CurrentDelivery, delivery)
  const end = (how: "sent" | "cut off" | "not given") =>
    Effect.suspend(() => {
      delivery.isAnswered = how !== "not given"
      return Effect.provideService(deliveries.finish(delivery, {} as never), ResponseEnd, (_, ended) =>
        Effect.sync(() => {
          ended(how === "sent")
          return how === "sent"
        })
      )
    })
  return { isGranted, end }
})

const is = (delivery: SettlementRecord["delivery"], number = 1) =>
  eventually(read(number), (record) => record.delivery === delivery)

const lost = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("cut") }) })

for (const kind of databaseKinds) {
  describe(`deliveries on ${kind}`, () =>
    layer(storeLayer(kind), { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect("a claimed success is given, and confirmed once its answer has left", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const { deliveries } = yield* startProcess()
          const first = yield* request(deliveries, record, "digest")
          expect([first.isGranted, (yield* request(deliveries, record)).isGranted]).toEqual([true, false])
          expect((yield* read()).delivery).toBe("given")
          yield* first.end("sent")
          expect(yield* is("confirmed")).toMatchObject({ deliveredKey: "digest" })
          expect((yield* request(deliveries, record)).isGranted).toBe(false)
        }).pipe(Effect.scoped)
      )

      it.effect.each(["cut off", "not given"] as const)("a success whose answer was %s is undelivered again", (how) =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const { deliveries } = yield* startProcess()
          yield* (yield* request(deliveries, record)).end(how)
          yield* is("undelivered")
          expect((yield* request(deliveries, record)).isGranted).toBe(true)
          expect(deliveries.asOfNow(yield* read()).delivery).toBe("given")
        }).pipe(Effect.scoped)
      )

      it.effect("an answer that has left counts as delivered before its row says so", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const { deliveries } = yield* startProcess()
          const first = yield* request(deliveries, record)
          const given = yield* read()
          expect(deliveries.asOfNow(given).delivery).toBe("given")
          yield* first.end("sent")
          yield* eventually(Effect.sync(() => deliveries.asOfNow(given).delivery === "confirmed"))
          yield* is("confirmed")
        }).pipe(Effect.scoped)
      )

      it.effect("a claim whose answer was lost is repeated, and its caller has its success", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          let asked = 0
          const { deliveries } = yield* startProcess(
            ({ claimDelivery }) =>
              (...claim) =>
                Effect.andThen(claimDelivery(...claim), (granted) =>
                  ++asked === 1 ? Effect.fail(lost) : Effect.succeed(granted)
                )
          )
          expect((yield* request(deliveries, record)).isGranted).toBe(true)
          expect(asked).toBe(2)
        }).pipe(Effect.scoped)
      )

      it.effect("a claim that never had an answer is given back to the next caller", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          let isCut = true
          const { deliveries } = yield* startProcess(
            ({ claimDelivery }) =>
              (...claim) =>
                Effect.andThen(claimDelivery(...claim), (granted) =>
                  isCut ? Effect.fail(lost) : Effect.succeed(granted)
                )
          )
          expect(yield* Effect.flip(request(deliveries, record))).toBe(lost)
          isCut = false
          yield* is("undelivered")
          expect((yield* request(deliveries, record)).isGranted).toBe(true)
        }).pipe(Effect.scoped)
      )

      it.effect("a request that ended before its claim was granted gives the success back", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const { deliveries } = yield* startProcess()
          const delivery = new RequestDelivery()
          yield* deliveries.finish(delivery, {} as never)
          yield* Effect.provideService(deliveries.claim(record, undefined), CurrentDelivery, delivery)
          yield* is("undelivered")
        }).pipe(Effect.scoped)
      )

      it.effect("what a dead process was sending is undelivered, and what it had sent is not", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const [sending, sent] = [yield* settled(1), yield* settled(2)]
          const sql = yield* SqlClient.SqlClient
          const dead = yield* Effect.scoped(
            Effect.gen(function* () {
              const { deliveries, process } = yield* startProcess()
              yield* request(deliveries, sending)
              yield* (yield* request(deliveries, sent)).end("sent")
              yield* is("confirmed", 2)
              return process.id()
            })
          )
          // A graceful stop removed the row; a kill leaves it.
          yield* sql`insert into kernel_processes (id) values (${dead})`
          expect((yield* read(1)).delivery).toBe("given")
          const { deliveries } = yield* startProcess()
          yield* is("undelivered", 1)
          expect((yield* request(deliveries, sending)).isGranted).toBe(true)
          expect((yield* request(deliveries, sent)).isGranted).toBe(false)
        }).pipe(Effect.scoped)
      )

      it.effect("a process whose row was deleted claims under another id", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const sql = yield* SqlClient.SqlClient
          const { deliveries, process } = yield* startProcess()
          const before = process.id()
          yield* sql`delete from kernel_processes`
          expect((yield* request(deliveries, record)).isGranted).toBe(true)
          expect(process.id()).not.toBe(before)
          expect((yield* read()).delivery).toBe("given")
        }).pipe(Effect.scoped)
      )

      it.effect("a delivery that the database lost is noted again, also without its record", () =>
        Effect.gen(function* () {
          yield* emptyStore(3)
          const settlements = yield* Settlements
          const sql = yield* SqlClient.SqlClient
          const kept = yield* settled(1)
          const { attempt: _, channel: __, ...terms } = newSettlement(2, { address: "", fence: 0n, sequence: 0n })
          const known = [kept, { ...kept, authorizationKey: terms.authorizationKey }].map((record) => ({
            ...record,
            key: "digest"
          }))
          yield* settlements.restoreDeliveries(known)
          expect(yield* read(1)).toMatchObject({ delivery: "confirmed", deliveredKey: "digest" })
          yield* settlements.adopt({
            ...terms,
            outerHash: hashOf("b2"),
            envelope: "AAAA",
            channel: "channel-0",
            channelSequence: 107n,
            inclusionStroops: 200n,
            ledger: 1_005,
            closedAtSeconds: 1_767_000_025,
            feeChargedStroops: 12_345n,
            amountTransferred: 10n
          })
          expect(yield* read(2)).toMatchObject({ delivery: "confirmed", deliveredKey: "digest" })
          yield* sql`delete from kernel_lost_deliveries`
        })
      )

      it.effect("a database that is served anew receives what this process has delivered", () =>
        Effect.gen(function* () {
          yield* emptyStore(1)
          const record = yield* settled()
          const sql = yield* SqlClient.SqlClient
          const { deliveries, process } = yield* startProcess()
          yield* (yield* request(deliveries, record, "digest")).end("sent")
          yield* is("confirmed")
          yield* sql`update kernel_settlements set delivered_at = null, delivered_by = null, confirmed_at = null`
          yield* sql`alter function kernel_server_identity() rename to kernel_server_identity_before`
          yield* sql`create function kernel_server_identity() returns text language sql as 'select ''a standby'''`
          yield* process.renew
          yield* is("confirmed")
          yield* sql`drop function kernel_server_identity()`
          yield* sql`alter function kernel_server_identity_before() rename to kernel_server_identity`
        }).pipe(Effect.scoped)
      )
    }))
}
