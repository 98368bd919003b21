// The demonstration seller and buyer, over a whole facilitator as the local profile starts it.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

it.live(
  "a demonstration payment is verified, settled once and listed",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const unpaid = yield* facilitator.ask("/demo/weather")
      expect(unpaid.status).toBe(402)
      const header = unpaid.headers.get("payment-required") ?? ""
      expect(JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (c) => c.charCodeAt(0))))).toEqual(
        unpaid.json
      )
      const made = yield* facilitator.ask("/demo/payments", { method: "POST" })
      expect(made.json.paymentPayload.accepted).toEqual(unpaid.json.accepts[0])
      const { buyer, paymentRequirements } = made.json
      expect(yield* facilitator.balance(buyer)).toBe(10_000_000n)
      // Unchanged, by whichever caller it is sent.
      const body = made.json
      expect((yield* facilitator.verify(body)).json).toMatchObject({ isValid: true, payer: buyer })
      const settled = yield* facilitator.settle(body)
      expect(settled.json).toMatchObject({ success: true, payer: buyer })
      expect(yield* facilitator.balance(buyer)).toBe(9_990_000n)
      expect(yield* facilitator.balance(paymentRequirements.payTo)).toBe(10_000n)
      expect((yield* facilitator.settle(body)).json).toMatchObject({ success: false })
      const listed = yield* eventually(
        facilitator.ask("/discovery/resources?include_unverified=true"),
        ({ json }) => json.items.length > 0
      )
      expect(listed.json.items[0].resource).toBe(`${facilitator.url}/demo/weather`)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a page of another site cannot start a demonstration payment",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ channels: 1 })
      const headers = { origin: "https://evil.example" }
      const answer = yield* facilitator.ask("/demo/payments", { method: "POST", headers })
      expect([answer.status, answer.json.buyer]).toEqual([403, undefined])
    }).pipe(Effect.scoped),
  240_000
)
