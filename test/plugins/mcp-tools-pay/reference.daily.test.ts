// An agent that forges a reference gets only the listing: the operator's rule holds, no address of the agent's is
// dialed, and nothing is paid, over MCP and HTTP.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { eventually } from "../../support/eventually.ts"
import { declaring, queryDeclaration } from "../catalog/support.ts"
import { call, connectHttp } from "../mcp-tools/support.ts"
import { httpAmount } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld, query, refOf } from "./httpWorld.ts"
import { agentKey, pay, PayWorld } from "./payWorld.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 130_000 })

/** Other spellings of one URL; a catalog normalizes some of them. */
const twins = (text: string): ReadonlyArray<string> => {
  const { host, hostname, origin, pathname, port } = new URL(text)
  return [
    `http://${hostname}.:${port}${pathname}`,
    `HTTP://${host}${pathname}`,
    `http://2130706433:${port}${pathname}`,
    `http://[::ffff:7f00:1]:${port}${pathname}`,
    `http://user@${host}${pathname}`,
    `${origin}${pathname}?admin=1`,
    `${origin}${pathname}#x`,
    `${origin}/.${pathname}`,
    `${origin}/%${pathname.charCodeAt(1).toString(16)}${pathname.slice(2)}`,
    `${origin}${pathname.toUpperCase()}`
  ]
}

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a forged reference", (it) => {
  it.effect(
    "a forged reference gets the listing's own and passes no rule [S200, S207, S217]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const { ref: page, seller: shop } = yield* HttpWorld
        seller.behaviour = {}
        shop.behaviour = {}
        const origins = [new URL(seller.url).origin, shop.origin].map((one) => `"${one}/"`).join()
        const denied = `policy.rules=[{name: closed, origins: [${origins}], outcome: deny}]`
        const before = yield* facilitator.balance(agent.publicKey())
        for (const set of [[enabled, denied], [enabled]]) {
          const client = yield* paying(set)
          const [methods, received] = [seller.methods.length, shop.received.length]
          for (const url of twins(seller.url)) {
            const { body } = yield* pay(client, encodeReference({ type: "mcp", url, toolName: "add" }), args())
            expect([url, body["code"]]).toEqual([url, expect.stringMatching(/^(INVALID_ARGUMENT|NO_RESULTS)$/)])
            if (body["code"] === "INVALID_ARGUMENT") expect(body["details"].ref).toBe(ref)
          }
          for (const url of [...twins(`${shop.origin}/weather`), `${shop.origin}/cities/riga`]) {
            const { body } = yield* fetched(client, encodeReference({ type: "http", url, toolName: "" }))
            expect([url, body["code"]]).toEqual([url, expect.stringMatching(/^(INVALID_ARGUMENT|NO_RESULTS)$/)])
          }
          const { body } = yield* call(client, "x402_explain_payment", {
            ref: encodeReference({ type: "mcp", url: twins(seller.url)[0]!, toolName: "add" })
          })
          expect(body["details"].ref).toBe(ref)
          expect([seller.methods.length, shop.received.length]).toEqual([methods, received])
        }
        expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
        // With its own reference the rule decides, before the seller is contacted.
        const client = yield* paying([enabled, denied])
        const [methods, received] = [seller.methods.length, shop.received.length]
        for (const { body } of [yield* pay(client, ref, args()), yield* fetched(client, page)])
          expect(body).toMatchObject({ code: "PAYMENT_REJECTED", details: { rule: "closed" } })
        expect([seller.methods.length, shop.received.length]).toEqual([methods, received])
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("a route's reference leads to its listing, with parameters separate [S200]", () =>
    Effect.gen(function* () {
      const { facilitator, paying } = yield* PayWorld
      const { seller } = yield* HttpWorld
      seller.behaviour = {}
      const client = yield* paying([enabled])
      const ref = refOf(seller, "/cities/:name")
      const declared = {
        payer: yield* facilitator.account(),
        payTo: seller.terms().payTo,
        url: `${seller.origin}/cities/riga`,
        extension: queryDeclaration({ routeTemplate: "/cities/:name" }),
        amount: httpAmount
      }
      expect((yield* facilitator.settle(yield* declaring(facilitator, declared))).json.success).toBe(true)
      // A payment under the route's words is evidence for them; an unpaid claim does not answer for other URLs.
      const { body } = yield* eventually(
        fetched(client, refOf(seller, "/cities/riga")),
        ({ body }) => body["code"] === "INVALID_ARGUMENT"
      )
      expect(body["details"].ref).toBe(ref)
      const own = { ref, pathParameters: { name: "riga" }, query: query() }
      expect((yield* call(client, "x402_fetch_resource", own)).body["receipt"]?.status).toBe("settled")
    }).pipe(Effect.scoped)
  )

  it.effect("an approval is returned when the seller's terms have changed [S217]", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-approval-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
      )
      const url = yield* toolsUrl(["policy.otherwise=approve", "budget.replay_seconds=0"], folder, {
        OPERATOR_API_KEYS: "boss:0f1e2d3c4b5a6978"
      })
      const client = yield* connectHttp(url, agentKey.split(":")[1])
      const own = args()
      const methods = seller.methods.length
      const { approval } = (yield* pay(client, ref, own)).body["details"]
      expect(seller.methods.length).toBe(methods)
      yield* Effect.promise(() =>
        fetch(`${url}/approvals/${approval.id}`, {
          method: "POST",
          headers: { authorization: "Bearer 0f1e2d3c4b5a6978", "content-type": "application/json" },
          body: JSON.stringify({ decision: "approve" })
        })
      )
      seller.behaviour = { challenge: (asked) => ({ ...asked, accepts: [{ ...asked["accepts"][0], amount: "2001" }] }) }
      expect((yield* pay(client, ref, own)).body["code"]).toBe("RESOURCE_CHANGED")
      seller.behaviour = {}
      expect((yield* pay(client, ref, own)).body["receipt"]?.status).toBe("settled")
      // Another request has acknowledged it, so it is bought again.
      yield* call(client, "x402_search_resources", {})
      expect((yield* pay(client, ref, own)).body["details"].approval.state).toBe("pending")
      // A returned approval is used again unchanged: no call passes together with a used approval.
      const lines = readFileSync(join(folder, "tools-decisions.jsonl"), "utf8").trim().split("\n")
      const outcomes = lines.map((line) => (JSON.parse(line) as { readonly outcome: string }).outcome)
      expect(outcomes.filter((outcome) => outcome.startsWith("approved"))).toEqual(["approved", "approved"])
    }).pipe(Effect.scoped)
  )
})
