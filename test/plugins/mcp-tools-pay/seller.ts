// A paid MCP seller: the official SDK's server over Streamable HTTP with one tool, `add`, which requests payment
// according to the x402 transport for MCP and settles it through a facilitator. Every response has a hook, so the same
// seller can be dishonest. The server may be of either era: with sessions, or of 2026-07-28 only.
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { createMcpHandler, Server as StatelessServer } from "@modelcontextprotocol/server"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { saleKey } from "../../../examples/seller/outcome.mjs"
import type { Facilitator } from "../../support/facilitator.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { mcpDeclaration } from "../catalog/support.ts"
import { type Json, substitute } from "../mcp-tools/support.ts"

export const amount = 2_000n
export const inputSchema = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } } as const

export interface Behaviour {
  /** Changes the terms. */
  challenge?: ((challenge: Json) => Json) | undefined
  /** Changes the whole unpaid result, both copies. */
  unpaid?: ((result: Json) => Json) | undefined
  /** Changes the paid result, after the settlement. May be asynchronous, or never end. */
  paid?: ((result: Json, payment: Json) => Json | Promise<Json>) | undefined
  /** Replaces the call to the facilitator. */
  settle?: ((body: Json) => Promise<Json>) | undefined
  listed?: ((tool: Json) => Json) | undefined
  /** The server implements revision 2026-07-28 only. */
  isStateless?: boolean
  /** The connection stays open after the response to a payment. */
  isStreamOpen?: boolean
  /** Changes the JSON text of the response to a payment, in the era without sessions. */
  text?: (text: string) => string
  /** Answers a message itself, or a request without a body; false leaves it to the server. */
  wire?: ((message: Json, response: ServerResponse, request: IncomingMessage) => boolean) | undefined
}

export interface Seller {
  readonly url: string
  readonly payTo: string
  behaviour: Behaviour
  /** Arguments of every call, and its payment, if any. */
  readonly calls: Array<{ readonly args: unknown; readonly payment: Json | undefined }>
  /** Every requested JSON-RPC method, and the revision that its request's header names. */
  readonly methods: Array<string>
  readonly revisions: Array<string | undefined>
  /** The facilitator's response to each settle. */
  readonly settlements: Array<Json>
  readonly terms: () => Json
}

const both = (body: Json, more: Json = {}) => ({
  isError: true,
  structuredContent: body,
  content: [{ type: "text", text: JSON.stringify(body) }],
  ...more
})

export const startSeller = Effect.fnUntraced(function* (facilitator: Pick<Facilitator, "url">, payTo: string) {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const base = yield* substitute((request, response) => {
    const chunks: Array<Buffer> = []
    request
      .on("data", (chunk: Buffer) => chunks.push(chunk))
      .on(
        "end",
        () =>
          void (async () => {
            const body = chunks.length === 0 ? undefined : (JSON.parse(Buffer.concat(chunks).toString("utf8")) as Json)
            if (body !== undefined) {
              seller.methods.push(body["method"])
              seller.revisions.push(request.headers["mcp-protocol-version"] as string | undefined)
            }
            if (seller.behaviour.wire?.(body ?? {}, response, request) === true) return undefined
            const isPaid = body?.["params"]?._meta?.["x402/payment"] !== undefined
            if (isPaid && seller.behaviour.isStreamOpen === true) response.end = () => response
            if (seller.behaviour.isStateless === true) return answerStateless(request, response, body)
            const id = request.headers["mcp-session-id"] as string | undefined
            const known = id === undefined ? undefined : sessions.get(id)
            if (known !== undefined) return known.handleRequest(request, response, body)
            const transport = new StreamableHTTPServerTransport({
              sessionIdGenerator: () => randomUUID(),
              onsessioninitialized: (id) => void sessions.set(id, transport)
            })
            await makeServer().connect(transport as Transport)
            return transport.handleRequest(request, response, body)
          })()
      )
  })

  const seller: Seller = {
    url: `${base}/mcp`,
    payTo,
    behaviour: {},
    calls: [],
    methods: [],
    revisions: [],
    settlements: [],
    terms: () => ({
      scheme: "exact",
      network: "ledger:testnet",
      asset: testnetUsdc,
      amount: amount.toString(),
      payTo,
      maxTimeoutSeconds: 300,
      extra: { areFeesSponsored: true }
    })
  }

  const challenge = (error: string): Json => {
    const honest = {
      x402Version: 2,
      error,
      resource: { url: seller.url, description: "Adds two numbers", mimeType: "application/json" },
      accepts: [seller.terms()],
      extensions: {
        catalog: mcpDeclaration("add", { inputSchema })
      }
    }
    return seller.behaviour.challenge?.(honest) ?? honest
  }
  const ask = async (path: string, payment: Json, args: unknown): Promise<Json> => {
    const body = { x402Version: 2, paymentPayload: payment, paymentRequirements: payment["accepted"] }
    if (path === "/settle" && seller.behaviour.settle !== undefined) return seller.behaviour.settle(body)
    const sale = { method: "tools/call", url: seller.url, body: JSON.stringify(args) }
    const answer = await fetch(`${facilitator.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": saleKey(sale, JSON.stringify(payment)) },
      body: JSON.stringify(body)
    })
    return (await answer.json()) as Json
  }

  const listTools = () => {
    const tool = { name: "add", description: "Adds", inputSchema }
    return { tools: [(seller.behaviour.listed?.(tool) ?? tool) as typeof tool] }
  }
  const callTool = async (params: Json): Promise<Json> => {
    const payment = params["_meta"]?.["x402/payment"] as Json | undefined
    seller.calls.push({ args: params["arguments"], payment })
    if (payment === undefined) {
      const result = both(challenge("payment required"))
      return seller.behaviour.unpaid?.(result) ?? result
    }
    const verified = await ask("/verify", payment, params["arguments"])
    // A payment settled before cannot be verified again; its settlement can be requested.
    if (verified["isValid"] !== true && seller.settlements.length === 0)
      return both(challenge(verified["invalidReason"]))
    const settled = await ask("/settle", payment, params["arguments"])
    seller.settlements.push(settled)
    const meta = { _meta: { "x402/payment-response": settled } }
    const { a = 0, b = 0 } = params["arguments"] as { a?: number; b?: number }
    const result =
      settled["success"] === true
        ? {
            content: [{ type: "text", text: String(a + b), annotations: { audience: ["user"] } }],
            structuredContent: { sum: a + b },
            ...meta
          }
        : both(challenge(settled["errorReason"]), meta)
    return (await seller.behaviour.paid?.(result, payment)) ?? result
  }

  const about = [{ name: "adder", version: "1.0.0" }, { capabilities: { tools: {} } }] as const
  const makeServer = () => {
    const server = new Server(...about)
    server.setRequestHandler(ListToolsRequestSchema, listTools)
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => callTool(params) as never)
    return server
  }
  const stateless = createMcpHandler(
    () => {
      const server = new StatelessServer(...about)
      server.setRequestHandler("tools/list", listTools)
      server.setRequestHandler("tools/call", ({ params }) => callTool(params) as never)
      return server
    },
    { legacy: "reject" }
  )
  const answerStateless = async ({ headers, method }: IncomingMessage, response: ServerResponse, body?: Json) => {
    const request = new Request(seller.url, {
      method: method!,
      headers: headers as Record<string, string>,
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const answer = await stateless.fetch(request)
    const sent = await answer.text()
    const isPaid = body?.["params"]?._meta?.["x402/payment"] !== undefined
    const text = isPaid ? (seller.behaviour.text?.(sent) ?? sent) : sent
    const type = { "content-type": "text/event-stream" }
    if (!isPaid || seller.behaviour.isStreamOpen !== true)
      return response.writeHead(answer.status, { ...Object.fromEntries(answer.headers) }).end(text)
    return response.writeHead(200, type).write(`event: message\ndata: ${text}\n\n`)
  }
  return seller
})
