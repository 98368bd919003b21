// A buyer that sends the same payment again, through a seller that verifies before it settles, on each database of the
// run: while the success was not delivered, verify is valid for its owner and settle delivers it once; afterwards
// verify is refused with the hash.
import { expect, it, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Latch, Layer } from "effect"
import { Base64 } from "effect/encoding"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import type { Step } from "../../../kernel/settlement/CrashPoints.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { bumpedIn, conditionsOf, decodeEnvelope, hashSignerOf } from "../../../kernel/stellar/Envelope.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

class Running extends Context.Service<Running, Facilitator>()("test/Running") {}

const price = 10_000n
const shop = { authorization: "Bearer the-secret-of-the-shop" }
const other = { authorization: "Bearer the-secret-of-a-stranger" }
const keys = { FACILITATOR_API_KEYS: "shop:the-secret-of-the-shop,other:the-secret-of-a-stranger" }
const identified = (id: string) => ({ extensions: { "payment-identifier": { info: { required: false, id } } } })
const used = "settle_ledger_already_settled"

/** Delays the outcomes of payments while it is closed. */
const makeGate = () => {
  const latch = Latch.makeUnsafe(true)
  return {
    atStep: (step: Step) => (step === "beforeResolve" ? latch.await : Effect.void),
    open: latch.open,
    close: latch.close
  }
}
type Gate = ReturnType<typeof makeGate>

const makePay = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = (extra: object = {}) => facilitator.payment({ payer, payTo, amount: price, ...extra })
  return { pay, payTo, payer: payer.publicKey() }
})

const isSettled = (facilitator: Facilitator, transaction: string) =>
  eventually(
    facilitator.sql<{ state: string }>`select state from kernel_settlements where inner_hash = ${transaction}`,
    ([row]) => row?.state === "settled"
  )

/** Settles a payment whose caller receives pending, and returns its hash once the payment has settled. */
const settleUndelivered = Effect.fnUntraced(function* (facilitator: Facilitator, gate: Gate, body: unknown) {
  yield* gate.close
  const pending = yield* facilitator.settle(body, shop)
  expect(pending.json.errorReason).toBe("settle_ledger_transaction_status_unknown")
  yield* gate.open
  yield* isSettled(facilitator, pending.json.transaction)
  return pending.json.transaction as string
})

describe.each(databaseKinds)("a payment sent again on %s", (database) => {
  const gate = makeGate()
  const running = startFacilitator({
    database,
    closeMillis: 300,
    set: ["limits.settle_timeout_ms=3000"],
    atStep: gate.atStep,
    environment: keys
  })
  layer(Layer.effect(Running, running), { timeout: 240_000, excludeTestServices: true })((it) => {
    it.effect.each([undefined, "sent-again-by-its-buyer"])(
      "a resent payment is valid until its success is delivered (identifier %s) [S91, S93]",
      (identifier) =>
        Effect.gen(function* () {
          const facilitator = yield* Running
          const { pay, payTo, payer } = yield* makePay(facilitator)
          const { body } = yield* pay(identifier === undefined ? {} : identified(identifier))
          const transaction = yield* settleUndelivered(facilitator, gate, body)
          for (let times = 0; times < 2; times++)
            expect((yield* facilitator.verify(body, shop)).json).toEqual({ isValid: true, payer })
          expect((yield* facilitator.verify(body, other)).json).toMatchObject({ isValid: false, invalidReason: used })
          const again = yield* Effect.forEach(
            Array.from({ length: 5 }),
            () => Effect.andThen(facilitator.verify(body, shop), facilitator.settle(body, shop)),
            { concurrency: "unbounded" }
          )
          const successes = again.filter(({ json }) => json.success)
          expect(successes.length).toBe(1)
          expect(successes[0]?.json.transaction).toBe(transaction)
          expect((yield* facilitator.verify(body, shop)).json).toMatchObject({
            isValid: false,
            invalidReason: used,
            transaction,
            payer
          })
          expect(yield* facilitator.balance(payTo)).toBe(price)
        })
    )

    it.effect("a resent payment under other terms is a conflict naming the transaction [S268]", () =>
      Effect.gen(function* () {
        const facilitator = yield* Running
        const { pay } = yield* makePay(facilitator)
        const { body } = yield* pay()
        const transaction = yield* settleUndelivered(facilitator, gate, body)
        const changed: any = structuredClone(body)
        changed.paymentPayload.resource = { url: "https://elsewhere.example/" }
        expect((yield* facilitator.verify(changed, shop)).json).toMatchObject({
          isValid: false,
          invalidReason: "payment_identifier_conflict",
          transaction
        })
        const required: any = structuredClone(body)
        required.paymentRequirements.amount = "1"
        expect((yield* facilitator.verify(required, shop)).json.isValid).toBe(false)
        expect((yield* facilitator.verify(body, shop)).json.isValid).toBe(true)
      })
    )

    it.effect("a resent payment is valid between landing and its settled record [S91]", () =>
      Effect.gen(function* () {
        const facilitator = yield* Running
        const { pay, payTo } = yield* makePay(facilitator)
        const { body } = yield* pay()
        yield* gate.close
        const pending = yield* facilitator.settle(body, shop)
        yield* eventually(facilitator.balance(payTo), (balance) => balance === price)
        expect((yield* facilitator.verify(body, shop)).json.isValid).toBe(true)
        expect((yield* facilitator.verify(body, other)).json).toMatchObject({ isValid: false, invalidReason: used })
        yield* gate.open
        const own = yield* facilitator.settle(body, shop)
        expect(own.json).toMatchObject({ success: true, transaction: pending.json.transaction })
      })
    )

    it.effect("a resent payment is valid although its authorization has expired [S91]", () =>
      Effect.gen(function* () {
        const facilitator = yield* Running
        const { pay } = yield* makePay(facilitator)
        const { body, expirationLedger } = yield* pay({ maxTimeoutSeconds: 60, secondsPerLedger: 4 })
        const transaction = yield* settleUndelivered(facilitator, gate, body)
        yield* eventually(
          Effect.sync(() => facilitator.ledger.ledger.latest.sequence),
          (sequence) => sequence > expirationLedger
        )
        expect((yield* facilitator.verify(body, other)).json).toMatchObject({ isValid: false, invalidReason: used })
        expect((yield* facilitator.verify(body, shop)).json.isValid).toBe(true)
        expect((yield* facilitator.settle(body, shop)).json).toMatchObject({ success: true, transaction })
        expect((yield* facilitator.verify(body, shop)).json).toMatchObject({ invalidReason: used, transaction })
      })
    )

    it.effect("a resent unresolved payment is not valid [S91]", () =>
      Effect.gen(function* () {
        const facilitator = yield* Running
        const { pay } = yield* makePay(facilitator)
        const { body } = yield* pay()
        const settled = yield* facilitator.settle(body, shop)
        const { transaction } = settled.json
        yield* isSettled(facilitator, transaction)
        yield* facilitator.sql`update kernel_settlements set state = 'unresolved', delivered_at = null
          where inner_hash = ${transaction}`
        expect((yield* facilitator.verify(body, shop)).json).toMatchObject({
          isValid: false,
          invalidReason: "settle_ledger_transaction_status_unknown",
          transaction
        })
      })
    )
  })

  it.live(
    "a resent payment is valid on another replica [S91]",
    () =>
      Effect.gen(function* () {
        const source = yield* Layer.build(sourceLayer(database))
        const opened = yield* Context.get(source, DatabaseSource).open
        const ownGate = makeGate()
        const shared = {
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
          environment: { SPONSOR_SECRET: Keypair.random().secret(), ...keys },
          set: ["limits.settle_timeout_ms=3000"]
        }
        const first = yield* startFacilitator({ ...shared, atStep: ownGate.atStep })
        const { pay } = yield* makePay(first)
        const { body } = yield* pay()
        const transaction = yield* settleUndelivered(first, ownGate, body)
        const second = yield* startFacilitator({ ...shared, ledgerUrl: first.ledgerUrl })
        expect((yield* second.verify(body, shop)).json.isValid).toBe(true)
        expect((yield* second.settle(body, shop)).json).toMatchObject({ success: true, transaction })
        for (const replica of [first, second]) {
          const { json } = yield* eventually(
            replica.verify(body, shop),
            ({ json }) => json.invalidReason !== "settle_ledger_transaction_status_unknown"
          )
          expect(json).toMatchObject({ invalidReason: used, transaction })
        }
      }).pipe(Effect.scoped),
    240_000
  )
})

describe.each(databaseKinds)(
  "a payment whose record was lost and whose authorization has expired on %s",
  (database) => {
    it.live(
      "a resent payment is searched on the ledger before it is expired [S87]",
      () =>
        Effect.gen(function* () {
          const opened = yield* Context.get(yield* Layer.build(sourceLayer(database)), DatabaseSource).open
          const shared = {
            database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
            environment: { SPONSOR_SECRET: Keypair.random().secret() }
          }
          const settling = yield* startFacilitator({ ...shared, closeMillis: 4_000 })
          const { pay, payTo } = yield* makePay(settling)
          // Longer than a busy machine takes to start a process; the ledger is then brought near its end by hand.
          const short = { maxTimeoutSeconds: 300, secondsPerLedger: 5 }
          const paid = yield* pay({ ...short, ...identified("lost-and-expired") })
          const unpaid = yield* pay(short)
          const first = yield* settling.settle(paid.body)
          expect(first.json.success, first.text).toBe(true)
          yield* settling.sql`delete from kernel_attempts`
          yield* settling.sql`delete from kernel_settlements`
          // A process with an empty cache of outcomes, as after a restore.
          const facilitator = yield* startFacilitator({ ...shared, ledgerUrl: settling.ledgerUrl })
          // Also if too little of its life is left for another settlement.
          const last = Math.max(paid.expirationLedger, unpaid.expirationLedger) + 1
          const refused: Array<string> = []
          const { ledger } = settling.ledger
          const early: Array<number> = []
          yield* settling.ledger.closeMany(Math.max(0, unpaid.expirationLedger - 3 - ledger.latest.sequence))
          while (ledger.latest.sequence <= last) {
            const { json, status } = yield* facilitator.verify(paid.body)
            if (status !== 503 && json.isValid !== true) refused.push(json.invalidReason)
            const about = yield* facilitator.verify(unpaid.body)
            if (about.status === 503 || about.json.isValid === true) continue
            // A payment that is about to expire is not refused permanently: a lost transaction of it may still land.
            const asked = yield* facilitator.settle(unpaid.body)
            if (ledger.latest.sequence < unpaid.expirationLedger) early.push(asked.status)
            if (early.length > 0) yield* settling.ledger.close
          }
          expect(refused).toEqual([])
          expect(new Set(early)).toEqual(new Set([503]))
          // A seller that verifies first gets as far as settle, which then finds the payment.
          const verified = yield* eventually(facilitator.verify(paid.body), ({ status }) => status !== 503)
          expect(verified.json, verified.text).toMatchObject({ isValid: true })
          expect(yield* facilitator.sql`select 1 from kernel_settlements`).toEqual([])
          const again = yield* eventually(facilitator.settle(paid.body), ({ status }) => status !== 503)
          expect(again.json.transaction, again.text).toBe(first.json.transaction)
          expect(again.json.errorReason).not.toBe("invalid_ledger_auth_expired")
          const unused = yield* eventually(facilitator.verify(unpaid.body), ({ status }) => status !== 503)
          expect(unused.json).toMatchObject({ isValid: false, invalidReason: "invalid_ledger_auth_expired" })
          const never = yield* eventually(facilitator.settle(unpaid.body), ({ status }) => status !== 503)
          expect(never.json).toMatchObject({
            success: false,
            errorReason: "invalid_ledger_auth_expired",
            transaction: ""
          })
          expect(yield* facilitator.balance(payTo)).toBe(price)
        }).pipe(Effect.scoped),
      240_000
    )
  }
)

describe.each(databaseKinds)("a payment whose record was lost on %s", (database) => {
  it.live(
    "an unrecorded payment is valid for its owner only [S87]",
    () =>
      Effect.gen(function* () {
        const opened = yield* Context.get(yield* Layer.build(sourceLayer(database)), DatabaseSource).open
        const shared = {
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
          environment: { SPONSOR_SECRET: Keypair.random().secret(), ...keys }
        }
        const facilitator = yield* startFacilitator(shared)
        const { pay, payTo } = yield* makePay(facilitator)
        const { body } = yield* pay()
        const first = yield* facilitator.settle(body, shop)
        expect(first.json.success, first.text).toBe(true)
        yield* facilitator.sql`delete from kernel_attempts`
        yield* facilitator.sql`delete from kernel_settlements`
        // A process with an empty cache of outcomes, as after a restore.
        const restored = yield* startFacilitator({ ...shared, ledgerUrl: facilitator.ledgerUrl })
        const { transaction } = first.json
        for (const ask of [restored.verify, restored.settle]) {
          const { json } = yield* ask(body, other)
          expect(json.isValid ?? json.success).toBe(false)
          expect([json.invalidReason ?? json.errorReason, json.transaction]).toEqual([used, transaction])
        }
        expect((yield* restored.verify(body, shop)).json).toMatchObject({ isValid: true })
        expect(yield* restored.sql`select 1 from kernel_settlements`).toEqual([])
        expect((yield* restored.settle(body, shop)).json).toMatchObject({ success: true, transaction })
        expect((yield* restored.verify(body, shop)).json).toMatchObject({ invalidReason: used, transaction })
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment is its owner's after the whole database was lost [S87]",
    () =>
      Effect.gen(function* () {
        const shared = { database, environment: { SPONSOR_SECRET: Keypair.random().secret(), ...keys } }
        const withKey = { ...shared.environment, FACILITATOR_OWNER_SECRET: "one secret of all replicas,a former one" }
        const facilitator = yield* startFacilitator({ ...shared, environment: withKey })
        const { pay, payTo } = yield* makePay(facilitator)
        const { body } = yield* pay()
        const { json } = yield* facilitator.settle(body, shop)
        expect(json.success).toBe(true)
        const [attempt] = yield* facilitator.sql<{ envelope: Uint8Array }>`select envelope from kernel_attempts`
        const inner = bumpedIn(yield* decodeEnvelope(Base64.encode(attempt!.envelope)))!
        expect([hashSignerOf(inner)?.length, conditionsOf(inner)?.timeBounds?.minTime]).toEqual([32, 0n])
        // Another database has another generated key, and no journal that names the owner.
        const { ledgerUrl } = facilitator
        const stranger = yield* startFacilitator({ ...shared, ledgerUrl })
        expect((yield* stranger.settle(body, shop)).json).toMatchObject({ success: false, errorReason: used })
        const restored = yield* startFacilitator({ ...shared, environment: withKey, ledgerUrl })
        expect((yield* restored.settle(body, other)).json).toMatchObject({ success: false, errorReason: used })
        const again = yield* restored.settle(body, shop)
        expect(again.json).toMatchObject({ success: true, transaction: json.transaction })
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )
})
