// The typed client against a whole facilitator: its generated part matches the facilitator's own document, its calls
// return the routes' answers, and its stream of events resumes after the last event that it received.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { AnswerRefused, makeClient } from "../../examples/client/client.mjs"
import { generate, typeOf } from "../../examples/client/generate.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startFacilitator } from "../support/facilitator.ts"

it.live(
  "the client is generated from the document that is served, and its calls are the routes",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const document = (yield* facilitator.ask("/openapi.json")).json
      const { table, types } = generate(document)
      const stored = (name: string) => readFileSync(join(root, "examples", "client", name), "utf8")
      expect(stored("operations.mjs"), "run npm run client").toBe(table)
      expect(stored("types.ts"), "run npm run client").toBe(types)

      const client = makeClient({ url: facilitator.url })
      const call = <A>(work: () => Promise<A>) => Effect.promise(work)
      const supported = yield* call(() => client.supported())
      expect(supported.kinds.map(({ scheme }) => scheme)).toContain("exact")
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const pay = Effect.gen(function* () {
        const { body } = yield* facilitator.payment({ payer, payTo, amount: 1_000n })
        const settled = yield* call(() => client.settle({ body: body as never }))
        expect(settled.success).toBe(true)
        return settled.transaction
      })
      const first = yield* pay
      const found = yield* call(() => client.settlements({ query: { hash: first, identifier: undefined } }))
      expect(found.items[0]).toMatchObject({ transaction: first, status: "success", amount: "1000" })

      const read = async (count: number, after?: string) => {
        const control = new AbortController()
        const events: Array<{ id: string | undefined; event: string; data: { transaction: string } }> = []
        const options = { pauseMillis: 50, signal: control.signal, ...(after === undefined ? {} : { after }) }
        for await (const event of client.followSettlements(options)) {
          events.push(event)
          if (events.length === count) break
        }
        control.abort()
        return events
      }
      const events = yield* call(() => read(2))
      expect(events.map(({ event }) => event)).toEqual(["settlement.recorded", "settlement.settled"])
      const second = yield* pay
      const more = yield* call(() => read(2, events.at(-1)!.id))
      expect(more.map(({ data, event }) => [event, data.transaction])).toEqual([
        ["settlement.recorded", second],
        ["settlement.settled", second]
      ])

      const terms = {
        scheme: "exact",
        network: "stellar:testnet",
        amount: "1000",
        asset: testnetUsdc,
        payTo,
        maxTimeoutSeconds: 300
      }
      const prepared = yield* call(() =>
        client.prepare({ body: { x402Version: 2, paymentRequirements: terms, payer: payer.publicKey() } })
      )
      expect(prepared.fees.sponsored).toBe(true)
      const refused = yield* call(() =>
        client.settlements({ query: { hash: "0".repeat(64), identifier: undefined } }).then(
          () => undefined,
          (error: unknown) => error
        )
      )
      expect(refused).toBeInstanceOf(AnswerRefused)
      expect(refused).toMatchObject({ operation: "settlements", status: 404 })
    }).pipe(Effect.scoped),
  240_000
)

it("types follow the schemas of the document", () => {
  expect(typeOf({ type: "string" })).toBe("string")
  expect(typeOf({ anyOf: [{ type: "string" }, { type: "null" }] })).toBe("string | null")
  expect(typeOf({ type: "string", enum: ["a", "b"] })).toBe('"a" | "b"')
  expect(typeOf({ $ref: "#/components/schemas/Settlement" })).toBe("Settlement")
  expect(typeOf({ type: "object", properties: { a: { type: "integer" } }, required: [] })).toBe(
    "{\n  readonly a?: number\n}"
  )
})
