// Refused payments as operators find them: by reason and key, with samples, in the route, the command and the metrics.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { settlements } from "../../../runtime/commands/settlements.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const key = "a-secret-of-the-shop"
const authorization = { authorization: `Bearer ${key}` }

const run = Effect.fnUntraced(function* (world: Facilitator, ...words: ReadonlyArray<string>) {
  const out: Array<string> = []
  const outer = yield* Console.Console
  const tree = Command.make("tollkeeper").pipe(Command.withSubcommands([settlements]))
  yield* Command.runWith(tree, { version: "0" })(["settlements", ...words]).pipe(
    Effect.provideService(Within, { services: world.services, folder: "." }),
    Effect.provideService(Console.Console, { ...outer, log: (...parts) => void out.push(parts.map(String).join(" ")) }),
    Effect.provide(NodeServices.layer)
  )
  return out.join("\n")
})

it.live(
  "strange text of a refused payment is counted and printed inert",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ environment: { FACILITATOR_API_KEYS: `shop:${key}` } })
      const payer = yield* world.account(5_000n)
      const payTo = (yield* world.account(0n)).publicKey()
      const strange = (asset: string) =>
        Effect.flatMap(
          world.payment({ payer, payTo, amount: 10_000n, resourceUrl: `https://shop.example/${asset}` }),
          ({ body }) =>
            world.verify({ ...body, paymentRequirements: { ...body.paymentRequirements, asset } }, authorization)
        )
      // Cut to 300 characters, it ends with half a pair.
      expect((yield* strange(`${"a".repeat(299)}\u{1f600}`)).json).toMatchObject({ isValid: false })
      const refused = (yield* strange("C\n\u001b]52;c;cm0gLXJmIH4=\u0007")).json
      expect(refused).toMatchObject({ isValid: false })
      const list = Effect.map(
        world.ask("/analytics/v1/refusals", { headers: authorization }),
        ({ json }) => json.items as ReadonlyArray<{ readonly refused: string }>
      )
      yield* eventually(list, (items) => items.reduce((sum, one) => sum + Number(one.refused), 0) === 2)
      const lines = yield* run(world, "list", "--which", "refused")
      expect(lines).toContain(String.raw`10000 of C\n\u001b]52;c;cm0gLXJmIH4=\u0007`)
      expect(lines).not.toMatch(/[^\n\P{Cc}]/u)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "refused payments are counted by reason and key, with samples that hold no secret",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ environment: { FACILITATOR_API_KEYS: `shop:${key}` } })
      const payer = yield* world.account(5_000n)
      const payTo = (yield* world.account(0n)).publicKey()
      const resourceUrl = "https://shop.example/a,b"
      const { body } = yield* world.payment({ payer, payTo, amount: 10_000n, resourceUrl })
      const refused = (yield* world.verify(body, authorization)).json
      expect(refused).toMatchObject({ isValid: false })
      const reason: string = refused.invalidReason
      yield* world.settle(body, authorization)
      yield* world.settle(body, authorization)
      expect((yield* world.verify(body)).status).toBe(401)

      const list = (query = "") => world.ask(`/analytics/v1/refusals${query}`, { headers: authorization })
      const { items } = yield* eventually(
        Effect.map(list(), ({ json }) => json),
        ({ items }) => items.reduce((sum: number, one: any) => sum + Number(one.refused), 0) === 4
      )
      expect(items.map((one: any) => [one.operation, one.reason, one.principal, one.refused])).toEqual([
        ["settle", reason, "key:shop", "2"],
        ["verify", reason, "key:shop", "1"],
        ["verify", "unauthorized", "none", "1"]
      ])
      expect(items[0].samples).toHaveLength(2)
      expect(items[0].samples[0]).toMatchObject({
        payer: payer.publicKey(),
        pay_to: payTo,
        amount: "10000",
        resource_url: resourceUrl,
        message: refused.invalidMessage
      })
      expect(JSON.stringify(items)).not.toContain(key)
      expect(JSON.stringify(items)).not.toContain(body.paymentPayload.payload.transaction.slice(0, 40))
      expect((yield* list(`?reason=${reason}`)).json.items).toHaveLength(2)
      expect((yield* list(`?payer=${payer.publicKey()}`)).json.items).toHaveLength(2)
      expect((yield* list(`?payer=${payTo}`)).json.items).toHaveLength(0)
      expect((yield* list("?reason=No!")).status).toBe(400)
      const groups = (query: string) =>
        Effect.map(list(query), ({ json }) => json.items.map((one: any) => `${one.operation} ${one.principal}`))
      expect(yield* groups("?operation=settle")).toEqual(["settle key:shop"])
      expect(yield* groups("?key=shop")).toEqual(["settle key:shop", "verify key:shop"])
      expect(yield* groups("?key=none")).toEqual(["verify none"])
      const today = new Date().toISOString().slice(0, 10)
      const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
      expect(yield* groups(`?from=${today}&to=${tomorrow}`)).toHaveLength(3)
      expect(yield* groups(`?to=${today}`)).toEqual([])
      // Pages by cursor hold each group once, in the same order.
      const paged: Array<string> = []
      for (let cursor: string | null = ""; cursor !== null;) {
        const read: Answer = yield* list(`?limit=1&cursor=${encodeURIComponent(cursor)}`)
        paged.push(...read.json.items.map((one: any) => `${one.operation} ${one.principal}`))
        cursor = read.json.pagination.cursor
      }
      expect(paged).toEqual(yield* groups(""))

      const lines = yield* run(world, "list", "--which", "refused", "--since", "24h", "--payer", payer.publicKey())
      expect(lines).toContain("2 refused")
      expect(lines).toContain("key:shop")
      expect(lines).toContain("3 payments refused, 2 by reason and key")

      const metrics = (yield* world.ask("/metrics", { headers: authorization })).text
      expect(metrics).toMatch(
        new RegExp(`tollkeeper_payment_refusals_total\\{[^}]*operation="settle"[^}]*reason="${reason}"[^}]*\\} 2`)
      )

      const rich = yield* world.account()
      const paid = yield* world.payment({ payer: rich, payTo, amount: 10_000n })
      const settled = (yield* world.settle(paid.body, authorization)).json
      expect(settled).toMatchObject({ success: true })
      expect(yield* run(world, "list")).toContain("0 settlements without an end")
      expect(yield* run(world, "list", "--which", "settled", "--since", "1h")).toContain("1 settlement settled")
      expect(yield* run(world, "list", "--which", "settled", "--payer", payer.publicKey())).toContain("0 settlements")
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a sample's text may be cut within a character",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ environment: { FACILITATOR_API_KEYS: `shop:${key}` } })
      const payer = yield* world.account(5_000n)
      const payTo = (yield* world.account(0n)).publicKey()
      const resourceUrl = `https://shop.example/${"x".repeat(278)}\u{1f600}`
      const { body } = yield* world.payment({ payer, payTo, amount: 10_000n, resourceUrl })
      expect((yield* world.verify(body, authorization)).json).toMatchObject({ isValid: false })
      const { items } = yield* eventually(
        Effect.map(world.ask("/analytics/v1/refusals", { headers: authorization }), ({ json }) => json),
        ({ items }) => items.length > 0
      )
      expect(items[0].samples[0].resource_url).toBe(`${resourceUrl.slice(0, 299)}\ufffd`)
    }).pipe(Effect.scoped),
  240_000
)
