// The cost of a payment at other services: the calls to the ledger's RPC and the statements to the database for one
// request, counted by the spans of its trace, so that an increase is noticed. The follower's requests for all payments
// together are not included.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Tracer } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

/** Every span, by the id of its trace. */
const recording = () => {
  const names = new Map<string, Array<string>>()
  const tracer = Tracer.make({
    span: (options) => {
      const span = Tracer.nativeTracer.span(options)
      const known = names.get(span.traceId)
      if (known === undefined) names.set(span.traceId, [span.name])
      else known.push(span.name)
      return span
    }
  })
  return { names, tracer }
}

/** Re-encodes the transaction with a wrong signature, whose bytes are the last ones before the envelope's end. */
const withBadSignature = (body: any) => {
  const copy = structuredClone(body)
  const bytes = Buffer.from(copy.paymentPayload.payload.transaction, "base64")
  // The symbol's padding, then the type and the length of the bytes that follow it.
  const at = bytes.indexOf("signature") + 9 + 3 + 4 + 4
  bytes[at + 20]! ^= 1
  copy.paymentPayload.payload.transaction = bytes.toString("base64")
  return copy
}

describe.each(databaseKinds)("the cost of a payment on %s", (database) => {
  it.live(
    "verify costs one call and no statement, settle a known number [S74, S77]",
    () => {
      const { names, tracer } = recording()
      return Effect.gen(function* () {
        const world = yield* Effect.withTracer(startFacilitator({ database }), tracer)
        const payer = yield* world.account()
        const seller = (yield* world.account(0n)).publicKey()
        const honest = () => world.payment({ payer, payTo: seller, amount: 10_000n })
        let traces = 0
        /** Sends a request with its own trace, and returns the calls to other services in it. */
        const costOf = Effect.fnUntraced(function* (path: "/verify" | "/settle", body: unknown) {
          const traceId = (++traces).toString(16).padStart(32, "a")
          const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
          const answer = yield* path === "/verify" ? world.verify(body, headers) : world.settle(body, headers)
          const made = names.get(traceId) ?? []
          expect(made).toContain(`POST ${path}`)
          return {
            said: answer.json,
            calls: made.flatMap((name) => (/^ledger\.[a-z]+[A-Z]/.test(name) ? [name.slice(7)] : [])),
            statements: made.filter((name) => /^(postgresql|sql\.)/.test(name)).length
          }
        })
        const free = { calls: [], statements: 0 }

        const { body } = yield* honest()
        expect(yield* costOf("/verify", body)).toMatchObject({
          said: { isValid: true },
          calls: ["simulateTransaction"],
          statements: 0
        })
        const text = JSON.stringify(body)
        for (const [refused, reason] of [
          [text.slice(0, -4), "invalid_request"],
          [text.replace('"x402Version":2', '"x402Version":"2"'), "invalid_request"],
          [{ ...body, paymentRequirements: { ...body.paymentRequirements, amount: "1" } }, "requirements_mismatch"],
          [
            { ...body, paymentPayload: { ...body.paymentPayload, payload: { transaction: "AAAA" } } },
            "invalid_exact_ledger_payload_malformed"
          ],
          [withBadSignature(body), "invalid_exact_ledger_payload_invalid_signature"]
        ] as ReadonlyArray<readonly [any, string]>) {
          expect(yield* costOf("/verify", refused)).toMatchObject({ said: { invalidReason: reason }, ...free })
        }
        const statements: Array<number> = []
        for (let times = 0; times < 3; times++) {
          const cost = yield* costOf("/settle", (yield* honest()).body)
          expect(cost).toMatchObject({ said: { success: true }, calls: ["simulateTransaction", "sendTransaction"] })
          statements.push(cost.statements)
        }
        // One each: the lookup, the check of the budget (read once a second), the channel, the record, the answer to
        // the submission, the outcome, its delivery. On a starved machine one of them polls once more.
        expect(Math.min(...statements)).toBeLessThanOrEqual(7)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
    },
    240_000
  )
})
