// One payment releases one resource, to the principal that settled it: two keys over HTTP, and callers without keys at
// two addresses, on each database of the run.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Latch, Layer } from "effect"
import { readFile } from "node:fs/promises"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import type { Step } from "../../../kernel/settlement/CrashPoints.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { byMachineClock, storeLayer } from "../settlement/store.ts"
import { eventually } from "../../support/eventually.ts"

class Running extends Context.Service<Running, Facilitator>()("test/Running") {}

const price = 10_000n
const shop = { authorization: "Bearer the-secret-of-the-shop" }
const shopRotated = { authorization: "Bearer the-next-secret-of-the-shop" }
const stranger = { authorization: "Bearer the-secret-of-a-stranger" }
const at = (address: string) => ({ "x-forwarded-for": address })

const identified = (id: string) => ({ extensions: { "payment-identifier": { info: { required: false, id } } } })

const someone = Effect.gen(function* () {
  const facilitator = yield* Running
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = (extra: object = {}) =>
    facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300, ...extra })
  return { facilitator, payTo, payer, pay }
})

/** The same authorization under terms that no signature covers. */
const elsewhere = (body: any) => {
  const changed = structuredClone(body)
  changed.paymentPayload.resource = { ...changed.paymentPayload.resource, url: "https://elsewhere.example/" }
  return changed
}

/** Holds the ends of payments back while it is closed. */
const makeGate = () => {
  const latch = Latch.makeUnsafe(true)
  return {
    atStep: (step: Step) => (step === "beforeResolve" ? latch.await : Effect.void),
    open: latch.open,
    close: latch.close
  }
}

/** Asks again while the outcome is unknown, since the time for a ledger is irrelevant here. */
const settle = Effect.fnUntraced(function* (facilitator: Facilitator, body: unknown, headers: Record<string, string>) {
  while (true) {
    const answer = yield* facilitator.settle(body, headers)
    if (answer.json.errorReason !== unknown) return answer
  }
})

const unknown = "settle_ledger_transaction_status_unknown"
const used = "settle_ledger_already_settled"

describe.each(databaseKinds)("with two keys on %s", (database) => {
  const gate = makeGate()
  const running = startFacilitator({
    database,
    closeMillis: 300,
    set: ["limits.settle_timeout_ms=4000"],
    atStep: gate.atStep,
    environment: {
      FACILITATOR_API_KEYS:
        "shop:the-secret-of-the-shop,shop:the-next-secret-of-the-shop,other:the-secret-of-a-stranger"
    }
  })
  layer(Layer.effect(Running, running), { timeout: 240_000, excludeTestServices: true })((it) => {
    it.effect("a success belongs to its settler, whatever another key sends [S93, S96]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo } = yield* someone
        const { body } = yield* pay(identified("a-success-of-the-shop"))
        const key = { "idempotency-key": "a-sale-of-the-shop" }
        const first = yield* settle(facilitator, body, { ...shop, ...key })
        expect(first.json.success, first.text).toBe(true)
        const { transaction } = first.json
        for (const stolen of [body, elsewhere(body)]) {
          const answer = yield* facilitator.settle(stolen, { ...stranger, ...key })
          expect([answer.status, answer.json.errorReason]).toEqual([200, used])
          expect(answer.json).toMatchObject({ success: false, transaction })
        }
        expect((yield* facilitator.settle(body, { ...shop, ...key })).json).toEqual(first.json)
        // The label is the principal, not the secret.
        expect((yield* facilitator.settle(body, { ...shopRotated, ...key })).json).toEqual(first.json)
        expect((yield* facilitator.ask(`/settlements?hash=${transaction}`, { headers: stranger })).status).toBe(404)
        expect(yield* facilitator.balance(payTo)).toBe(price)
      })
    )

    it.effect("a stored success is found only by its recorded identifier [S93]", () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* someone
        const named = (body: any, id: string) => ({
          ...body,
          paymentPayload: { ...body.paymentPayload, ...identified(id) }
        })
        for (const recorded of [undefined, "the-one-it-was-recorded-with"]) {
          const { body } = yield* pay()
          const first = yield* settle(facilitator, recorded === undefined ? body : named(body, recorded), shop)
          expect(first.json.success, first.text).toBe(true)
          for (const again of [named(body, "an-identifier-made-up-later"), body]) {
            const answer = yield* facilitator.settle(again, shop)
            expect([answer.json.errorReason, answer.json.transaction]).toEqual([used, first.json.transaction])
          }
        }
      })
    )

    it.effect("other terms are a conflict, with state and hash, for the owner only [S268]", () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* someone
        const { body } = yield* pay()
        const first = yield* settle(facilitator, body, shop)
        expect(first.json.success, first.text).toBe(true)
        const conflict = yield* facilitator.settle(elsewhere(body), shop)
        expect([conflict.status, conflict.json.errorReason]).toEqual([409, "payment_identifier_conflict"])
        expect(conflict.json.transaction).toBe(first.json.transaction)
        expect(conflict.json.errorMessage).toMatch(/is settled/)
        // A failed settlement without a transaction on the ledger has no hash in its answer.
        yield* facilitator.sql`update kernel_settlements set state = 'failed', ended_by = null,
          reason = 'settle_ledger_transaction_failed' where inner_hash = ${first.json.transaction}`
        const failed = yield* facilitator.settle(elsewhere(body), shop)
        expect([failed.json.errorReason, failed.json.transaction]).toEqual(["payment_identifier_conflict", ""])
      })
    )

    it.effect("another caller's earlier settlement under other terms is no conflict [S268]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo } = yield* someone
        const { body } = yield* pay(identified("a-payment-of-the-shop"))
        const taken = yield* settle(facilitator, elsewhere(body), stranger)
        expect(taken.json.success, taken.text).toBe(true)
        const own = yield* facilitator.settle(body, shop)
        expect([own.status, own.json.errorReason, own.json.transaction]).toEqual([200, used, taken.json.transaction])
        expect(yield* facilitator.balance(payTo)).toBe(price)
        // The identifier was never the shop's, so it is free for the shop's next payment.
        const next = yield* settle(facilitator, (yield* pay(identified("a-payment-of-the-shop"))).body, shop)
        expect(next.json.success, next.text).toBe(true)
      })
    )

    it.effect("another key's open payment is used, without hash; delivery stays the owner's [S91]", () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* someone
        const { body } = yield* pay()
        yield* gate.close
        const first = yield* facilitator.settle(body, shop)
        expect(first.json.errorReason).toBe(unknown)
        const other = yield* facilitator.settle(body, stranger)
        expect([other.json.success, other.json.errorReason, other.json.transaction]).toEqual([false, used, ""])
        yield* gate.open
        const settled = facilitator.sql<{ state: string }>`select state from kernel_settlements
          where inner_hash = ${first.json.transaction}`
        while ((yield* settled)[0]!.state !== "settled") yield* Effect.sleep("50 millis")
        const late = yield* facilitator.settle(body, stranger)
        expect([late.json.errorReason, late.json.transaction]).toEqual([used, first.json.transaction])
        const own = yield* facilitator.settle(body, shop)
        expect(own.json).toMatchObject({ success: true, transaction: first.json.transaction })
        const again = yield* facilitator.settle(body, shop)
        expect([again.json.errorReason, again.json.transaction]).toEqual([used, first.json.transaction])
      })
    )

    it.effect("two buyers of one seller may use one identifier [S95]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo } = yield* someone
        const other = yield* facilitator.account()
        const id = identified("both-buyers-chose-this")
        const answers = [
          yield* settle(facilitator, (yield* pay(id)).body, shop),
          yield* settle(facilitator, (yield* pay({ ...id, payer: other })).body, shop)
        ]
        expect(answers.map(({ json }) => json.success)).toEqual([true, true])
        expect(yield* facilitator.balance(payTo)).toBe(2n * price)
        const third = yield* facilitator.verify((yield* pay(id)).body, shop)
        expect([third.status, third.json.invalidReason]).toEqual([409, "payment_identifier_conflict"])
      })
    )

    it.effect("of ten concurrent requests of two keys, exactly one receives success [S96]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo } = yield* someone
        const { body } = yield* pay()
        const answers = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? shop : stranger)),
          (headers) => Effect.map(facilitator.settle(body, headers), ({ json }) => ({ json, headers })),
          { concurrency: "unbounded" }
        )
        const successes = answers.filter(({ json }) => json.success)
        expect(successes.length).toBeLessThanOrEqual(1)
        const [row] = yield* facilitator.sql<{ principal: string }>`select principal from kernel_settlements
          where pay_to = ${payTo}`
        for (const { headers } of successes) expect(headers).toBe(row!.principal === "key:shop" ? shop : stranger)
        yield* eventually(facilitator.balance(payTo), (balance) => balance > 0n)
        expect(yield* facilitator.balance(payTo)).toBe(price)
      })
    )
  })
})

describe.each(databaseKinds)("without keys on %s", (database) => {
  const gate = makeGate()
  const running = startFacilitator({
    database,
    closeMillis: 300,
    atStep: gate.atStep,
    set: ["limits.settle_timeout_ms=4000", 'server.trusted_proxies=["127.0.0.1"]']
  })
  layer(Layer.effect(Running, running), { timeout: 240_000, excludeTestServices: true })((it) => {
    it.effect("a seller with a changed address receives its pending success once [S91, S93]", () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* someone
        const { body } = yield* pay()
        yield* gate.close
        const first = yield* facilitator.settle(body, at("192.0.2.1"))
        expect(first.json.errorReason).toBe(unknown)
        yield* gate.open
        const { transaction } = first.json
        let answer = first
        while (answer.json.errorReason === unknown) {
          answer = yield* facilitator.settle(body, at("198.51.100.7"))
          expect(answer.json.transaction).toBe(transaction)
        }
        expect(answer.json).toMatchObject({ success: true, transaction })
        const again = yield* facilitator.settle(body, at("203.0.113.9"))
        expect([again.json.errorReason, again.json.transaction]).toEqual([used, transaction])
      })
    )

    it.effect("without keys, identifiers are shared and budgets are per address [S93, S95, S271]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo } = yield* someone
        const { body } = yield* pay(identified("read-from-two-addresses"))
        const key = { "idempotency-key": "a-sale-of-no-key" }
        const first = yield* settle(facilitator, body, { ...at("192.0.2.1"), ...key })
        expect(first.json.success, first.text).toBe(true)
        expect((yield* facilitator.settle(body, { ...at("198.51.100.7"), ...key })).json).toEqual(first.json)
        const found = yield* facilitator.ask("/settlements?identifier=read-from-two-addresses", {
          headers: at("203.0.113.9")
        })
        expect(found.json.items).toMatchObject([{ status: "success", transaction: first.json.transaction }])
        const rows = yield* facilitator.sql<{ principal: string; budget_principal: string }>`select principal,
          budget_principal from kernel_settlements where pay_to = ${payTo}`
        expect(rows).toEqual([{ principal: "anonymous", budget_principal: "ip:192.0.2.1" }])
        expect(yield* facilitator.sql`select 1 from kernel_sponsor_budget where principal = 'anonymous'`).toEqual([])
      })
    )
  })
})

describe.each(databaseKinds)("rows of earlier versions on %s", (database) => {
  layer(
    storeLayer(database),
    byMachineClock
  )((it) => {
    it.effect("earlier rows get owners, budgets and one holder per identifier", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        // What came later needs the column, and fills it in.
        yield* sql`drop trigger kernel_settlements_of_version_01 on kernel_settlements`
        yield* sql`drop trigger kernel_settlements_budget_of_version_01 on kernel_settlements`
        yield* sql`drop index kernel_settlements_identifier`
        yield* sql`alter table kernel_settlements drop column budget_principal`
        yield* sql`create unique index kernel_settlements_identifier
        on kernel_settlements (principal, pay_to, identifier)
          where identifier is not null`
        const insert = (number: number, principal: string, payer: string, identifier: string | null) =>
          sql`insert into kernel_settlements (id, network, scheme, authorization_key, authorization_expires_ledger,
            fingerprint, principal, identifier, payer, pay_to, asset, amount_max, amount, inner_hash, sponsor, channel,
            channel_sequence, resource_fee_stroops, recorded_ledger, recorded_at, deadline_at, budget_day,
            budget_stroops, budget_shard, budget_keyed)
          values (${`00000000-0000-4000-a000-00000000000${number}`}, 'ledger:testnet', 'exact', ${`key-${number}`}, 1,
            'f', ${principal}, ${identifier}, ${payer}, 'seller', 'asset', 1, 1, ${`hash-${number}`}, 's', 'c', 1, 1, 1,
            clock_timestamp() + make_interval(secs => ${number}), clock_timestamp(), '2026-01-01', 1, 0, false)`
        yield* insert(1, "ip:192.0.2.1", "buyer", "one-identifier-of-all")
        yield* insert(2, "ip:192.0.2.2", "buyer", "one-identifier-of-all")
        yield* insert(3, "ip:192.0.2.4", "another", "one-identifier-of-all")
        yield* insert(4, "key:shop", "buyer", "one-identifier-of-all")
        yield* insert(5, "ip:192.0.2.3", "buyer", null)
        yield* sql`insert into kernel_facts (type, version, subject, data, principal)
          values ('settlement.settled', 1, 's', '{}', 'ip:192.0.2.1'), ('settlement.settled', 1, 's', '{}', 'key:shop')`
        const file = new URL("../../../migrations/kernel/0007_principals.sql", import.meta.url)
        const text = yield* Effect.promise(() => readFile(file, "utf8"))
        for (const statement of text.split(/;\n/).filter((part) => part.trim() !== "")) yield* sql.unsafe(statement)
        const rows = yield* sql`select channel_sequence, principal, budget_principal, identifier is not null as named
          from kernel_settlements order by id`
        expect(rows.map(({ budget_principal, named, principal }) => [principal, budget_principal, named])).toEqual([
          ["anonymous", "ip:192.0.2.1", true],
          ["anonymous", "ip:192.0.2.2", false],
          ["anonymous", "ip:192.0.2.4", true],
          ["key:shop", "key:shop", true],
          ["anonymous", "ip:192.0.2.3", false]
        ])
        const reported = yield* sql`select principal from kernel_facts order by id`
        expect(reported.map(({ principal }) => principal)).toEqual(["anonymous", "key:shop"])
      })
    )
  })
})
