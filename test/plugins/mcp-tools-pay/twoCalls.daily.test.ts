// An agent that reads only the lines of a search completes each task in two calls: a search and a payment.
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { goods, openDemo, pagePrice, toolPrice } from "../../../examples/demo.ts"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { eventually } from "../../support/eventually.ts"
import { call, type Json } from "../mcp-tools/support.ts"
import { enabled } from "./httpWorld.ts"
import { PayWorld } from "./payWorld.ts"

/** An agent's questions, and its facts for the inputs. */
const tasks: ReadonlyArray<readonly [question: string, facts: Json]> = [
  ["tide tables of a harbour", { harbour: "Riga" }],
  ["exchange rate between currencies", { from: "EUR", to: "USD" }],
  ["stars visible tonight", { hours: 4 }],
  ["translates a word", { word: "sea", into: "lv" }],
  ["best chess move for a position", { fen: "8/8/8/8/8/8/8/8" }],
  ["departures of trains", { station: "Riga" }],
  ["recipe for an ingredient", { ingredient: "beet" }],
  ["place of a postcode", { code: "1050" }],
  ["annual report of a company", { company: "Acme" }],
  ["weather of the next days by city", { city: "Riga" }]
]

const partsOf = /(pathParameters|query|json|arguments): ((?:[\w.-]+ [\w./-]+(?: required)?(?:, )?)+)/g

/** Pays for the first result of a search with the facts that its line asks for. */
const complete = Effect.fnUntraced(function* (client: Client, question: string, facts: Json) {
  const { raw } = yield* call(client, "x402_search_resources", { query: question, limit: 3 })
  // The result whose description shares the most words with the question.
  const lines = raw["content"][0].text.split("\n") as ReadonlyArray<string>
  const shared = (line: string) => question.split(" ").filter((one) => line.toLowerCase().includes(one)).length
  const best = lines.toSorted((a, b) => shared(b) - shared(a))[0]!
  const [, tool, parts = "", ref] = / \| (x402_\w+_resource)(.*?) \| ref (\S+)$/.exec(best)!
  const given: Json = { ref }
  for (const [, part, members] of parts.matchAll(partsOf)) {
    const values = members!.split(", ").flatMap((member) => {
      const [name = "", type = ""] = member.split(" ")
      const fact = facts[name]
      return fact === undefined ? [] : [[name, part === "query" || type === "string" ? String(fact) : fact]]
    })
    given[part!] = Object.fromEntries(values)
  }
  return yield* call(client, tool!, given)
})

/** The market of `npm run demo`. */
const demo = Effect.gen(function* () {
  const { facilitator } = yield* PayWorld
  const [customer, owner] = [yield* facilitator.account(), yield* facilitator.account(0n)]
  const place = { facilitator: facilitator.url, ledger: facilitator.ledgerUrl, payTo: owner.publicKey() }
  return yield* Effect.acquireRelease(
    Effect.promise(() => openDemo(place, customer.secret())),
    ({ close }) => Effect.promise(close)
  )
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("two calls", (it) => {
  it.effect(
    "ten tasks on the demo's catalog end in a search and a payment each",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying } = yield* PayWorld
        yield* demo
        for (const description of [...goods.map((one) => one.description), "The weather of the next days, by city"])
          yield* eventually(
            facilitator.ask(`/discovery/search?query=${encodeURIComponent(description)}`),
            ({ json }) => json.resources?.some((one: Json) => one["description"] === description) === true
          )
        const client = yield* paying([enabled])
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [question, facts] of tasks) {
          const { body } = yield* complete(client, question, facts)
          expect([question, body["receipt"]?.status, body["message"], body["details"]]).toEqual([
            question,
            "settled",
            undefined,
            undefined
          ])
          const answered = body["json"]?.inputs ?? body["structuredContent"]
          for (const [name, fact] of Object.entries(facts)) expect(String(answered[name])).toBe(String(fact))
        }
        const spent = before - (yield* facilitator.balance(agent.publicKey()))
        expect(spent).toBe(pagePrice * BigInt(goods.length) + toolPrice)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("a blind call is refused before payment with the inputs, and the next one pays", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref: tool } = yield* PayWorld
      const { url } = yield* demo
      const page = encodeReference({ type: "http", url: `${url}/tides`, toolName: "" })
      const client = yield* paying([enabled])
      const before = yield* facilitator.balance(agent.publicKey())
      for (const [name, given, inputs] of [
        ["x402_fetch_resource", { ref: page }, "x402_fetch_resource query: harbour string required"],
        [
          "x402_fetch_resource",
          { ref: page, query: { harbor: "Riga" } },
          "x402_fetch_resource query: harbour string required"
        ],
        ["x402_call_resource", { ref: tool, arguments: { a: "one" } }, "x402_call_resource arguments: a number"]
      ] as const) {
        const { body } = yield* call(client, name, given)
        expect([body["code"], body["details"].inputs]).toEqual(["INVALID_ARGUMENT", expect.stringContaining(inputs)])
      }
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
      const { body } = yield* call(client, "x402_fetch_resource", { ref: page, query: { harbour: "Ventspils" } })
      expect(body["receipt"].status).toBe("settled")
    }).pipe(Effect.scoped)
  )
})
