// The seller's charge of the Machine Payments Protocol, from a buyer's side: a challenge belongs to one request,
// expires and pays once; an unknown settle is pending, never a new 402. `npm run conformance -- reach` buys from such a
// seller with the official clients of both protocols.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { signPayment } from "../../examples/buyer.ts"
import { makeSell } from "../../examples/seller/sellRequest.mjs"
import { memoryStore } from "../../examples/seller/stores.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { answering, cutting, startWay } from "../support/facilitatorWay.ts"
import { startFacilitator } from "../support/facilitator.ts"

const price = 1_000n
const secret = "the first secret of this seller's challenges"
const page = "https://seller.example/page"
const terms = { asset: testnetUsdc, amount: String(price), network: "stellar:testnet", maxTimeoutSeconds: 300 }

type Sell = ReturnType<typeof makeSell>
type Members = Record<string, string>

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
const decode = (text: string | null | undefined) => JSON.parse(Buffer.from(text ?? "", "base64url").toString())

const ask = async (sell: Sell, header: Record<string, string> = {}, url = page, init: RequestInit = {}) => {
  const response = await sell(new Request(url, { ...init, headers: header }), (request) => ({ paid: request.url }))
  const { headers, status } = response
  const challenge: Members = Object.fromEntries(
    [...(headers.get("www-authenticate") ?? "").matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value])
  )
  return { status, headers, challenge, body: (await response.json()) as any }
}

const pay = (sell: Sell, challenge: Members, transaction: string, url = page, init: RequestInit = {}) =>
  ask(
    sell,
    { authorization: `Payment ${encode({ challenge, payload: { type: "transaction", transaction } })}` },
    url,
    init
  )

/** One seller and its buyer, with the facilitator behind a failing connection. */
const start = Effect.gen(function* () {
  const facilitator = yield* startFacilitator()
  const way = yield* Effect.acquireRelease(
    Effect.promise(() => startWay(facilitator.url)),
    ({ close }) => Effect.promise(close)
  )
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const payer = yield* facilitator.account()
  const store = memoryStore()
  const open = (more: object = {}) =>
    makeSell({ ...terms, payTo, facilitator: way.url, store, patience: 300, log: () => {}, mpp: { secret }, ...more })
  /** The transfer that the challenge asks for, signed. */
  const sign = (challenge: Members, by: Keypair = payer): Promise<string> => {
    const { amount, currency, methodDetails, recipient } = decode(challenge["request"])
    const accepted = { ...terms, scheme: "exact", network: methodDetails.network, amount, asset: currency }
    const options = { secret: by.secret(), rpcUrl: facilitator.ledgerUrl, maxAmount: price, network: terms.network }
    return signPayment({ ...accepted, payTo: recipient, extra: { areFeesSponsored: true } }, options)
  }
  return { facilitator, open, payer, received: facilitator.balance(payTo), sign, way }
})

const problem = ({ body, status }: { body: any; status: number }) => [status, body.type?.split("/").at(-1)]

it.live(
  "offers both protocols, and gives one page for one payment of either",
  () =>
    Effect.gen(function* () {
      const { open, received, sign } = yield* start
      const sell = open({ description: "Page “one”" })
      yield* Effect.promise(async () => {
        const { body, challenge, headers, status } = await ask(sell)
        expect([status, headers.get("cache-control")]).toEqual([402, "no-store"])
        expect(body.accepts[0]).toMatchObject({ scheme: "exact", amount: String(price) })
        expect(challenge).toMatchObject({ realm: "seller.example", method: "stellar", intent: "charge" })
        expect(decode(challenge["request"])).toMatchObject({ amount: String(price), methodDetails: { feePayer: true } })
        expect(Date.parse(challenge["expires"]!)).toBeGreaterThan(Date.now())

        const transaction = await sign(challenge)
        const paid = await pay(sell, challenge, transaction)
        expect([paid.status, paid.body]).toEqual([200, { paid: page }])
        expect(paid.headers.get("cache-control")).toContain("private")
        const receipt = decode(paid.headers.get("payment-receipt"))
        expect(receipt).toMatchObject({ method: "stellar", status: "success" })
        expect(receipt.reference).toMatch(/^[0-9a-f]{64}$/)
        // The answer was lost: the same credential gets the same page and receipt.
        const again = await pay(sell, challenge, transaction)
        expect([again.status, decode(again.headers.get("payment-receipt"))]).toEqual([200, receipt])

        // The same authorization buys nothing else, by neither protocol.
        const other = await ask(sell, {}, `${page}/2`)
        const x402 = encode({ x402Version: 2, payload: { transaction }, accepted: other.body.accepts[0] })
        expect((await pay(sell, other.challenge, transaction, `${page}/2`)).status).toBe(409)
        expect((await ask(sell, { "payment-signature": x402 }, `${page}/2`)).status).toBe(409)
        expect((await ask(sell, { "payment-signature": x402 })).status).toBe(409)
      })
      expect(yield* received).toBe(price)
    }).pipe(Effect.scoped),
  120_000
)

it.live(
  "refuses a credential of another request, seller, time, payment or form",
  () =>
    Effect.gen(function* () {
      const { facilitator, open, received, sign, way } = yield* start
      const sell = open()
      const second = yield* facilitator.account()
      yield* Effect.promise(async () => {
        const { challenge } = await ask(sell)
        const transaction = await sign(challenge)
        const send = (change: Members, url = page, init: RequestInit = {}) =>
          pay(sell, { ...challenge, ...change }, transaction, url, init).then(problem)
        const invalid = [402, "invalid-challenge"]
        expect(await send({}, `${page}/2`)).toEqual(invalid)
        expect(await send({}, page, { method: "POST", body: "1" })).toEqual(invalid)
        for (const change of [
          { id: "" },
          { id: `${challenge["id"]!.slice(0, -2)}AA` },
          { realm: "another.example" },
          { expires: new Date(Date.now() + 3_600_000).toISOString() },
          { request: encode({ ...decode(challenge["request"]), amount: "1" }) },
          { opaque: encode({ nonce: "", request: "" }) },
          { digest: "sha-256=:AA==:" }
        ])
          expect(await send(change), JSON.stringify(change)).toEqual(invalid)
        expect(await send({ method: "tempo" })).toEqual([400, "method-unsupported"])
        expect(await send({ intent: "session" })).toEqual([400, "method-unsupported"])

        const hash = encode({ challenge, payload: { type: "hash", hash: "0".repeat(64) } })
        expect(problem(await ask(sell, { authorization: `Payment ${hash}` }))).toEqual([402, "verification-failed"])
        for (const value of [
          "",
          "e30",
          "bnVsbA",
          "W10",
          encode({ challenge }),
          encode({ challenge: 1, payload: {} }),
          "!"
        ])
          expect(problem(await ask(sell, { authorization: `payment ${value}` }))[0], value).toBe(402)
        for (const odd of [undefined, 1, {}, "AAAA"])
          expect(problem(await pay(sell, challenge, odd as string))[0], String(odd)).toBe(402)
        // Another scheme is not a payment.
        expect((await ask(sell, { authorization: "Bearer cGF5bWVudA" })).body).not.toHaveProperty("type")

        const expired = open({ maxTimeoutSeconds: -1 })
        const late = (await ask(expired)).challenge
        expect(problem(await pay(sell, late, transaction))).toEqual([402, "payment-expired"])
        const stranger = (await ask(open({ mpp: { secret: secret.toUpperCase() } }))).challenge
        expect(problem(await pay(sell, stranger, transaction))).toEqual(invalid)
        // A price that changed: nothing was paid, so a new challenge is safe.
        const cheap = (await ask(open({ amount: "1" }))).challenge
        expect(problem(await pay(sell, cheap, await sign(cheap)))).toEqual(invalid)
        const elsewhere = { ...decode(challenge["request"]), recipient: second.publicKey() }
        const stolen = await sign({ request: encode(elsewhere) })
        expect(problem(await pay(sell, challenge, stolen))).toEqual([402, "verification-failed"])
        expect(way.keys.size).toBe(0)

        // One challenge, one payment; a rotated secret accepts challenges of the old one.
        const rotated = open({ mpp: { secret: [secret.toUpperCase(), secret] } })
        expect((await pay(rotated, challenge, transaction)).status).toBe(200)
        const further = await sign(challenge, second)
        const { id = "" } = challenge
        // The last letter of 43 has two bits that no byte holds.
        const last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        const twin = `${id.slice(0, -1)}${last[last.indexOf(id.at(-1)!) + 1]}`
        for (const spelled of [id, `${id}=`, `${id} `, twin])
          expect(problem(await pay(sell, { ...challenge, id: spelled }, further)), spelled).toEqual(invalid)
      })
      expect(yield* received).toBe(price)
    }).pipe(Effect.scoped),
  120_000
)

it.live(
  "answers an unknown settle as pending, and resumes it",
  () =>
    Effect.gen(function* () {
      const { open, received, sign, way } = yield* start
      let paid = 0n
      for (const order of [answering(500, "", true), answering(200, "{}", true), cutting(true), cutting(false)])
        yield* Effect.promise(async () => {
          const sell = open()
          const url = `${page}/${paid}`
          const { challenge } = await ask(sell, {}, url)
          const transaction = await sign(challenge)
          way.order("settle", order)
          const pending = await pay(sell, challenge, transaction, url)
          expect(pending.status).toBe(503)
          expect(pending.headers.get("www-authenticate")).toBe(null)
          expect(pending.headers.get("payment-receipt")).toBe(null)
          expect(Number(pending.headers.get("retry-after"))).toBeGreaterThan(0)
          way.order("settle")
          // The seller was restarted with another price and other terms, and the verify has no answer.
          way.order("verify", cutting(false))
          const changed = { amount: "2000", maxTimeoutSeconds: 120, prepareUrl: "https://seller.example/prepare" }
          const resumed = await pay(open(changed), challenge, transaction, url)
          expect([resumed.status, resumed.body]).toEqual([200, { paid: url }])
          way.order("verify")
          paid += price
        })
      expect(yield* received).toBe(paid)
    }).pipe(Effect.scoped),
  120_000
)

it("refuses a short secret and a price by use", () => {
  const needs = { ...terms, payTo: "G", facilitator: "http://127.0.0.1:9" }
  expect(() => makeSell({ ...needs, mpp: { secret: "short" } })).toThrow("32 characters")
  expect(() => makeSell({ ...needs, mpp: { secret: [] } })).toThrow("32 characters")
  expect(() => makeSell({ ...needs, scheme: "upto", mpp: { secret } })).toThrow("fixed price")
})
