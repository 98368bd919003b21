import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pay, payingSet, PayWorld, sealed, stdioCommand } from "./payWorld.ts"
import { amount, type Seller } from "./seller.ts"
import { call, connectHttp, type Json, startTools } from "../mcp-tools/support.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"

/** Unique arguments for every test, so that no two calls are identical. */
let fresh = 0
const args = () => ({ a: ++fresh, b: 1_000 })

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("paying for an agent", (it) => {
  it.effect(
    "a paid tool is called twice and returns content with a receipt [S201, S203, S204, S208, S212, S213, S214, S215, S216, S220]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller, versionHash } = yield* PayWorld
        seller.behaviour = {}
        const before = {
          agent: yield* facilitator.balance(agent.publicKey()),
          seller: yield* facilitator.balance(seller.payTo),
          calls: seller.calls.length
        }
        const client = yield* paying()
        const { tools } = yield* Effect.promise(() => client.listTools())
        const inputs = tools.find(({ name }) => name === "x402_call_resource")!.inputSchema.properties
        expect(Object.keys(inputs ?? {}).sort()).toEqual(
          ["ref", "arguments", "expectedVersionHash", "scheme", "network", "asset", "maxAtomicAmount"].sort()
        )
        const own = args()
        const { body, isError } = yield* pay(client, ref, own, {
          expectedVersionHash: versionHash,
          network: "ledger:testnet",
          scheme: "exact",
          asset: testnetUsdc,
          maxAtomicAmount: "2000"
        })
        expect({ isError, body }).toEqual({
          isError: false,
          body: {
            content: [{ type: "text", text: String(own.a + 1_000), annotations: { audience: ["user"] } }],
            structuredContent: { sum: own.a + 1_000 },
            receipt: {
              paymentIdentifier: expect.stringMatching(/^pay_[0-9a-f]{32}$/),
              ref,
              versionHash,
              network: "ledger:testnet",
              scheme: "exact",
              asset: testnetUsdc,
              payTo: seller.payTo,
              authorizedAmount: "2000",
              settledAmount: "2000",
              transaction: seller.settlements.at(-1)!["transaction"],
              status: "settled",
              source: "seller"
            }
          }
        })
        const [unpaid, paid] = seller.calls.slice(before.calls)
        expect(seller.calls.length - before.calls).toBe(2)
        expect([unpaid!.args, unpaid!.payment, paid!.args]).toEqual([own, undefined, own])
        expect(paid!.payment!["extensions"]["payment-identifier"].info).toEqual({
          id: body["receipt"].paymentIdentifier
        })
        expect(paid!.payment!["accepted"]).toEqual(seller.terms())
        expect(before.agent - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
        expect((yield* facilitator.balance(seller.payTo)) - before.seller).toBe(amount)
        expect(
          seller.methods.filter(
            (method) => !["initialize", "notifications/initialized", "tools/list", "tools/call"].includes(method)
          )
        ).toEqual([])
      }).pipe(Effect.scoped)
  )

  it.effect("paid content is delivered with any member names [S214]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const odd =
        '{"constructor":{"prototype":{"__proto__":1}},"in":{"__proto__":{"isError":true}},"hasOwnProperty":[]}'
      seller.behaviour = {
        paid: (result) => ({
          ...result,
          content: [{ type: "text", text: odd }],
          structuredContent: JSON.parse(odd)
        })
      }
      const client = yield* paying()
      const answer = yield* Effect.promise(() =>
        client.callTool({ name: "x402_call_resource", arguments: { ref, arguments: args() } })
      )
      const body = JSON.parse((answer["content"] as any)[0].text)
      expect(answer["isError"] === true, JSON.stringify(body)).toBe(false)
      expect(body.receipt.status).toBe("settled")
      expect(JSON.stringify(body.structuredContent)).toBe(odd)
      expect(body.content[0].text).toBe(odd)
    }).pipe(Effect.scoped)
  )

  it.effect("the receipt spells the network in the operator's first dialect [S216]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const { body } = yield* pay(yield* paying(["wire.dialects=[stellar, ledger]"]), ref, args(), {
        network: "stellar:testnet"
      })
      expect(body["receipt"].network).toBe("stellar:testnet")
    }).pipe(Effect.scoped)
  )

  it.effect(
    "payment works over stdio with an environment seed that is never shown [S249, S252]",
    () =>
      Effect.gen(function* () {
        const { agent, ref, seller } = yield* PayWorld
        seller.behaviour = {}
        const folder = mkdtempSync(join(tmpdir(), "tollkeeper-stdio-"))
        const transport = new StdioClientTransport({
          ...(yield* stdioCommand(join(folder, "state"))),
          stderr: "pipe"
        })
        let said = ""
        transport.stderr!.on("data", (chunk: Buffer) => void (said += chunk.toString("utf8")))
        const client = new Client({ name: "agent", version: "1.0.0" })
        yield* Effect.promise(() => client.connect(transport))
        const tools = (yield* Effect.promise(() => client.listTools())).tools
        expect(tools.map(({ name }) => name)).toEqual([
          "x402_search_resources",
          "x402_get_resource",
          "x402_call_resource",
          "x402_explain_payment",
          "x402_receipts"
        ])
        const { body } = yield* pay(client, ref, args())
        yield* Effect.promise(() => client.close())
        expect(body["receipt"].status).toBe("settled")
        const kept = readFileSync(join(folder, "state", "tools", "reservations.json"), "utf8")
        expect(JSON.parse(kept)).toMatchObject([
          { id: body["receipt"].paymentIdentifier, state: "spent", amount: "2000", agent: "stdio" }
        ])
        const signature = seller.calls.at(-1)!.payment!["payload"].transaction
        for (const text of [said, kept]) {
          expect(text).not.toContain(agent.secret())
          expect(text).not.toContain(signature)
        }
        expect(said).toContain("agent tools are ready")
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "without a signer there is no payment tool; unprotected payment is refused [S201, S246, S248, S249, S250, S251]",
    () =>
      Effect.gen(function* () {
        const { facilitator } = yield* PayWorld
        const started = (set: ReadonlyArray<string>, environment = {}) =>
          Effect.flip(
            startTools({ facilitatorUrl: facilitator.url, set: [...payingSet(facilitator), ...set], environment })
          )
        expect(yield* started(["signer.mode=env-secret"], { TOOLS_PAYER_SECRET: "S" })).toMatchObject({
          path: "signer.mode"
        })
        expect(yield* started(["signer.mode=external", "signer.external_url=http://signer.example"])).toMatchObject({
          path: "signer.external_url"
        })
        expect(yield* started(["signer.mode=encrypted-key"])).toMatchObject({ path: "signer.keystore_file" })
        expect(yield* started(["signer.mode=external", "signer.external_url=https://signer.example"])).toMatchObject({
          path: "http.api_keys_env"
        })
      }).pipe(Effect.scoped)
  )
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("before anything is signed", (it) => {
  const refusedBefore = Effect.fnUntraced(function* (more: Json, set: ReadonlyArray<string> = []) {
    const { paying, ref, seller } = yield* PayWorld
    const calls = seller.calls.length
    const { body } = yield* pay(yield* paying(set), ref, args(), more)
    return { code: body["code"], details: body["details"], calls: seller.calls.slice(calls) }
  })

  it.effect(
    "unsupported versions, schemes, networks and assets are refused without a request [S202, S205, S206, S219, S226]",
    () =>
      Effect.gen(function* () {
        const { paying, seller } = yield* PayWorld
        const methods = seller.methods.length
        expect(yield* refusedBefore({ expectedVersionHash: "0".repeat(64) })).toMatchObject({
          code: "RESOURCE_STALE",
          calls: []
        })
        for (const more of [
          { scheme: "upto" },
          { network: "ledger:pubnet" },
          { network: "eip155:1" },
          { asset: "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" }
        ]) {
          expect(yield* refusedBefore(more)).toMatchObject({ code: "PAYMENT_REJECTED", calls: [] })
        }
        expect(yield* refusedBefore({}, ["networks.ledger:testnet.assets=[]"])).toMatchObject({
          code: "PAYMENT_REJECTED",
          calls: []
        })
        const client = yield* paying()
        const http = encodeReference({ type: "http", url: "https://weather.example/v1", toolName: "" })
        expect((yield* call(client, "x402_call_resource", { ref: http })).body["code"]).toBe("INVALID_ARGUMENT")
        expect(
          (yield* call(client, "x402_call_resource", {
            ref: encodeReference({ type: "mcp", url: seller.url, toolName: "subtract" })
          })).body["code"]
        ).toBe("NO_RESULTS")
        expect((yield* pay(client, "v1.x")).body["code"]).toBe("INVALID_ARGUMENT")
        expect(seller.methods.length).toBe(methods)
      }).pipe(Effect.scoped)
  )

  it.effect("a call above the agent's, operator's or asset's limit is refused [S217, S218, S230]", () =>
    Effect.gen(function* () {
      for (const more of [{ maxAtomicAmount: "1999" }, { maxAtomicAmount: "0" }]) {
        expect(yield* refusedBefore(more)).toMatchObject({ code: "BUDGET_EXCEEDED", calls: [] })
      }
      expect(yield* refusedBefore({}, ["budget.max_per_call=1999"])).toMatchObject({
        code: "BUDGET_EXCEEDED",
        details: { amount: "2000", cap: "1999" },
        calls: []
      })
      expect(
        yield* refusedBefore({}, [
          `networks.ledger:testnet.assets=[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7, max_payment: 1999}]`
        ])
      ).toMatchObject({ code: "BUDGET_EXCEEDED" })
      for (const wrong of ["1.5", "-1", "2e3", "01", 2000])
        expect((yield* refusedBefore({ maxAtomicAmount: wrong })).code).toBe("INVALID_ARGUMENT")
    }).pipe(Effect.scoped)
  )

  it.effect("a seller on a private address or over plain HTTP is refused [S207, S236, S237]", () =>
    Effect.gen(function* () {
      expect(yield* refusedBefore({}, ["allow_insecure_local=false"])).toMatchObject({
        code: "UNTRUSTED_REDIRECT",
        calls: []
      })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "all of the seller's terms are verified against the catalog [S209, S210, S227]",
    () =>
      Effect.gen(function* () {
        const { paying, ref, seller } = yield* PayWorld
        const client = yield* paying()
        const accepts = (change: Json) => ({
          challenge: (challenge: Json) => ({ ...challenge, accepts: [{ ...challenge["accepts"][0], ...change }] })
        })
        const info = (change: Json) => ({
          challenge: (challenge: Json) => {
            const { catalog } = challenge["extensions"]
            return {
              ...challenge,
              extensions: {
                catalog: { ...catalog, info: { ...catalog.info, input: { ...catalog.info.input, ...change } } }
              }
            }
          }
        })
        const changes: ReadonlyArray<readonly [string, Seller["behaviour"]]> = [
          ["amount", accepts({ amount: "2001" })],
          ["payTo", accepts({ payTo: "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF" })],
          ["maxTimeoutSeconds", accepts({ maxTimeoutSeconds: 301 })],
          ["feesSponsored", accepts({ extra: { areFeesSponsored: false } })],
          ["accepts", accepts({ asset: "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" })],
          ["accepts", accepts({ network: "ledger:pubnet" })],
          [
            "accepts",
            {
              challenge: (challenge) => ({ ...challenge, accepts: [challenge["accepts"][0], challenge["accepts"][0]] })
            }
          ],
          [
            "resource.url",
            { challenge: (challenge) => ({ ...challenge, resource: { url: "https://elsewhere.example/mcp" } }) }
          ],
          ["toolName", info({ toolName: "subtract" })],
          ["transport", info({ transport: "sse" })],
          ["inputSchema", info({ inputSchema: { type: "object", properties: { a: { type: "string" } } } })],
          ["toolName", { listed: (tool) => ({ ...tool, name: "other" }) }],
          [
            "inputSchema",
            {
              listed: (tool) => ({
                ...tool,
                inputSchema: { type: "object", properties: { secret: { type: "string" } } }
              }),
              challenge: (challenge) => ({ ...challenge, extensions: {} })
            }
          ]
        ]
        for (const [member, behaviour] of changes) {
          seller.behaviour = behaviour
          const { body } = yield* pay(client, ref, args())
          expect({ member, ...body }).toMatchObject({
            member,
            code: "RESOURCE_CHANGED",
            retryable: false,
            details: { members: [member] }
          })
        }
        seller.behaviour = {}
        expect(seller.calls.filter(({ payment }) => payment !== undefined)).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("differing or unreadable copies of the seller's terms are refused [S209, S234]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      const results: ReadonlyArray<(result: Json) => Json> = [
        (result) => ({ ...result, content: [{ type: "text", text: result["content"][0].text.slice(0, -1) }] }),
        (result) => ({
          ...result,
          content: [{ type: "text", text: result["content"][0].text.replace('"2000"', '"1"') }]
        }),
        (result) => both({ ...result["structuredContent"], x402Version: 1 }),
        (result) => both({ ...result["structuredContent"], resource: undefined })
      ]
      const both = (body: Json): Json => ({
        isError: true,
        structuredContent: body,
        content: [{ type: "text", text: JSON.stringify(body) }]
      })
      for (const unpaid of results) {
        seller.behaviour = { unpaid }
        expect((yield* pay(client, ref, args())).body["code"]).toBe("UPSTREAM_PROTOCOL_ERROR")
      }
      seller.behaviour = {}
      expect(seller.calls.filter(({ payment }) => payment !== undefined)).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("an unpaid tool's result is returned and costs nothing [S204, S208]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      const before = yield* facilitator.balance(agent.publicKey())
      seller.behaviour = { unpaid: () => ({ content: [{ type: "text", text: "free" }] }) }
      expect((yield* pay(client, ref, args())).body).toEqual({
        content: [{ type: "text", text: "free" }],
        receipt: null
      })
      seller.behaviour = { unpaid: () => ({ isError: true, content: [{ type: "text", text: "b is missing" }] }) }
      expect((yield* pay(client, ref, args())).body).toMatchObject({
        code: "UPSTREAM_PROTOCOL_ERROR",
        details: { content: [{ text: "b is missing" }] }
      })
      seller.behaviour = {}
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
    }).pipe(Effect.scoped)
  )
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("the budget", (it) => {
  it.effect(
    "the budget holds over parallel calls, per session and per agent [S211, S217]",
    () =>
      Effect.gen(function* () {
        const { seller, ref, toolsUrl } = yield* PayWorld
        seller.behaviour = {}
        const url = yield* toolsUrl(["budget.max_per_session=4000", "budget.max_per_day=6000"])
        const connect = (key: string) => connectHttp(url, key)
        const [one, two, other] = [
          yield* connect("0123456789abcdef"),
          yield* connect("0123456789abcdef"),
          yield* connect("fedcba9876543210")
        ]
        const first = yield* Effect.all(
          Array.from({ length: 4 }, () => pay(one, ref, args())),
          { concurrency: "unbounded" }
        )
        expect(first.map(({ body }) => body["code"] ?? body["receipt"].status).sort()).toEqual([
          "BUDGET_EXCEEDED",
          "BUDGET_EXCEEDED",
          "settled",
          "settled"
        ])
        expect((yield* pay(two, ref, args())).body["receipt"].status).toBe("settled")
        expect((yield* pay(two, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
        expect((yield* pay(other, ref, args())).body["receipt"].status).toBe("settled")
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "a reservation returns when the ledger would refuse the payment [S215, S231]",
    () =>
      Effect.gen(function* () {
        const { facilitator, ref, seller } = yield* PayWorld
        seller.behaviour = {}
        const poor = yield* facilitator.account(1_000n)
        const { file, key } = sealed(poor.secret())
        const url = yield* startTools({
          facilitatorUrl: facilitator.url,
          set: [
            ...payingSet(facilitator),
            "signer.mode=encrypted-key",
            `signer.keystore_file=${file}`,
            "budget.store=memory",
            "budget.max_per_day=2000"
          ],
          environment: { TOOLS_KEYSTORE_KEY: key, TOOLS_API_KEYS: "0123456789abcdef" }
        })
        const client = yield* connectHttp(url, "0123456789abcdef")
        for (let round = 0; round < 2; round++) {
          const { body } = yield* pay(client, ref, args())
          expect(body).toMatchObject({ code: "PAYMENT_REJECTED", retryable: false })
        }
      }).pipe(Effect.scoped),
    240_000
  )
})
