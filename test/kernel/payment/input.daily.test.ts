// The contents of a body, over HTTP on each database of the run: text that no database stores is refused before any
// query, and an error inside an extension only rejects that extension.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { Extensions, type PaymentObservation } from "../../../kernel/payment/Extension.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

class Running extends Context.Service<Running, Facilitator>()("test/Running") {}

const price = 10_000n
const responsesOf = ({ headers }: Answer): any => JSON.parse(atob(headers.get("extension-responses") ?? "e30="))

describe.each(databaseKinds)("a body on %s", (database) => {
  const running = startFacilitator({ database, set: ["plugins=[ledger-local, x402-exact]"] })
  layer(Layer.effect(Running, running), { timeout: 240_000, excludeTestServices: true })((it) => {
    const honest = Effect.gen(function* () {
      const facilitator = yield* Running
      const payer = yield* facilitator.account()
      const seller = (yield* facilitator.account(0n)).publicKey()
      const pay = facilitator.payment({ payer, payTo: seller, amount: price })
      return { facilitator, seller, pay }
    })

    it.effect("terms with NUL or a lone surrogate are malformed on both routes [S49, S58]", () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* honest
        const { body } = yield* pay
        const changes: ReadonlyArray<(terms: any, text: string) => void> = [
          (terms, text) => (terms.scheme += text),
          (terms, text) => (terms.asset += text),
          (terms, text) => (terms.payTo += text),
          (terms, text) => (terms.amount += text),
          (terms, text) => (terms.extra = { ...terms.extra, note: [{ deep: text }] }),
          (terms, text) => (terms.extra = { ...terms.extra, [text]: 1 }),
          (terms, text) => (terms[text] = 1)
        ]
        for (const text of ["\u0000", "\ud800", "a\udfff"]) {
          for (const change of changes) {
            for (const of of [["paymentRequirements"], ["accepted"], ["paymentRequirements", "accepted"]]) {
              const copy: any = structuredClone(body)
              if (of.includes("paymentRequirements")) change(copy.paymentRequirements, text)
              if (of.includes("accepted")) change(copy.paymentPayload.accepted, text)
              const verified = yield* facilitator.verify(copy)
              expect([verified.status, verified.json.invalidReason], String(change)).toEqual([400, "invalid_request"])
              const settled = yield* facilitator.settle(copy)
              expect([settled.status, settled.json.errorReason, settled.json.transaction]).toEqual([
                400,
                "invalid_request",
                ""
              ])
            }
          }
        }
        const settled = yield* facilitator.settle(body)
        expect(settled.json.success, settled.text).toBe(true)
      })
    )

    it.effect("an invalid extension is rejected alone; the payment settles [S254, S255]", () =>
      Effect.gen(function* () {
        const { facilitator, pay, seller } = yield* honest
        const extensions = Context.getUnsafe(facilitator.services, Extensions)
        const seen: Array<PaymentObservation> = []
        const observe = (observation: PaymentObservation) =>
          Effect.sync(() => {
            seen.push(observation)
            return { status: "success" as const }
          })
        yield* extensions.register({ key: "catalog", observe })
        yield* extensions.register({ key: "other", observe })
        const rejected = { status: "rejected", rejectedReason: "schema_invalid" }
        const errors = [
          '{"info":1,"info":2}',
          '{"info":{"__proto__":{"x":1}}}',
          `{"info":${"[".repeat(60)}${"]".repeat(60)}}`,
          `{"info":[${"0,".repeat(30_000)}0]}`
        ]
        for (const error of errors) {
          const { body } = yield* pay
          const text = JSON.stringify({
            ...body,
            paymentPayload: { ...body.paymentPayload, extensions: { bazaar: "HERE", other: { info: 1 } } }
          }).replace('"HERE"', error)
          const verified = yield* facilitator.verify(text)
          expect([verified.json.isValid, responsesOf(verified)], verified.text).toEqual([
            true,
            { bazaar: rejected, other: { status: "success" } }
          ])
          const settled = yield* facilitator.settle(text)
          expect([settled.json.success, responsesOf(settled)], settled.text).toEqual([
            true,
            { bazaar: rejected, other: { status: "success" } }
          ])
        }
        expect(seen).toHaveLength(2 * errors.length)
        expect(yield* facilitator.balance(seller)).toBe(price * BigInt(errors.length))
        const { body } = yield* pay
        const ordinary = { constructor: { prototype: {} }, prototype: 1 }
        const settled = yield* facilitator.settle({
          ...body,
          paymentPayload: { ...body.paymentPayload, extensions: { catalog: ordinary, constructor: 1, prototype: {} } }
        })
        expect([settled.json.success, responsesOf(settled)]).toEqual([true, { catalog: { status: "success" } }])
      }).pipe(Effect.scoped)
    )
  })
})
