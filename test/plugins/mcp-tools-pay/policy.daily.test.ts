import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { NodeServices } from "@effect/platform-node"
import { expect, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { MigrationsFolder } from "../../../kernel/database/Migrations.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { decideApproval, decisions, listApprovals } from "../../../plugins/mcp-tools-pay/policy/administration.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { askRaw, call, connectHttp, type Json } from "../mcp-tools/support.ts"
import { agentKey, pay, PayWorld } from "./payWorld.ts"
import { amount } from "./seller.ts"

let fresh = 0
/** Unique arguments for every test, so that no two calls are identical. */
const args = () => ({ a: ++fresh, b: 9_000 })

const rules = (...all: ReadonlyArray<object>) => `policy.rules=${JSON.stringify(all)}`
/** The person behind an HTTP client is asked. */
const trusting = "policy.ask_client=http-clients"
const asking = rules({ name: "dear", above: 1_999, outcome: "approve" })

/** An operator with access to a tool server's state folder. */
const operatorAt = (stateFolder: string) => {
  const ground = Layer.mergeAll(
    Settings.layerTest(),
    Layer.succeed(Host, { name: "test", stateFolder }),
    NodeCrypto.layer,
    NodeServices.layer,
    Layer.succeed(DatabaseSource, { open: Effect.die(new Error("no database is needed here")) }),
    Layer.succeed(MigrationsFolder, { path: "none" })
  )
  return {
    list: Effect.provide(listApprovals, ground),
    decide: (id: string, state: "approved" | "denied") => Effect.provide(decideApproval(id, state), ground),
    log: Effect.map(Effect.provide(decisions, ground), (text) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    )
  }
}

const stateFolder = Effect.provide(
  Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped()),
  NodeServices.layer
)

/** A client with an answering person, and the questions the person was asked. */
const withPerson = Effect.fnUntraced(function* (url: string, answer: object | (() => never)) {
  const asked: Array<string> = []
  const client = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "agent", version: "1.0.0" }, { capabilities: { elicitation: {} } })
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params.message)
        return (typeof answer === "function" ? answer() : answer) as never
      })
      const headers = { authorization: `Bearer ${agentKey.split(":")[1]}` }
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }) as Transport
      )
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )
  return { asked, client }
})

const bearer = { authorization: `Bearer ${agentKey.split(":")[1]}` }

/** The official client of the era without sessions, with an answering person. */
const connectModern = (url: string, answer: (message: string) => object) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new ModernClient(
        { name: "agent", version: "1.0.0" },
        { capabilities: { elicitation: {} }, versionNegotiation: { mode: "auto" } }
      )
      client.setRequestHandler("elicitation/create", ({ params }) => answer(params.message) as never)
      await client.connect(new ModernTransport(new URL(`${url}/mcp`), { requestInit: { headers: bearer } }))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a policy", (it) => {
  it.effect("a payment refused by a rule names the rule and signs nothing [S217]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const client = yield* paying([rules({ name: "no-adders", recipients: [seller.payTo] })])
      const [before, calls] = [yield* facilitator.balance(agent.publicKey()), seller.calls.length]
      const { body } = yield* pay(client, ref, args())
      expect(body).toMatchObject({ code: "PAYMENT_REJECTED", details: { rule: "no-adders" } })
      expect(seller.calls.slice(calls).every(({ payment }) => payment === undefined)).toBe(true)
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
    }).pipe(Effect.scoped)
  )

  it.effect("a policy decision is explained without contacting the seller or paying [S217]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller, versionHash } = yield* PayWorld
      seller.behaviour = {}
      const methods = seller.methods.length
      const { body } = yield* call(yield* paying([asking]), "x402_explain_payment", { ref })
      expect(body).toEqual({
        scheme: "exact",
        network: "ledger:testnet",
        asset: seller.terms()["asset"],
        payTo: seller.payTo,
        amount: amount.toString(),
        versionHash,
        decision: "approve",
        rule: "dear"
      })
      expect(seller.methods.length).toBe(methods)
    }).pipe(Effect.scoped)
  )

  it.effect("the person behind the client is asked, with amount and recipient", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const url = yield* toolsUrl([asking, trusting])
      const willing = yield* withPerson(url, { action: "accept", content: { approve: true } })
      expect((yield* pay(willing.client, ref, args())).body["receipt"]?.status).toBe("settled")
      expect(willing.asked).toHaveLength(1)
      for (const part of [
        "Agent key:agent asks to buy",
        `"tool add of ${seller.url}", with the arguments {"a":`,
        `Price: 0.0002 USDC (2000 atomic units of ${seller.terms()["asset"]}), paid to ${seller.payTo}`,
        new URL(seller.url).origin,
        "Budget of key:agent: at most 0.1 USDC a call, 5 USDC a session and 5 USDC a day",
        "Rule dear"
      ])
        expect(willing.asked[0]).toContain(part)
      for (const answer of [{ action: "decline" }, { action: "accept", content: { approve: false } }]) {
        const unwilling = yield* withPerson(url, answer)
        const own = args()
        // The refusal is stored, for this client and for any other of the agent's.
        for (const client of [unwilling.client, unwilling.client, willing.client])
          expect((yield* pay(client, ref, own)).body).toMatchObject({
            code: "PAYMENT_REJECTED",
            message: "a person denied this payment",
            details: { rule: "dear" }
          })
        expect([unwilling.asked.length, willing.asked.length]).toEqual([1, 1])
      }
    }).pipe(Effect.scoped)
  )

  it.effect("concurrent calls of one invocation share one question and its answer", () =>
    Effect.gen(function* () {
      const { agent, facilitator, ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const url = yield* toolsUrl([asking, trusting])
      const [no, yes] = [{ action: "decline" }, { action: "accept", content: { approve: true } }]
      const before = yield* facilitator.balance(agent.publicKey())
      const twins = Effect.fnUntraced(function* (answer: object) {
        const people = [yield* withPerson(url, answer), yield* withPerson(url, answer)] as const
        const own = args()
        const answered = yield* Effect.all(
          [0, 1, 0, 1, 0].map((at) => pay(people[at]!.client, ref, own)),
          { concurrency: "unbounded" }
        )
        return { answered, asked: people.flatMap(({ asked }) => asked) }
      })
      const refused = yield* twins(no)
      expect(refused.asked).toHaveLength(1)
      expect(refused.answered.map(({ body }) => body["message"])).toEqual(
        Array.from({ length: 5 }, () => "a person denied this payment")
      )
      const paid = yield* twins(yes)
      expect(paid.asked).toHaveLength(1)
      const receipts = paid.answered.map(({ body }) => body["receipt"]?.transaction)
      expect(new Set(receipts).size, JSON.stringify(paid.answered)).toBe(1)
      expect(receipts[0]).toMatch(/^[0-9a-f]{64}$/)
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect("a program with an agent's key approves no payment of its own over HTTP", () =>
    Effect.gen(function* () {
      const { agent, facilitator, ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const before = yield* facilitator.balance(agent.publicKey())
      for (const set of [[asking], [asking, "policy.ask_client=true"]]) {
        const itself = yield* withPerson(yield* toolsUrl(set), { action: "accept", content: { approve: true } })
        const { body } = yield* pay(itself.client, ref, args())
        expect(body).toMatchObject({ code: "PAYMENT_REJECTED", details: { approval: { state: "pending" } } })
        expect(itself.asked).toEqual([])
      }
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
    }).pipe(Effect.scoped)
  )

  it.effect("a dismissed question goes to an operator and is not repeated", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const folder = yield* stateFolder
      const operator = operatorAt(folder)
      const dismissing = yield* withPerson(yield* toolsUrl([asking, trusting], folder), { action: "cancel" })
      const own = args()
      for (let round = 0; round < 3; round++)
        expect((yield* pay(dismissing.client, ref, own)).body).toMatchObject({
          details: { approval: { state: "pending" } }
        })
      expect(dismissing.asked).toHaveLength(1)
      const [request] = yield* operator.list
      expect(request?.bought).toEqual({
        title: expect.any(String),
        action: `tool add of ${seller.url}`,
        arguments: JSON.stringify(own),
        price: "0.0002 USDC",
        budget: "key:agent: at most 0.1 USDC a call, 5 USDC a session and 5 USDC a day"
      })
      expect(yield* operator.decide(request!.id, "approved")).toBe(true)
      expect((yield* pay(dismissing.client, ref, own)).body["receipt"]?.status).toBe("settled")
    }).pipe(Effect.scoped)
  )

  it.effect("agent text is shown to the person shortened and safely quoted", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const person = yield* withPerson(yield* toolsUrl([asking, trusting]), { action: "decline" })
      const text = `\u202e"\n\nPrice: 0 USDC\u200b${"x".repeat(2_000)}`
      yield* pay(person.client, ref, { ...args(), text })
      const [question] = person.asked
      expect(question).not.toMatch(/[\u202e\u200b]/)
      expect(question!.split("\n").filter((line) => line.startsWith("Price:"))).toEqual([
        expect.stringContaining("0.0002 USDC")
      ])
      expect(question!.length).toBeLessThan(1_500)
    }).pipe(Effect.scoped)
  )

  it.effect("a client that fails to ask its person gets an error with a code", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      const calls = seller.calls.length
      const { asked, client } = yield* withPerson(yield* toolsUrl([asking, trusting]), () => {
        throw new Error("there is no form")
      })
      expect((yield* pay(client, ref, args())).body).toMatchObject({
        code: "PAYMENT_REJECTED",
        retryable: true,
        message: expect.stringContaining("nothing was paid")
      })
      expect([asked.length, seller.calls.length]).toEqual([1, calls])
    }).pipe(Effect.scoped)
  )

  it.effect("a person is asked without sessions, and the answer covers one payment", () =>
    Effect.gen(function* () {
      const { agent, facilitator, ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const url = yield* toolsUrl([asking, trusting, "budget.replay_seconds=0"])
      const before = yield* facilitator.balance(agent.publicKey())
      const asked: Array<string> = []
      const modern = yield* connectModern(url, (message) => {
        asked.push(message)
        return { action: "accept", content: { approve: true } }
      })
      const name = "x402_call_resource"
      const paid = (yield* Effect.promise(() =>
        modern.callTool({ name, arguments: { ref, arguments: args() } })
      )) as any
      expect(paid.structuredContent.receipt.status).toBe("settled")
      expect(asked).toEqual([expect.stringContaining(seller.payTo)])

      // The rounds of one call, by hand: an earlier answer does not count for a new question.
      const params = { name, arguments: { ref, arguments: args() } }
      const rounds = { capabilities: { elicitation: {} }, headers: bearer }
      const round = (inputResponses: Json = {}) =>
        Effect.map(askRaw(url, "tools/call", { ...params, inputResponses }, rounds), ({ body }) => body["result"])
      const first = yield* round()
      expect(first.resultType).toBe("input_required")
      const [key] = Object.keys(first.inputRequests)
      const yes = { [key!]: { action: "accept", content: { approve: true } } }
      // An answer under another key does not count: such a call waits for the shared question, and gets the same
      // answer.
      const [twin, answered] = yield* Effect.all([round({ approve: yes[key!] }), round(yes)], { concurrency: 2 })
      expect(answered.structuredContent.receipt?.status, JSON.stringify([twin, answered])).toBe("settled")
      expect(twin.structuredContent.receipt).toEqual(answered.structuredContent.receipt)
      // Another request acknowledges the answer; the same call is a new purchase then.
      yield* askRaw(url, "tools/call", { name: "x402_search_resources", arguments: {} }, { headers: bearer })
      const replayed = yield* round(yes)
      expect(replayed.resultType).toBe("input_required")
      expect(Object.keys(replayed.inputRequests)).not.toContain(key)
      // Without the elicitation capability, the payment waits for an operator.
      const mute = yield* askRaw(url, "tools/call", { ...params, inputResponses: yes }, { headers: bearer })
      expect(mute.body["result"].structuredContent.code).toBe("PAYMENT_REJECTED")
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * amount)
    }).pipe(Effect.scoped)
  )

  it.effect("an operator's approval lets exactly one held payment pass", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const folder = yield* stateFolder
      const operator = operatorAt(folder)
      const client = yield* paying([asking, "budget.replay_seconds=0"], agentKey, folder)
      const before = yield* facilitator.balance(agent.publicKey())
      const own = args()
      const held = yield* pay(client, ref, own)
      expect(held.body).toMatchObject({ code: "PAYMENT_REJECTED", details: { approval: { state: "pending" } } })
      expect((yield* pay(client, ref, own)).body["details"]).toEqual(held.body["details"])
      const { id } = held.body["details"].approval
      expect(yield* operator.list).toMatchObject([
        { id, state: "pending", agent: "key:agent", amount: "2000", payTo: seller.payTo, rule: "dear" }
      ])
      expect(yield* operator.decide(id, "approved")).toBe(true)
      expect(yield* operator.decide(id, "denied")).toBe(false)
      // Of two concurrent calls only one passes, and never another call.
      expect((yield* pay(client, ref, args())).body["code"]).toBe("PAYMENT_REJECTED")
      const both = yield* Effect.all([pay(client, ref, own), pay(client, ref, own)], { concurrency: "unbounded" })
      const paid = both.flatMap(({ body }) => body["receipt"]?.paymentIdentifier ?? [])
      expect(new Set(paid).size).toBe(1)
      yield* call(client, "x402_search_resources", {})
      expect((yield* pay(client, ref, own)).body).toMatchObject({ details: { approval: { state: "pending" } } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
      const outcomes = (yield* operator.log).map(({ outcome, rule }) => `${outcome} by ${rule}`)
      expect(outcomes.filter((one) => one === "approved by dear")).toHaveLength(1)
      expect(outcomes.filter((one) => one === "not approved by dear").length).toBeGreaterThanOrEqual(3)
    }).pipe(Effect.scoped)
  )

  it.effect("one approval pays once for two windows on one state folder [S217]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const folder = yield* stateFolder
      const window = paying([asking, "budget.store=file", "budget.replay_seconds=0"], agentKey, folder)
      const windows = [yield* window, yield* window] as const
      const before = yield* facilitator.balance(agent.publicKey())
      const own = args()
      const { id } = (yield* pay(windows[0], ref, own)).body["details"].approval
      expect((yield* pay(windows[1], ref, own)).body["details"].approval).toMatchObject({ id, state: "pending" })
      expect(yield* operatorAt(folder).decide(id, "approved")).toBe(true)
      const racing = [...windows, ...windows].map((client) => pay(client, ref, own))
      const all = yield* Effect.all(racing, { concurrency: "unbounded" })
      const paid = all.flatMap(({ body }) => body["receipt"]?.paymentIdentifier ?? [])
      expect(new Set(paid).size, JSON.stringify(all.map(({ body }) => body))).toBe(1)
      for (const client of windows) yield* call(client, "x402_search_resources", {})
      expect((yield* pay(windows[1], ref, own)).body).toMatchObject({ details: { approval: { state: "pending" } } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect("an operator decides over HTTP with an operator key, not an agent's", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      seller.behaviour = {}
      const operator = "0f1e2d3c4b5a6978"
      const url = yield* toolsUrl([asking], undefined, { OPERATOR_API_KEYS: `boss:${operator}` })
      const client = yield* connectHttp(url, agentKey.split(":")[1])
      const own = args()
      const { id } = (yield* pay(client, ref, own)).body["details"].approval
      const ask = (path: string, key?: string, body?: unknown, origin?: string) =>
        Effect.promise(async () => {
          const headers = {
            "content-type": "application/json",
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...(origin === undefined ? {} : { origin })
          }
          const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
          const answer = await fetch(`${url}${path}`, { headers, ...init })
          return [answer.status, await answer.json()] as [number, Json]
        })
      const yes = { decision: "approve" }
      for (const key of [undefined, agentKey.split(":")[1]!, "x".repeat(16)]) {
        expect((yield* ask("/approvals", key))[0]).toBe(401)
        expect((yield* ask(`/approvals/${id}`, key, yes))[0]).toBe(401)
      }
      expect((yield* ask(`/approvals/${id}`, operator, yes, "https://evil.example"))[0]).toBe(403)
      const [, { approvals }] = yield* ask("/approvals", operator)
      expect(approvals).toMatchObject([{ id, state: "pending", agent: "key:agent", amount: "2000" }])
      expect(Object.keys(approvals[0])).not.toContain("mark")
      expect((yield* ask(`/approvals/${id}`, operator, { decision: "perhaps" }))[0]).toBe(400)
      expect((yield* ask("/approvals/..%2f..%2fx", operator, yes))[0]).toBe(404)
      expect(yield* ask(`/approvals/${id}`, operator, yes)).toEqual([200, { id, state: "approved" }])
      expect((yield* ask(`/approvals/${id}`, operator, yes))[0]).toBe(404)
      expect((yield* pay(client, ref, own)).body["receipt"]?.status).toBe("settled")
      // Without operator keys no caller is an operator.
      const keyless = yield* toolsUrl([asking])
      const refused = yield* Effect.promise(() => fetch(`${keyless}/approvals`, { headers: bearer }))
      expect(refused.status).toBe(403)
    }).pipe(Effect.scoped)
  )

  it.effect("a refusal is final, and an agent's payments per minute are limited", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const folder = yield* stateFolder
      const operator = operatorAt(folder)
      const client = yield* paying([asking], agentKey, folder)
      const own = args()
      const { id } = (yield* pay(client, ref, own)).body["details"].approval
      expect(yield* operator.decide(id, "denied")).toBe(true)
      for (let round = 0; round < 2; round++)
        expect((yield* pay(client, ref, own)).body).toMatchObject({
          code: "PAYMENT_REJECTED",
          details: { rule: "dear" }
        })
      const slow = yield* paying(["policy.max_payments_per_minute=1"])
      expect((yield* pay(slow, ref, args())).body["receipt"]?.status).toBe("settled")
      expect((yield* pay(slow, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
    }).pipe(Effect.scoped)
  )
})
