// Attacks on a seller (a page behind a 402) and on a tool server (MCP over HTTP). A seller's page must stay behind its
// price; a tool server must refuse foreign pages, sessions that it did not open, and messages out of form.
import assert from "node:assert/strict"
import { Keypair } from "@stellar/stellar-sdk"
import { type Answer, post, textOf } from "./ask.ts"
import { makePayment } from "./buyer.ts"
import { type Case, Skipped } from "./cases.ts"
import { head, talk } from "./sockets.ts"
import type { World } from "./target.ts"

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")

const read = (world: World, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(world.target.url, { method, headers, redirect: "manual", signal: AbortSignal.timeout(60_000) })

/** The first offer of `exact`, with the terms of the whole 402. */
const termsOf = async (world: World): Promise<{ readonly required: any; readonly offer: any }> => {
  const response = await read(world)
  const header = response.headers.get("payment-required")
  const required =
    header === null ? JSON.parse(await textOf(response)) : JSON.parse(Buffer.from(header, "base64").toString())
  const offer = required.accepts?.find((one: any) => one.scheme === "exact")
  if (offer === undefined) throw new Skipped("the seller offers no exact payment")
  return { required, offer }
}

const isOpen = (status: number) => status >= 200 && status < 300

interface Knock {
  readonly attack: number
  readonly name: string
  readonly headers?: (world: World) => Record<string, string>
  readonly method?: string
}

const signature = (value: string) => () => ({ "payment-signature": value, "x-payment": value })

const knocks: ReadonlyArray<Knock> = [
  { attack: 42, name: "a payment that is not base64", headers: signature("not base64!") },
  { attack: 42, name: "a payment that is not JSON", headers: signature(Buffer.from("{").toString("base64")) },
  { attack: 42, name: "null as payment", headers: signature(encode(null)) },
  { attack: 42, name: "an empty object as payment", headers: signature(encode({})) },
  {
    attack: 42,
    name: "__proto__ in the payment",
    headers: signature(encode(JSON.parse('{"__proto__":{"isValid":true}}')))
  },
  {
    attack: 42,
    name: "5,000 levels of arrays as payment",
    headers: signature(Buffer.from("[".repeat(5_000)).toString("base64"))
  },
  { attack: 20, name: "version 1 of the protocol", headers: signature(encode({ x402Version: 1, scheme: "exact" })) },
  { attack: 99, name: "HEAD of the page", method: "HEAD" },
  {
    attack: 99,
    name: "a header that names another path",
    headers: () => ({ "x-original-url": "/", "x-rewrite-url": "/" })
  },
  {
    attack: 78,
    name: "a foreign Host",
    headers: () => ({ "x-forwarded-host": "free.example", "x-forwarded-proto": "https" })
  }
]

const spellings = (path: string): ReadonlyArray<string> => {
  const [first = "", ...rest] = path.slice(1)
  const encoded = `%${first.charCodeAt(0).toString(16)}${rest.join("")}`
  return [
    `/${encoded}`,
    `/${path}`,
    `${path}/`,
    `/.${path}`,
    `/x/..${path}`,
    `${path}%00`,
    `${path};x=1`,
    `${path}?`,
    path.toUpperCase()
  ]
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0)

interface Sale {
  readonly header: Record<string, string>
  readonly payload: any
}

const sale = async (world: World, change: (offer: any) => any = (offer) => offer): Promise<Sale> => {
  const { money } = world
  const { offer, required } = await termsOf(world)
  const accepted = change(structuredClone(offer))
  const { transaction } = await makePayment({
    rpc: money!.rpc,
    payer: money!.buyer,
    payTo: accepted.payTo,
    asset: accepted.asset,
    amount: BigInt(accepted.amount),
    maxTimeoutSeconds: Number(accepted.maxTimeoutSeconds),
    network: accepted.network
  })
  const payload = { x402Version: 2, payload: { transaction }, resource: required.resource, accepted }
  return { payload, header: { "payment-signature": encode(payload) } }
}

const closed = "a status other than 2xx and 5xx: the page stays behind its price"
const money = "USDC of the buyer, beyond one payment at the price"

const sellerCase = (attack: number, name: string, play: Case["play"], pays = true): Case => ({
  attack,
  on: "seller",
  name,
  accepts: pays ? "one answer with the page for one payment; otherwise a refusal" : closed,
  still: pays ? money : "the page",
  pays,
  play
})

export const sellerCases: ReadonlyArray<Case> = [
  ...knocks.map(({ attack, headers, method, name }) =>
    sellerCase(
      attack,
      name,
      async (world) => {
        const { status } = await read(world, headers?.(world), method)
        assert.ok(!isOpen(status) && status < 500, `status ${status}`)
      },
      false
    )
  ),
  sellerCase(
    99,
    "other spellings of the page's path",
    async (world) => {
      const { pathname } = new URL(world.target.url)
      const page = await read(world)
      assert.equal(page.status, 402)
      if (pathname === "/") throw new Skipped("the page is the root, which has one spelling")
      const other = async (path: string) => statusOf(await talk(world, head(world, `GET ${path} HTTP/1.1`)))
      const control = await other("/no-such-page-of-the-red-team")
      for (const path of spellings(pathname)) {
        const status = await other(path)
        assert.ok(!isOpen(status) || status === control, `${path} answered ${status}`)
      }
    },
    false
  ),
  sellerCase(22, "one payment on eight concurrent requests", async (world) => {
    const { header } = await sale(world)
    const [before] = await world.money!.held()
    const answers = await Promise.all(Array.from({ length: 8 }, () => read(world, header)))
    const [after] = await world.money!.held()
    const pages = answers.filter(({ status }) => isOpen(status))
    assert.ok(after! < before! && pages.length > 0, "the payment opened nothing")
    // After a broken connection the seller may repeat its answer: the same page with the same receipt.
    const sold = await Promise.all(
      pages.map(async (page) => `${page.headers.get("payment-response")} ${await textOf(page)}`)
    )
    assert.equal(new Set(sold).size, 1, `${sold.length} pages for one payment`)
  }),
  sellerCase(101, "a settled payment again, under an identifier of the buyer", async (world) => {
    const { header, payload } = await sale(world)
    assert.ok(isOpen((await read(world, header)).status), "the payment opened nothing")
    const extensions = { "payment-identifier": { info: { id: `redteam-${Keypair.random().publicKey()}` } } }
    const { status } = await read(world, { "payment-signature": encode({ ...payload, extensions }) })
    assert.ok(!isOpen(status), `status ${status}`)
  }),
  ...(["amount", "payTo", "maxTimeoutSeconds"] as const).map((member) =>
    sellerCase(20, `a payment whose ${member} the buyer chose`, async (world) => {
      const value = { amount: "1", payTo: world.money!.thief.publicKey(), maxTimeoutSeconds: 1 }[member]
      const { header } = await sale(world, (offer) => ({ ...offer, [member]: value }))
      const before = await world.money!.held()
      const { status } = await read(world, header)
      assert.ok(!isOpen(status) && status < 500, `status ${status}`)
      assert.deepEqual(await world.money!.held(), before)
    })
  )
]

const rpcHeaders = { accept: "application/json, text/event-stream" }
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "redteam", version: "1" } }
}

const callServer = (world: World, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  post(world.target.url, body, 15_000, {
    ...rpcHeaders,
    ...(world.target.key === undefined ? {} : { authorization: `Bearer ${world.target.key}` }),
    ...headers
  })

const messageIn = ({ json, text }: Answer): any => json ?? JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "null")

const session = async (world: World): Promise<Record<string, string>> => {
  const answer = await callServer(world, initialize)
  const id = answer.headers.get("mcp-session-id")
  const headers = { "mcp-protocol-version": "2025-06-18", ...(id === null ? {} : { "mcp-session-id": id }) }
  await callServer(world, { jsonrpc: "2.0", method: "notifications/initialized" }, headers)
  return headers
}

const call = (name: string, args: unknown) => ({
  jsonrpc: "2.0",
  id: 7,
  method: "tools/call",
  params: { name, arguments: args }
})

const isRefused = (answer: Answer): boolean => {
  const message = messageIn(answer)
  return answer.status >= 400 || message?.error !== undefined || message?.result?.isError === true
}

interface Message {
  readonly attack: number
  readonly name: string
  readonly body: unknown
  readonly headers?: Record<string, string>
  /** It need not be refused: no 5xx is enough. */
  readonly isHarmless?: boolean
}

const messages: ReadonlyArray<Message> = [
  { attack: 60, name: "an Origin of a foreign page", body: initialize, headers: { origin: "https://page.example" } },
  {
    attack: 60,
    name: "a session that it did not open",
    body: call("x", {}),
    headers: { "mcp-session-id": "00000000-0000-4000-8000-000000000000" }
  },
  { attack: 42, name: "a message that is not JSON", body: "{" },
  { attack: 42, name: "5,000 levels of arrays", body: "[".repeat(5_000) },
  { attack: 43, name: "a message of 8 MB", body: JSON.stringify({ ...initialize, pad: "x".repeat(8_000_000) }) },
  { attack: 42, name: "null as message", body: "null" },
  { attack: 91, name: "an empty batch", body: "[]" },
  {
    attack: 91,
    name: "a batch of 200 calls",
    body: JSON.stringify(Array.from({ length: 200 }, () => call("x", {}))),
    isHarmless: true
  },
  {
    attack: 114,
    name: "an identifier beyond every range",
    body: '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    isHarmless: true
  }
]

const reference = "v1.AAAA"
/** Maximum number of the server's tools that are called. */
const toolsMax = 64

export const mcpCases: ReadonlyArray<Case> = [
  ...messages.map(({ attack, body, headers, isHarmless, name }): Case => ({
    attack,
    on: "mcp",
    name,
    accepts: isHarmless === true ? "no status 5xx, within 15 seconds" : "a refusal without status 5xx",
    still: "nothing is called",
    play: async (world) => {
      const answer = await callServer(world, body, headers)
      assert.ok(answer.status < 500, `status ${answer.status}`)
      if (isHarmless !== true) assert.ok(isRefused(answer), answer.text.slice(0, 200))
    }
  })),
  ...[
    [61, "a tampered reference", { reference, ref: reference, url: "mcp://x", resource: reference }],
    [61, "a reference of 100,000 characters", { reference: "v1.".padEnd(100_000, "A"), ref: "v1." }],
    [91, "an object as a string", JSON.stringify({ reference })],
    [114, "numbers beyond every range", { amount: 2 ** 60, limit: 1e308 }]
  ].map(([attack, name, args]): Case => ({
    attack: attack as number,
    on: "mcp",
    name: `each tool with ${String(name)}`,
    accepts: "a refusal of each call, without status 5xx",
    still: "nothing is paid: no tool receives a payment",
    play: async (world) => {
      const headers = await session(world)
      const listed = messageIn(await callServer(world, { jsonrpc: "2.0", id: 2, method: "tools/list" }, headers))
      const tools: ReadonlyArray<any> = (listed?.result?.tools ?? []).slice(0, toolsMax)
      if (tools.length === 0) throw new Skipped("the server lists no tools")
      for (const { inputSchema, name: tool } of tools) {
        const answer = await callServer(world, call(tool, args), headers)
        assert.ok(answer.status < 500, `${tool}: status ${answer.status}`)
        const needs = inputSchema?.required?.length > 0
        if (needs) assert.ok(isRefused(answer), `${tool}: ${answer.text.slice(0, 200)}`)
      }
    }
  }))
]
