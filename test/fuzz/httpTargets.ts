// Mutated requests over HTTP to a whole facilitator in this process: payments, queries of the catalog, and messages to
// the tool server. No answer has a status of 5xx, and every answer of a payment route has the payment's shape.
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { assertRefusedSettle, assertRefusedVerify, post } from "../../runtime/redteam/ask.ts"
import { templateOf } from "../../runtime/redteam/bodies.ts"
import { startTools } from "../plugins/mcp-tools/support.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { NodeServices } from "@effect/platform-node"
import { Dice } from "./Dice.ts"
import { processorMillis } from "./FuzzLedger.ts"
import { mutateBytes, mutateJson, mutateText } from "./mutate.ts"

const corpus = JSON.parse(readFileSync(new URL("corpus.json", import.meta.url), "utf8"))
const rpc = (id: number, method: string, params: object) => ({ jsonrpc: "2.0", id, method, params })
const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "fuzz", version: "1" } }
const messages = [
  rpc(1, "initialize", initialize),
  rpc(2, "tools/list", {}),
  rpc(3, "tools/call", { name: "x402_get_resource", arguments: { reference: "v1.e30" } }),
  [rpc(4, "ping", {}), rpc(5, "tools/call", { name: "x", arguments: "{}" })]
]

export interface HttpOutcome {
  readonly requests: number
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>
  readonly breaches: ReadonlyArray<string>
  readonly slowestMillis: number
}

interface Sent {
  readonly what: string
  readonly send: () => Promise<number>
}

const bodyOf = (dice: Dice, sample: unknown): string | Uint8Array => {
  const text = JSON.stringify(mutateJson(dice, sample)) ?? ""
  return dice.onceIn(8) ? mutateBytes(dice, new TextEncoder().encode(text)) : text
}

const make = (url: string, tools: string, templates: ReadonlyArray<unknown>) => {
  const payment = (dice: Dice): Sent => {
    const body = bodyOf(dice, dice.pick(templates))
    const [route, assertShape] = dice.pick([
      ["verify", assertRefusedVerify],
      ["settle", assertRefusedSettle]
    ] as const)
    const send = async () => {
      const answer = await post(`${url}/${route}`, body)
      assertShape(answer)
      return answer.status
    }
    return { what: `/${route} ${String(body).slice(0, 300)}`, send }
  }
  const query = (dice: Dice): Sent => {
    const path = dice.pick([
      "/discovery/search?",
      "/discovery/resources?",
      "/discovery/history?",
      "/settlements?",
      "/log/"
    ])
    const asked = encodeURI(mutateText(dice, dice.pick(corpus.queries as ReadonlyArray<string>)).toWellFormed())
    return {
      what: path + asked,
      send: () =>
        fetch(`${url}${path}${asked.slice(0, 6_000)}`).then(async (answer) => (await answer.text(), answer.status))
    }
  }
  const message = (dice: Dice): Sent => {
    const body = bodyOf(dice, dice.pick(messages))
    const headers = { accept: "application/json, text/event-stream" }
    return {
      what: `MCP ${String(body).slice(0, 300)}`,
      send: async () => (await post(tools, body, 30_000, headers)).status
    }
  }
  return (dice: Dice): Sent => dice.pick([payment, payment, payment, query, message])(dice)
}

/** Sends `requests` requests, one at a time. */
export const fuzzHttp = (requests: number, seed: number): Promise<HttpOutcome> =>
  Effect.gen(function* () {
    const unlimited = ["verify", "settle"].map((one) => `limits.${one}_per_second=0`)
    const { url } = yield* startFacilitator({ set: unlimited })
    const tools = yield* startTools({ facilitatorUrl: url }).pipe(Effect.provide(NodeServices.layer))
    const templates = yield* Effect.promise(() => Promise.all(["ledger:testnet", "stellar:testnet"].map(templateOf)))
    const declared = templates.map((one: any, index) => {
      const copy = structuredClone(one)
      copy.paymentPayload.extensions = { bazaar: corpus.declarations[index] }
      return copy
    })
    const next = make(url, `${tools}/mcp`, [...templates, ...declared])
    const dice = new Dice(seed)
    const statuses = new Map<number, number>()
    const breaches: Array<string> = []
    let slowestMillis = 0
    for (let index = 0; index < requests; index++) {
      const { send, what } = next(dice)
      const breach = (why: unknown) => breaches.push(`request ${index} of seed ${seed}: ${String(why)}\n${what}`)
      const started = processorMillis()
      const status = yield* Effect.promise(() => send().catch((error: unknown) => void breach(error)))
      slowestMillis = Math.max(slowestMillis, processorMillis() - started)
      if (status === undefined) continue
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status >= 500) breach(`status ${status}`)
    }
    return { requests, statuses, breaches, slowestMillis }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.runPromise)
