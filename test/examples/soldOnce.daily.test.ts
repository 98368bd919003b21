// A seller's memory of what was sold, over each of its stores, with the seller of the examples and a whole facilitator
// behind it: an answer that is lost on its way, a crash between settling and storing, twins, and the payment at another
// request.
import { expect, it } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import { Effect } from "effect"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe } from "vitest"
import { encode, facilitatorClient, jsonWork } from "../../examples/seller-http.ts"
import { fileStore, memoryStore, soldOnce, soldTable, sqlStore, type Store } from "../../examples/soldOnce.mjs"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"

const makeSqlStore = async (): Promise<Store> => {
  const db = new PGlite()
  await db.exec(soldTable)
  return sqlStore((sql, values) => db.query(sql, values))
}

const price = 10_000n

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

/** A client of the facilitator whose answers to settle may be lost after they were given. */
const makeClient = (facilitator: Facilitator) => {
  const client = facilitatorClient({ facilitator: facilitator.url })
  let losses = 0
  const asked = { verify: 0, settle: 0 }
  return {
    ...client,
    asked,
    loseNext: () => void (losses += 1),
    verify: (payment: unknown, requirements: unknown) => {
      asked.verify += 1
      return client.verify(payment, requirements)
    },
    settle: async (payment: unknown, requirements: unknown) => {
      asked.settle += 1
      const answer = await client.settle(payment, requirements)
      if (losses === 0) return answer
      losses -= 1
      throw new Error("the answer was lost")
    }
  }
}

describe("a payment that comes again", () => {
  it.live("is released what was computed, once, for the same request alone", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const store = memoryStore()
      let computed = 0
      const client = makeClient(facilitator)
      const sellAt = (payment: unknown, requirements: unknown, request = "/a", { sell } = soldOnce({ store })) =>
        Effect.promise(() =>
          sell({ client, payment, requirements, request, work: () => jsonWork({ page: request, nth: ++computed }) })
        )
      // Twins within one process, and the same once more.
      const first = yield* makePayment(facilitator)
      const seller = soldOnce({ store })
      const twins = yield* Effect.all(
        Array.from({ length: 4 }, () => sellAt(first.payment, first.requirements, "/a", seller)),
        { concurrency: "unbounded" }
      )
      expect(twins.map(({ released }) => released)).toEqual([true, true, true, true])
      expect(client.asked).toEqual({ verify: 1, settle: 1 })
      expect(computed).toBe(1)
      // What was sold is another process's to release as well.
      expect(yield* sellAt(first.payment, first.requirements)).toMatchObject({
        released: true,
        work: { body: encode({ page: "/a", nth: 1 }) }
      })
      expect(yield* sellAt(first.payment, first.requirements, "/b")).toEqual({
        released: false,
        reason: "payment_already_used"
      })
      const extended = { ...first.payment, extensions: { "payment-identifier": { info: { id: "0123456789abcdef" } } } }
      expect(yield* sellAt(extended, first.requirements)).toMatchObject({ released: false })
      expect(computed).toBe(1)

      // The answer is lost, or the process ended between the facilitator's answer and the store.
      const second = yield* makePayment(facilitator)
      client.loseNext()
      const lost = yield* Effect.exit(
        Effect.tryPromise(() =>
          soldOnce({ store }).sell({
            client,
            payment: second.payment,
            requirements: second.requirements,
            request: "/a",
            work: () => jsonWork({ nth: ++computed })
          })
        )
      )
      expect(lost._tag).toBe("Failure")
      // Another resource is not released for it meanwhile, whatever the facilitator's records show.
      expect((yield* sellAt(second.payment, second.requirements, "/b")).released).toBe(false)
      const again = yield* sellAt(second.payment, second.requirements)
      expect(again).toMatchObject({ released: true, work: { body: encode({ nth: 2 }) }, receipt: { success: true } })
      expect(computed).toBe(2)
      expect(yield* facilitator.balance(second.payTo)).toBe(price)

      // A seller that has lost its store computes nothing again for a delivered success.
      expect(
        yield* sellAt(second.payment, second.requirements, "/a", soldOnce({ store: memoryStore() }))
      ).toMatchObject({
        released: false,
        reason: "settle_stellar_already_settled"
      })
      expect(computed).toBe(2)
    }).pipe(Effect.scoped)
  )

  it.live("releases nothing for a transaction of another sale or another seller", () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({
        environment: { FACILITATOR_API_KEYS: "shop:the-secret-of-the-shop,other:the-secret-of-a-stranger" }
      })
      const sale = yield* makePayment(facilitator)
      const by = (apiKey: string) => facilitatorClient({ facilitator: facilitator.url, apiKey })
      const shop = by("the-secret-of-the-shop")
      const store = memoryStore()
      let isStolen = false
      // Between verify and settle another caller settles the same payment.
      const client = {
        ...shop,
        settle: async (payment: unknown, requirements: unknown) => {
          if (!isStolen) await by("the-secret-of-a-stranger").settle(payment, requirements)
          isStolen = true
          return shop.settle(payment, requirements)
        }
      }
      for (let times = 0; times < 2; times++) {
        const answer = yield* Effect.promise(() =>
          soldOnce({ store }).sell({ client, ...sale, request: "/a", work: () => jsonWork({}) })
        )
        expect(answer).toMatchObject({ released: false, reason: "settle_stellar_already_settled" })
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
})
