// A paid HTTP resource on this machine: without a payment it answers 402 and its terms, with one it verifies, settles
// and responds. Every response has a hook, so that the same seller can be dishonest; it implements either version of
// the protocol. Hooks and the record apply to agents' requests: the catalog, which probes origins at any time, always
// finds an honest seller.
import { Effect } from "effect"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { saleKey } from "../../../examples/seller/outcome.mjs"
import type { Facilitator } from "../../support/facilitator.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type Json, substitute } from "../mcp-tools/support.ts"

export const httpAmount = 3_000n

export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

export interface HttpBehaviour {
  /** Changes the terms. */
  challenge?: (challenge: Json) => Json
  /** Changes the 402 response. */
  unpaid?: (reply: HttpReply) => HttpReply
  /** Changes the response to a payment, after the settlement; undefined never responds. */
  paid?: (reply: HttpReply, settled: Json) => HttpReply | undefined
  version?: 1 | 2
  /** Names no sale to the facilitator, which then answers each success once. */
  isNameless?: boolean
  /** Takes over the connection, in place of the due response; `paid` after the settlement. */
  raw?: Partial<Readonly<Record<"unpaid" | "paid", (socket: Duplex, reply: HttpReply) => void>>>
}

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
  readonly payment: Json | undefined
}

export interface HttpSeller {
  readonly origin: string
  readonly payTo: string
  behaviour: HttpBehaviour
  readonly received: Array<Received>
  readonly settlements: Array<Json>
  readonly terms: () => Json
  /** The declaration in the 402 of a path. */
  readonly declared: Map<string, { readonly description: string; readonly extension: Json }>
}

export const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")
const decode = (text: string): Json => JSON.parse(Buffer.from(text, "base64").toString("utf8")) as Json

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const settle = async (url: string, body: Json, key: string | undefined): Promise<Json> => {
  const answer = await fetch(`${url}/settle`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
    body: JSON.stringify(body)
  })
  return (await answer.json()) as Json
}

/** The first version's response, converted to the second's terms. */
const asSecond = (payment: Json, terms: Json): Json =>
  payment["x402Version"] === 1
    ? { x402Version: 2, accepted: terms, payload: payment["payload"], resource: { url: "" }, extensions: {} }
    : payment

export const startHttpSeller = Effect.fnUntraced(function* (facilitator: Pick<Facilitator, "url">, payTo: string) {
  const asked = (url: string, behaviour: HttpBehaviour): HttpReply => {
    const version = behaviour.version ?? 2
    const { amount, ...others } = seller.terms()
    const { description, extension } = seller.declared.get(new URL(url).pathname) ?? {}
    const honest: Json =
      version === 2
        ? {
            x402Version: 2,
            error: "payment required",
            resource: { url, ...(description === undefined ? {} : { description }) },
            accepts: [seller.terms()],
            extensions: extension === undefined ? {} : { catalog: extension }
          }
        : {
            x402Version: 1,
            error: "payment required",
            accepts: [{ ...others, maxAmountRequired: amount, resource: url, description: "", mimeType: "" }]
          }
    const challenge = behaviour.challenge?.(honest) ?? honest
    const headers = { "content-type": "application/json" }
    return version === 2
      ? { status: 402, headers: { ...headers, "payment-required": encode(challenge) }, body: "{}" }
      : { status: 402, headers, body: JSON.stringify(challenge) }
  }

  const delivered = async (payment: Json, sale: { url: string; method: string; body: string }) => {
    const { url } = sale
    const body = {
      x402Version: 2,
      paymentPayload: asSecond(payment, seller.terms()),
      paymentRequirements: seller.terms()
    }
    const settled = await settle(
      facilitator.url,
      body,
      seller.behaviour.isNameless === true ? undefined : saleKey(sale, JSON.stringify(payment))
    )
    seller.settlements.push(settled)
    const name = payment["x402Version"] === 1 ? "x-payment-response" : "payment-response"
    const honest: HttpReply = settled["success"]
      ? {
          status: 200,
          headers: { "content-type": "application/json", [name]: encode(settled) },
          body: JSON.stringify({ celsius: 17, at: url })
        }
      : { ...asked(url, {}), headers: { ...asked(url, {}).headers, [name]: encode(settled) } }
    return seller.behaviour.paid === undefined ? honest : seller.behaviour.paid(honest, settled)
  }

  const origin = yield* substitute((request, response) => {
    void (async () => {
      const header = request.headers["payment-signature"] ?? request.headers["x-payment"]
      const payment = typeof header === "string" ? decode(header) : undefined
      const { headers, method = "", url: path = "" } = request
      const isAgent = headers["user-agent"]?.includes("agent tools") === true
      const body = await bodyOf(request)
      if (isAgent) seller.received.push({ method, path, headers, body, payment })
      const behaviour = isAgent ? seller.behaviour : {}
      const url = new URL(path, origin).href
      const unpaid = () => {
        const reply = asked(url, behaviour)
        return behaviour.unpaid?.(reply) ?? reply
      }
      const reply = payment === undefined ? unpaid() : await delivered(payment, { url, method, body })
      const raw = behaviour.raw?.[payment === undefined ? "unpaid" : "paid"]
      if (raw !== undefined && reply !== undefined) return raw(request.socket, reply)
      if (reply !== undefined) response.writeHead(reply.status, { ...reply.headers }).end(reply.body)
    })()
  })

  const seller: HttpSeller = {
    origin,
    payTo,
    behaviour: {},
    received: [],
    settlements: [],
    declared: new Map(),
    terms: () => ({
      scheme: "exact",
      network: "ledger:testnet",
      asset: testnetUsdc,
      amount: httpAmount.toString(),
      payTo,
      maxTimeoutSeconds: 300,
      extra: { areFeesSponsored: true }
    })
  }
  return seller
})
