// Webhooks of outcomes with an unreadable stored receipt, because its table is broken or locked: the batch is delivered
// in time, without those receipts, and later messages contain them once the table can be read again.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { describe } from "vitest"
import { type DatabaseKind, databaseKinds, lasting } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { startReceiver } from "../webhooks/receiver.ts"
import { environment, paying, quick, receivers, secret } from "../webhooks/shop.ts"
import { receiptSecrets } from "./secrets.ts"

/** Each payment has a recorded and a settled event. */
const payments = 6
/**
 * The first late read waits for a second, and the rest of its batch does not wait. Separate waits, or the server's
 * timeout, would take longer than this.
 */
const millisMax = 4_000

/** A replica that did not settle the payments, which are an hour old, and its deliveries of them. */
const startWorld = Effect.fnUntraced(function* (kind: DatabaseKind) {
  const receiver = yield* startReceiver({ secret })
  const shared = { database: yield* lasting(kind), environment: { ...environment, ...receiptSecrets } }
  const signing = ["receipts.host=pay.example", ...quick]
  const first = yield* startFacilitator({
    ...shared,
    channels: 2,
    closeMillis: 500,
    set: ["plugins=[ledger-local,x402-exact,receipts]", ...signing]
  })
  const pay = yield* paying(first)
  const paid = yield* Effect.forEach(Array.from({ length: payments }), () => pay(first), { concurrency: 2 })
  for (const { json } of paid) expect(json).toMatchObject({ success: true })
  const { sql } = first
  yield* eventually(sql`select 1 from receipts_receipts`, ({ length }) => length === payments)
  yield* sql`update kernel_settlements set recorded_at = recorded_at - interval '1 hour',
    resolved_at = resolved_at - interval '1 hour'`
  const { publishedBy } = yield* startFacilitator({
    ...shared,
    ledgerUrl: first.ledgerUrl,
    channels: 2,
    set: [
      "plugins=[x402-exact,webhooks,receipts]",
      ...signing,
      receivers({ key: "shop", url: receiver.url, secret_env: "SHOP_HOOK" })
    ]
  })
  yield* eventually(sql`select 1 from kernel_fact_cursors where consumer = 'webhooks'`, ({ length }) => length === 1)
  /** The receipts in the messages of all settled payments, which are queued and sent again. */
  const redeliver = Effect.gen(function* () {
    const before = (yield* receiver.until(() => true)).length
    yield* sql`delete from webhooks_deliveries`
    const startedAt = performance.now()
    yield* publishedBy(sql`update kernel_fact_cursors set position = 0 where consumer = 'webhooks'`)
    const messages = yield* receiver.until(({ length }) => length >= before + 2 * payments)
    const settled = messages.slice(before).filter(({ type }) => type === "settlement.settled")
    return {
      receipts: settled.map(({ data }) => data.extensions?.["tollkeeper-receipt"] !== undefined),
      millis: performance.now() - startedAt
    }
  })
  return { sql, redeliver }
})

const none = Array.from({ length: payments }, () => false)
const all = none.map(() => true)

describe.each(databaseKinds)("stored receipts that cannot be read on %s", (kind) => {
  it.live(
    "do not keep a batch of webhooks while their table is broken",
    () =>
      Effect.gen(function* () {
        const { redeliver, sql } = yield* startWorld(kind)
        yield* sql`alter table receipts_receipts rename to receipts_broken`
        expect((yield* redeliver).receipts).toEqual(none)
        yield* sql`alter table receipts_broken rename to receipts_receipts`
        expect((yield* redeliver).receipts).toEqual(all)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  // An embedded database has only one session, which waits for no lock.
  it.live.skipIf(kind === "pglite")(
    "hold a batch of webhooks up by about a second while their table is locked",
    () =>
      Effect.gen(function* () {
        const { redeliver, sql } = yield* startWorld(kind)
        const [locked, unlock] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        yield* Effect.addFinalizer(() => Deferred.succeed(unlock, undefined))
        const holder = yield* Effect.forkChild(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`lock table receipts_receipts in access exclusive mode`
              yield* Deferred.succeed(locked, undefined)
              yield* Deferred.await(unlock)
            })
          )
        )
        yield* Deferred.await(locked)
        const late = yield* redeliver
        expect(late.receipts).toEqual(none)
        expect(late.millis).toBeLessThan(millisMax)
        yield* Deferred.succeed(unlock, undefined)
        yield* Fiber.join(holder)
        yield* eventually(redeliver, ({ receipts }) => receipts.every((isThere) => isThere))
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
