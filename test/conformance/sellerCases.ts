// Content that an agent paid for is delivered with any receipt of the seller: each shape that the transports allow or
// that sellers were observed to send, from an HTTP seller and from MCP sellers of both protocol versions with
// streams that stay open after the result, over a separate tool server process. The agent's spending is read from the
// ledger.
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect, Exit, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { deepStrictEqual, strictEqual } from "node:assert"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { signPayment } from "../../examples/buyer.ts"
import { encodeReference } from "../../plugins/mcp-tools/Reference.ts"
import { mcpDeclaration, queryDeclaration } from "../plugins/catalog/support.ts"
import type { Json } from "../plugins/mcp-tools/support.ts"
import { httpAmount, type HttpSeller, startHttpSeller } from "../plugins/mcp-tools-pay/httpSeller.ts"
import { httpReceipts, receipts, type ReceiptShape, withReceipt } from "../plugins/mcp-tools-pay/receipts.ts"
import { amount, inputSchema, type Seller, startSeller } from "../plugins/mcp-tools-pay/seller.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

export interface Tools {
  readonly call: (name: string, args: Json) => Promise<Json>
  readonly close: () => Promise<void>
}

/** A tool server process that pays from this account. */
export const startTools = async ({ facilitator, ledger }: World, payer: Keypair): Promise<Tools> => {
  const state = await mkdtemp(join(tmpdir(), "tollkeeper-sellers-"))
  const settings = [
    "plugins=[mcp-tools, mcp-tools-pay]",
    `facilitator.base_url=${facilitator}`,
    "allow_insecure_local=true",
    "signer.mode=env-secret",
    "budget.store=memory",
    "http_payments.enabled=true",
    `networks.ledger:testnet.rpc_urls=["${ledger}"]`,
    `networks.ledger:testnet.assets=[{contract: ${testnetUsdc}, symbol: USDC, decimals: 7}]`
  ]
  const client = new Client({ name: "conformance", version: "1.0.0" })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [
        "--disable-warning=ExperimentalWarning",
        join(root, "runtime/cli.mjs"),
        "tools",
        ...["--state", state],
        ...settings.flatMap((setting) => ["--set", setting])
      ],
      env: { TOOLS_PAYER_SECRET: payer.secret() },
      stderr: "ignore"
    })
  )
  return {
    call: async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent as Json,
    close: async () => {
      await client.close()
      await rm(state, { recursive: true, force: true })
    }
  }
}

/** A listing begins with a payment: the customer settles one under the declaration. */
const list = async (world: World, customer: Keypair, accepted: Json, url: string, declaration: Json): Promise<void> => {
  const options = { secret: customer.secret(), rpcUrl: world.ledger, maxAmount: BigInt(accepted["amount"]) }
  const paymentPayload = {
    x402Version: 2,
    payload: { transaction: await signPayment(accepted as never, options) },
    resource: { url },
    accepted,
    extensions: { catalog: declaration }
  }
  const settled = await fetch(`${world.facilitator}/settle`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: accepted })
  })
  const { success } = (await settled.json()) as Json
  strictEqual(success, true, "the listing's payment was not settled")
  const until = performance.now() + 30_000
  for (;;) {
    const page = (await (await fetch(`${world.facilitator}/discovery/resources?limit=200`)).json()) as Json
    if (page["items"].some(({ resource }: Json) => resource === url)) return
    if (performance.now() > until) throw new Error(`the catalog does not list ${url}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** A receipt with duplicate JSON members; the first one denies the payment. */
const doubled = (text: string): string =>
  text.replace('"x402/payment-response":', '"x402/payment-response":{"success":false},"x402/payment-response":')

interface Stage {
  readonly tools: Tools
  /** The agent's spending during `work`, in atomic units. */
  readonly spent: (work: () => Promise<void>) => Promise<bigint>
  readonly part: Part
}

const mcpCases = async ({ part, spent, tools }: Stage, seller: Seller): Promise<void> => {
  const ref = encodeReference({ type: "mcp", url: seller.url, toolName: "add" })
  let fresh = 0
  const buyOne = async (what: string, errors: ReceiptShape<unknown>[2]): Promise<void> => {
    const args = { a: ++fresh, b: 1_000 }
    const body = await tools.call("x402_call_resource", { ref, arguments: args })
    deepStrictEqual(
      [what, body["structuredContent"], body["receipt"]?.status, body["receipt"]?.sellerReceiptFaults],
      [what, { sum: args.a + args.b }, "settled", errors],
      JSON.stringify(body)
    )
  }
  for (const isStateless of [false, true]) {
    const era = isStateless ? "of 2026-07-28 alone" : "with sessions"
    await part.check(`an MCP seller ${era}: ${receipts.length} shapes of a receipt, streams left open`, async () => {
      const paid = await spent(async () => {
        for (const [what, change, failures] of receipts) {
          const paid = (result: Json) => {
            const receipt = change(result["_meta"]["x402/payment-response"])
            return { ...result, _meta: receipt === undefined ? {} : { "x402/payment-response": receipt } }
          }
          seller.behaviour = { isStateless, isStreamOpen: true, paid }
          await buyOne(what, failures)
        }
      })
      strictEqual(paid, amount * BigInt(receipts.length))
    })
    await part.check(`an MCP seller ${era} states its terms in one copy`, async () => {
      for (const unpaid of [
        ({ structuredContent: _, ...result }: Json) => result,
        (result: Json) => ({ ...result, content: [{ type: "text", text: "Payment required" }] })
      ]) {
        seller.behaviour = { isStateless, unpaid }
        await buyOne("one copy", undefined)
      }
    })
    await part.check(`an MCP seller ${era} whose two copies differ is not paid`, async () => {
      const differing = (result: Json) => {
        const text = JSON.stringify({ ...result["structuredContent"], error: "another" })
        return { ...result, content: [{ type: "text", text }] }
      }
      seller.behaviour = { isStateless, unpaid: differing }
      const paid = await spent(async () => {
        const { code } = await tools.call("x402_call_resource", { ref, arguments: { a: ++fresh, b: 2_000 } })
        strictEqual(code, "UPSTREAM_PROTOCOL_ERROR")
      })
      strictEqual(paid, 0n)
    })
  }
  await part.check("an MCP seller's receipt that its JSON holds twice", async () => {
    seller.behaviour = { isStateless: true, text: doubled }
    strictEqual(await spent(() => buyOne("doubled", undefined)), amount)
  })
}

const httpCases = async ({ part, spent, tools }: Stage, seller: HttpSeller): Promise<void> => {
  const ref = encodeReference({ type: "http", url: `${seller.origin}/weather`, toolName: "" })
  await part.check(`an HTTP seller: ${httpReceipts.length} shapes of a receipt`, async () => {
    const paid = await spent(async () => {
      for (const [what, change, errors] of httpReceipts) {
        seller.behaviour = { paid: (reply, settled) => withReceipt(reply, change(settled)) }
        const body = await tools.call("x402_fetch_resource", { ref, query: { city: what } })
        deepStrictEqual(
          [what, body["json"]?.celsius, body["receipt"]?.status, body["receipt"]?.sellerReceiptFaults],
          [what, 17, "settled", errors],
          JSON.stringify(body)
        )
      }
    })
    strictEqual(paid, httpAmount * BigInt(httpReceipts.length))
  })
}

export const sellerCases = async (world: World, part: Part): Promise<void> => {
  const [agent, customer, owner] = [await world.account(1), await world.account(1), await world.account(0)]
  const scope = Scope.makeUnsafe()
  const started = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
  const facilitator = { url: world.facilitator }
  const spent = async (work: () => Promise<void>) => {
    const before = await world.balance(agent.publicKey())
    await work()
    return before - (await world.balance(agent.publicKey()))
  }
  try {
    const mcp = await started(startSeller(facilitator, owner.publicKey()))
    const http = await started(startHttpSeller(facilitator, owner.publicKey()))
    await list(world, customer, mcp.terms(), mcp.url, mcpDeclaration("add", { inputSchema }))
    await list(world, customer, http.terms(), `${http.origin}/weather`, queryDeclaration())
    const tools = await startTools(world, agent)
    try {
      await mcpCases({ part, spent, tools }, mcp)
      await httpCases({ part, spent, tools }, http)
    } finally {
      await tools.close()
    }
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
