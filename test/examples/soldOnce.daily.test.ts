// A seller's record of sales, over each of its stores, with the seller of the examples and a whole facilitator: an
// answer lost in transit, a crash between settling and storing, concurrent twins, and the payment at another request.
import { expect, it } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import { Effect } from "effect"
import { once } from "node:events"
import { createServer, get } from "node:http"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe } from "vitest"
import { encode, facilitatorAt } from "../../examples/seller/outcome.mjs"
import { jsonWork } from "../../examples/seller-http.ts"
import { makeSell, toNode } from "../../examples/seller/sellRequest.mjs"
import { fileStore, memoryStore, soldOnce, soldTable, sqlStore, type Store } from "../../examples/seller/soldOnce.mjs"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { cutting, startWay, type Way } from "../support/facilitatorWay.ts"

const makeSqlStore = async (): Promise<Store> => {
  const db = new PGlite()
  await db.exec(soldTable)
  return sqlStore((sql, values) => db.query(sql, values))
}

const price = 10_000n
const express = createRequire(import.meta.url)("express")

describe("the stores of what was sold", () => {
  it.each(["memory", "file", "sql"])("give what was stored first (%s)", async (kind) => {
    const folder = await mkdtemp(join(tmpdir(), "sold-"))
    try {
      const store =
        kind === "memory" ? memoryStore() : kind === "file" ? fileStore(join(folder, "sold")) : await makeSqlStore()
      expect(await store.get("work/a")).toBeUndefined()
      const given = await Promise.all(["1", "2", "3"].map((value) => store.putIfAbsent("work/a", value)))
      expect(new Set(given).size).toBe(1)
      expect(await store.get("work/a")).toBe(given[0])
      expect(await store.putIfAbsent("work/b", "another")).toBe("another")
      if (kind === "file") expect((await readdir(join(folder, "sold"))).toSorted()).toEqual(["work-a", "work-b"])
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

const makePayment = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const { body } = yield* facilitator.payment({ payer, payTo, amount: price, network: "stellar:testnet" })
  const { paymentPayload: payment, paymentRequirements: requirements } = body as any
  return { payment, payTo, requirements }
})

/** A client of a facilitator behind the failing connection; counts its calls. */
const makeClient = (way: Way) => {
  const client = facilitatorAt(way.url)
  const asked = { verify: 0, settle: 0 }
  return {
    ...client,
    asked,
    verify: (payment: unknown, requirements: unknown, key?: string) => {
      asked.verify += 1
      return client.verify(payment, requirements, key)
    },
    settle: (payment: unknown, requirements: unknown, key?: string) => {
      asked.settle += 1
      return client.settle(payment, requirements, key)
    }
  }
}

const startedWay = (facilitator: Facilitator) =>
  Effect.acquireRelease(
    Effect.promise(() => startWay(facilitator.url)),
    ({ close }) => Effect.promise(close)
  )

describe("a payment that comes again", () => {
  it.live("is released what was computed, once, for the same request alone", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const store = memoryStore()
      let computed = 0
      const way = yield* startedWay(facilitator)
      const client = makeClient(way)
      const sellAt = (payment: unknown, requirements: unknown, request = "/a", { sell } = soldOnce({ store })) =>
        Effect.promise(() =>
          sell({ client, payment, requirements, request, work: () => jsonWork({ page: request, nth: ++computed }) })
        )
      // Twins within one process, and the same request again.
      const first = yield* makePayment(facilitator)
      const seller = soldOnce({ store })
      const twins = yield* Effect.all(
        Array.from({ length: 4 }, () => sellAt(first.payment, first.requirements, "/a", seller)),
        { concurrency: "unbounded" }
      )
      expect(twins.map(({ released }) => released)).toEqual([true, true, true, true])
      expect(client.asked).toEqual({ verify: 1, settle: 1 })
      expect(computed).toBe(1)
      // Another process can release the sold content too.
      expect(yield* sellAt(first.payment, first.requirements)).toMatchObject({
        released: true,
        work: { body: encode({ page: "/a", nth: 1 }) }
      })
      expect(yield* sellAt(first.payment, first.requirements, "/b")).toEqual({
        released: false,
        state: "used",
        reason: "payment_already_used"
      })
      const extended = { ...first.payment, extensions: { "payment-identifier": { info: { id: "0123456789abcdef" } } } }
      expect(yield* sellAt(extended, first.requirements)).toMatchObject({ released: false })
      expect(computed).toBe(1)

      // The answer is lost, or the process ended between the facilitator's answer and the store.
      const second = yield* makePayment(facilitator)
      way.order("settle", cutting(true))
      const lost = yield* sellAt(second.payment, second.requirements, "/a", soldOnce({ store, patience: 0 }))
      expect(lost).toMatchObject({ released: false, state: "pending", reason: "settlement_pending" })
      way.order("settle")
      // Another resource is not released for it, whatever the facilitator's records show.
      expect((yield* sellAt(second.payment, second.requirements, "/b")).released).toBe(false)
      const again = yield* sellAt(second.payment, second.requirements)
      const work = { body: encode({ page: "/a", nth: 2 }) }
      expect(again).toMatchObject({ released: true, work, receipt: { success: true } })
      expect(computed).toBe(2)
      expect(yield* facilitator.balance(second.payTo)).toBe(price)

      // A seller that has lost its store computes nothing for another request of a delivered success.
      expect(
        yield* sellAt(second.payment, second.requirements, "/b", soldOnce({ store: memoryStore() }))
      ).toMatchObject({ released: false, state: "used", reason: "settle_stellar_already_settled" })
      expect(computed).toBe(2)
    }).pipe(Effect.scoped)
  )

  it.live("is settled with its first terms behind a middleware with others", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const way = yield* startedWay(facilitator)
      const { payment, payTo, requirements } = yield* makePayment(facilitator)
      const store = memoryStore()
      const { facilitator: keeping, middleware, sell } = soldOnce({ store, patience: 0, log: () => {} })
      const client = keeping(makeClient(way))
      // The middleware no longer knows the terms of this payment.
      const app = express().use(middleware((_request, response) => response.status(402).end()))
      const server = app.listen(0, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      yield* Effect.promise(() => once(server, "listening"))
      const url = `http://127.0.0.1:${server.address().port}/page`
      const ask = () => fetch(url, { headers: { "payment-signature": encode(payment) } })
      expect((yield* Effect.promise(ask)).status).toBe(402)
      way.order("settle", cutting(true))
      const request = { method: "GET", url }
      const work = () => jsonWork({ page: 1 })
      const lost = yield* Effect.promise(() => sell({ client, payment, requirements, request, work }))
      expect(lost).toMatchObject({ released: false, state: "pending" })
      expect((yield* Effect.promise(ask)).status).toBe(503)
      way.order("settle")
      const page = yield* Effect.promise(ask)
      expect([page.status, yield* Effect.promise(() => page.json())]).toEqual([200, { page: 1 }])
      expect(yield* facilitator.balance(payTo)).toBe(price)
    }).pipe(Effect.scoped)
  )

  it.live("releases nothing for a transaction of another sale or another seller", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({
        environment: { FACILITATOR_API_KEYS: "shop:the-secret-of-the-shop,other:the-secret-of-a-stranger" }
      })
      const sale = yield* makePayment(facilitator)
      const by = (apiKey: string) => facilitatorAt(facilitator.url, apiKey)
      const shop = by("the-secret-of-the-shop")
      const store = memoryStore()
      const log = () => {}
      let isStolen = false
      // Between verify and settle another caller settles the same payment.
      const client = {
        ...shop,
        settle: async (payment: unknown, requirements: unknown, key?: string) => {
          if (!isStolen) await by("the-secret-of-a-stranger").settle(payment, requirements)
          isStolen = true
          return shop.settle(payment, requirements, key)
        }
      }
      for (let times = 0; times < 2; times++) {
        const answer = yield* Effect.promise(() =>
          soldOnce({ store, log }).sell({ client, ...sale, request: "/a", work: () => jsonWork({}) })
        )
        expect(answer).toMatchObject({ released: false, state: "used", reason: "settle_stellar_already_settled" })
      }
      const own = yield* makePayment(facilitator)
      const said = { success: true, transaction: "a".repeat(64), network: "stellar:testnet" }
      const repeating = { ...shop, settle: async () => said }
      const { sell } = soldOnce({ store })
      const sold = yield* Effect.promise(() =>
        sell({ client: repeating, ...own, request: "/a", work: () => jsonWork({}) })
      )
      expect(sold.released).toBe(true)
      const other = yield* makePayment(facilitator)
      const refused = yield* Effect.promise(() =>
        sell({ client: repeating, ...other, request: "/a", work: () => jsonWork({}) })
      )
      expect(refused).toMatchObject({ released: false, reason: "payment_already_used" })
    }).pipe(Effect.scoped)
  )

  it.live("buys one thing from two services of one owner", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const way = yield* startedWay(facilitator)
      for (const isConcurrent of [true, false]) {
        // Each service has its own store, and both have the owner's key: only the facilitator sees both.
        const sale = yield* makePayment(facilitator)
        const services = ["/a", "/b"].map((request) => {
          const { sell } = soldOnce({ store: memoryStore(), log: () => {} })
          return Effect.promise(() =>
            sell({ client: makeClient(way), ...sale, request, work: () => jsonWork({ request }) })
          )
        })
        const once = yield* Effect.all(services, { concurrency: isConcurrent ? "unbounded" : 1 })
        const again = yield* Effect.all(services)
        const released = (all: typeof once) => all.map((one) => one.released)
        expect(released(once).filter(Boolean)).toHaveLength(1)
        expect(released(again)).toEqual(released(once))
        expect(again.find((one) => !one.released)).toMatchObject({ state: "used" })
        expect(yield* facilitator.balance(sale.payTo)).toBe(price)
      }
    }).pipe(Effect.scoped)
  )

  it.live("buys one page from two services, whatever host its caller names", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const { payment, payTo, requirements } = yield* makePayment(facilitator)
      const { amount, asset, maxTimeoutSeconds, network } = requirements
      const options = { amount, asset, maxTimeoutSeconds, network, payTo, facilitator: facilitator.url }
      const open = (name: object) =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const sell = makeSell({ ...options, ...name, log: () => {} })
            const server = createServer(toNode((request) => sell(request, () => name)))
            await once(server.listen(0, "127.0.0.1"), "listening")
            return server
          }),
          (server) => Effect.sync(() => void server.close())
        ).pipe(Effect.map((server) => (server.address() as { port: number }).port))
      const services = [yield* open({ description: "weather" }), yield* open({ description: "news" })]
      const more = [yield* open({ service: "a" }), yield* open({ service: "b" })]
      const ask = (port: number) =>
        Effect.promise(
          () =>
            new Promise<number>((resolve, reject) => {
              const headers = { host: "weather.example", "payment-signature": encode(payment), connection: "close" }
              const sent = get({ port, host: "127.0.0.1", path: "/page", headers }, (answer) => {
                answer.resume()
                resolve(answer.statusCode ?? 0)
              })
              sent.on("error", reject)
            })
        )
      const asked = yield* Effect.forEach([...services, ...more, services[0]!], ask)
      expect(asked).toEqual([200, 409, 409, 409, 200])
      expect(yield* facilitator.balance(payTo)).toBe(price)
    }).pipe(Effect.scoped)
  )

  it.live("sells by one voucher again after a charge of zero", () =>
    Effect.gen(function* () {
      const { sell } = soldOnce({ store: memoryStore() })
      const requirements = { scheme: "batch-settlement", network: "stellar:testnet", amount: "100" }
      let total = 0n
      // The channel's total moves by what is charged, and a voucher must build on it.
      const client = {
        verify: async ({ payload }: any) => {
          const isBased = BigInt(payload.voucher.maxClaimableAmount) === total + 100n
          return isBased ? { isValid: true } : { isValid: false, invalidReason: "invalid_cumulative_amount_mismatch" }
        },
        settle: async (_: any, { amount }: any) => {
          total += BigInt(amount)
          const extra = { chargedAmount: amount, channelState: { chargedCumulativeAmount: String(total) } }
          return { success: true, transaction: "", network: "stellar:testnet", extra }
        }
      }
      let works = 0
      const sold = (max: string, request: string, amount: string) => {
        const voucher = { channelId: "ab".repeat(32), maxClaimableAmount: max, signature: max }
        const payment = { accepted: requirements, payload: { type: "voucher", voucher } }
        const work = () => ({ ...jsonWork({ request, nth: ++works }), amount })
        return Effect.promise(() => sell({ client, payment, requirements, request, work }))
      }
      const steps = [
        ["100", "/a", "0"],
        ["100", "/b", "40"],
        ["140", "/c", "0"],
        ["140", "/d", "0"],
        ["140", "/e", "100"]
      ] as const
      for (const [max, request, amount] of steps) {
        const one: any = yield* sold(max, request, amount)
        expect([request, one.released, one.receipt?.extra.chargedAmount]).toEqual([request, true, amount])
      }
      expect([total, works]).toEqual([140n, 5])
      // Each request gets its page again, and a voucher that charged pays for no other.
      for (const [max, request, amount] of steps)
        expect((yield* sold(max, request, amount)).released, request).toBe(true)
      // The channel's server corrects the buyer.
      const corrected = { released: false, state: "refused", reason: "invalid_cumulative_amount_mismatch" }
      expect(yield* sold("100", "/f", "0")).toMatchObject(corrected)
      expect(yield* sold("140", "/f", "0")).toMatchObject(corrected)
      expect([total, works]).toEqual([140n, 5])
    })
  )

  it.live("keeps each voucher's sale apart, which have no transaction", () =>
    Effect.gen(function* () {
      const { sell } = soldOnce({ store: memoryStore() })
      const channel = "ab".repeat(32)
      const requirements = { scheme: "batch-settlement", network: "stellar:testnet", amount: "100" }
      const voucherOf = (total: string, channelId = channel) => ({
        accepted: requirements,
        payload: { type: "voucher", voucher: { channelId, maxClaimableAmount: total, signature: total } }
      })
      let charged = 0
      const client = {
        verify: async () => ({ isValid: true }),
        settle: async ({ payload }: any) => {
          charged += 1
          const channelState = { chargedCumulativeAmount: payload.voucher.maxClaimableAmount }
          return { success: true, transaction: "", network: "stellar:testnet", extra: { channelState } }
        }
      }
      const sold = (payment: unknown, request: string) =>
        Effect.promise(() => sell({ client, payment, requirements, request, work: () => jsonWork({ request }) }))
      for (const total of ["100", "200", "300"])
        expect([total, (yield* sold(voucherOf(total), `/${total}`)).released]).toEqual([total, true])
      expect((yield* sold(voucherOf("100"), "/100")).released).toBe(true)
      expect(yield* sold(voucherOf("200"), "/another")).toMatchObject({ released: false, state: "used" })
      expect((yield* sold(voucherOf("100", "cd".repeat(32)), "/100")).released).toBe(true)
      expect(charged).toBe(4)
      // The same total, signed or encoded differently, is the same money.
      const again = { ...voucherOf("300"), payload: { ...voucherOf("300").payload, transaction: "x", more: 1 } }
      expect(yield* sold(again, "/again")).toMatchObject({ released: false, state: "used" })
      expect(yield* sold(voucherOf("300", channel.toUpperCase()), "/again")).toMatchObject({ state: "used" })
      // Also if the facilitator returns no charged total.
      const plain = soldOnce({ store: memoryStore() })
      const silent = { ...client, settle: async () => ({ success: true, transaction: "", network: "stellar:testnet" }) }
      const asked = (payment: unknown, request: string) =>
        Effect.promise(() =>
          plain.sell({ client: silent, payment, requirements, request, work: () => jsonWork({ request }) })
        )
      expect((yield* asked(voucherOf("300"), "/300")).released).toBe(true)
      expect(yield* asked(again, "/again")).toMatchObject({ state: "used" })
    })
  )
})
