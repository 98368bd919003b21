// Which callers get a success, over HTTP on each database of the run: one of them, whatever the buyer adds to its
// payment; repeated only for the seller's own Idempotency-Key; and the next caller if the answer was not sent.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { connect } from "node:net"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import type { Step } from "../../../kernel/settlement/CrashPoints.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

class Replicas extends Context.Service<
  Replicas,
  { readonly first: Facilitator; readonly second: Facilitator; readonly pauses: Pauses }
>()("test/Replicas") {}

const price = 10_000n
const shop = { authorization: "Bearer the-secret-of-the-shop" }
const other = { authorization: "Bearer the-secret-of-a-stranger" }
const keys = { FACILITATOR_API_KEYS: "shop:the-secret-of-the-shop,other:the-secret-of-a-stranger" }
const used = "settle_ledger_already_settled"
const unknown = "settle_ledger_transaction_status_unknown"
const saleKey = "a".repeat(64)
const withKey = (key: string) => ({ ...shop, "idempotency-key": key })
const identified = (id: string) => ({ extensions: { "payment-identifier": { info: { required: false, id } } } })

/** Steps of the first replica that wait, and how often each was reached. */
const makePauses = () => {
  const latches = new Map<Step, Latch.Latch>()
  const reached = new Map<Step, number>()
  return {
    atStep: (step: Step) =>
      Effect.suspend(() => {
        reached.set(step, (reached.get(step) ?? 0) + 1)
        return latches.get(step)?.await ?? Effect.void
      }),
    pause: (step: Step) =>
      Effect.sync(() => {
        reached.delete(step)
        latches.set(step, Latch.makeUnsafe(false))
      }),
    resume: (step: Step) =>
      Effect.suspend(() => {
        const latch = latches.get(step)
        latches.delete(step)
        return latch?.open ?? Effect.void
      }),
    isReached: (step: Step) => eventually(Effect.sync(() => reached.has(step)))
  }
}
type Pauses = ReturnType<typeof makePauses>

const running = (database: (typeof databaseKinds)[number]) =>
  Effect.gen(function* () {
    const opened = yield* Context.get(yield* Layer.build(sourceLayer(database)), DatabaseSource).open
    const shared = {
      database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
      environment: { SPONSOR_SECRET: Keypair.random().secret(), ...keys }
    }
    const pauses = makePauses()
    const first = yield* startFacilitator({ ...shared, closeMillis: 300, atStep: pauses.atStep })
    const second = yield* startFacilitator({ ...shared, ledgerUrl: first.ledgerUrl })
    return Replicas.of({ first, second, pauses })
  })

const pay = Effect.fnUntraced(function* (extra: object = {}) {
  const { first } = yield* Replicas
  const payer = yield* first.account()
  const payTo = (yield* first.account(0n)).publicKey()
  return { ...(yield* first.payment({ payer, payTo, amount: price, ...extra })), payTo }
})

const delivery = Effect.fnUntraced(function* (payTo: string) {
  const { first } = yield* Replicas
  const [row] = yield* first.sql<{
    delivered: boolean
    confirmed: boolean
  }>`select delivered_at is not null as delivered,
    confirmed_at is not null as confirmed from kernel_settlements where pay_to = ${payTo}`
  return row!
})

/** Sends a settle over a separate connection; `drop` closes it before any answer is read. */
const sendSettle = (url: string, body: unknown) =>
  Effect.sync(() => {
    const { hostname, port } = new URL(url)
    const text = JSON.stringify(body)
    const socket = connect(Number(port), hostname)
    socket.on("error", () => undefined)
    const head = `POST /settle HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: ${shop.authorization}\r\n`
    socket.write(`${head}content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    return { drop: Effect.sync(() => void socket.destroy()) }
  })

describe.each(databaseKinds)("the delivery of a success on %s", (database) =>
  layer(Layer.effect(Replicas, running(database)), { timeout: 240_000, excludeTestServices: true })((it) => {
    it.effect.each([undefined, "chosen-by-the-buyer"])(
      "a delivered success is not repeated, whatever identifier the buyer chose (%s)",
      (identifier) =>
        Effect.gen(function* () {
          const { first, second } = yield* Replicas
          const { body, payTo } = yield* pay(identifier === undefined ? {} : identified(identifier))
          const { json } = yield* first.settle(body, shop)
          expect(json.success).toBe(true)
          const { transaction } = json
          for (const { settle, verify } of [first, first, second]) {
            yield* eventually(
              settle(body, shop),
              ({ json }) => json.errorReason === used && json.transaction === transaction
            )
            yield* eventually(
              verify(body, shop),
              ({ json }) => json.invalidReason === used && json.transaction === transaction
            )
          }
          yield* eventually(delivery(payTo), ({ confirmed }) => confirmed)
          const many = yield* Effect.all(
            Array.from({ length: 8 }, (_, at) => (at % 2 === 0 ? first : second).settle(body, shop)),
            { concurrency: "unbounded" }
          )
          expect(new Set(many.map(({ json }) => json.errorReason))).toEqual(new Set([used]))
        })
    )

    it.effect("a delivered success is repeated for the key of the call that had it", () =>
      Effect.gen(function* () {
        const { first, second } = yield* Replicas
        const { body } = yield* pay(identified("key-of-the-seller"))
        const { json } = yield* first.settle(body, withKey(saleKey))
        expect(json.success).toBe(true)
        const { transaction } = json
        for (const { settle, verify } of [first, second, first]) {
          for (const spelled of [saleKey, `"${saleKey}"`])
            expect((yield* settle(body, withKey(spelled))).json).toMatchObject({ success: true, transaction })
          expect((yield* verify(body, withKey(saleKey))).json).toMatchObject({ isValid: true })
        }
        const strangers = [shop, withKey("b".repeat(64)), { ...other, "idempotency-key": saleKey }]
        for (const headers of strangers) {
          yield* eventually(
            first.settle(body, headers),
            ({ json }) => json.errorReason === used && json.transaction === transaction
          )
          // The second replica reads the delivery from the database, where the first one stores it a moment later.
          yield* eventually(
            second.verify(body, headers),
            ({ json }) => json.invalidReason === used && json.transaction === transaction
          )
        }
        // Another payment has another success.
        const another = yield* pay()
        const next = yield* first.settle(another.body, withKey(saleKey))
        expect(next.json.success).toBe(true)
        expect(next.json.transaction).not.toBe(transaction)
      })
    )

    it.effect.each([
      ["too short", "a".repeat(15)],
      ["too long", "a".repeat(129)],
      ["empty", ""],
      ["with a space", `${"a".repeat(20)} b`],
      ["no ASCII", `${"a".repeat(20)}é`],
      ["an open quote", `"${"a".repeat(20)}`],
      ["a parameter", `"${"a".repeat(20)}";q=1`],
      ["a quoted control", `"${"a".repeat(20)}\tb"`]
    ] as const)("a key that is %s is a 400 in the payment's shape", ([, key]) =>
      Effect.gen(function* () {
        const { first } = yield* Replicas
        for (const [ask, word] of [
          [first.settle, "errorReason"],
          [first.verify, "invalidReason"]
        ] as const) {
          const refused = yield* ask("no payment", withKey(key))
          expect([refused.status, refused.json[word]]).toEqual([400, "invalid_request"])
          expect(JSON.stringify(refused.json)).toContain("Idempotency-Key")
        }
      })
    )

    it.effect.each(["afterClaim", "beforeAnswer"] as const)(
      "a success whose caller has gone %s is given to the next caller",
      (step) =>
        Effect.gen(function* () {
          const { first, pauses } = yield* Replicas
          const { body, payTo } = yield* pay(identified(`gone-${step}-the-claim`))
          yield* pauses.pause(step)
          const request = yield* sendSettle(first.url, body)
          yield* pauses.isReached(step)
          expect(yield* delivery(payTo)).toEqual({ delivered: true, confirmed: false })
          yield* request.drop
          // A later request is answered: the server has read the end of the dropped connection before.
          for (let asked = 0; asked < 3; asked++) yield* first.ask("/health/live")
          yield* pauses.resume(step)
          const next = yield* eventually(first.settle(body, shop), ({ json }) => json.errorReason !== unknown)
          expect(next.json.success).toBe(true)
          expect(yield* first.balance(payTo)).toBe(price)
        })
    )

    it.effect("while a success is being sent, no replica gives it or calls it delivered", () =>
      Effect.gen(function* () {
        const { first, second, pauses } = yield* Replicas
        const { body } = yield* pay()
        yield* pauses.pause("beforeAnswer")
        const sending = yield* Effect.forkChild(first.settle(body, withKey(saleKey)))
        yield* pauses.isReached("beforeAnswer")
        for (const { settle, verify } of [first, second]) {
          const answer = yield* settle(body, shop)
          expect(answer.json).toMatchObject({ success: false, errorReason: unknown })
          expect(answer.json.transaction).toMatch(/^[0-9a-f]{64}$/)
          expect((yield* verify(body, shop)).json).toMatchObject({ isValid: false, invalidReason: unknown })
        }
        yield* pauses.resume("beforeAnswer")
        const { json } = yield* Fiber.join(sending)
        expect(json.success).toBe(true)
        for (const { settle } of [first, second])
          yield* eventually(settle(body, shop), ({ json }) => json.errorReason === used)
      })
    )

    it.effect("replicas agree after the record is lost, whatever one of them remembers", () =>
      Effect.gen(function* () {
        const { first, second } = yield* Replicas
        const { body, payTo } = yield* pay()
        expect((yield* first.settle(body, shop)).json.success).toBe(true)
        yield* eventually(delivery(payTo), ({ confirmed }) => confirmed)
        const lost = first.sql`select id from kernel_settlements where pay_to = ${payTo}`
        yield* first.sql`delete from kernel_attempts where settlement in (${lost})`
        yield* first.sql`delete from kernel_settlements where pay_to = ${payTo}`
        const words = yield* Effect.forEach([first, second], ({ verify }) => verify(body, shop))
        expect(words[0]!.json).toEqual(words[1]!.json)
      })
    )
  })
)
