// A seller of one page over plain HTTP, in the neutral dialect. Without a payment it answers 402 and its terms, in the
// body and in the PAYMENT-REQUIRED header; with one it has the facilitator verify it, does its work, has it settled,
// and only then releases the work, with the receipt in PAYMENT-RESPONSE. A payment's work is computed once and released
// for every repetition of the same request (`soldOnce.mjs`). It holds no key and opens no ledger.
//
//   PAY_TO=G… node examples/seller-http.ts
//
// FACILITATOR_URL, ASSET, AMOUNT, NETWORK (`stellar:testnet` for the official clients), PORT and SOLD (a folder for
// the store of sales) are optional.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { fileURLToPath } from "node:url"
import { fileStore, memoryStore, soldOnce, type Store } from "./soldOnce.mjs"

export interface SellerOptions {
  /** Base URL of the facilitator. */
  readonly facilitator: string
  /** The account that is paid: `G…` or `C…`, able to hold the asset. */
  readonly payTo: string
  /** Token contract, and the price in its atomic units. */
  readonly asset: string
  readonly amount: string
  /** Default `ledger:testnet`. */
  readonly network?: string
  /** Lifetime of a buyer's signature in seconds, default 60. */
  readonly maxTimeoutSeconds?: number
  /** Key for a facilitator that requires one. */
  readonly apiKey?: string
  /** Default 0, a free port. */
  readonly port?: number
  /** Store of sales; default in memory, lost when the process ends. */
  readonly store?: Store
}

export interface Seller {
  readonly url: string
  readonly close: () => Promise<void>
}

/** Reasons that ask for a retry: the outcome is pending, or the facilitator is busy. */
const notYet = new Set([
  "settle_ledger_transaction_status_unknown",
  "settlement_pending",
  "settle_ledger_temporarily_unavailable"
])

/** Repeating the identical settle is always safe: one authorization is one settlement. */
export const settleUntilKnown = async (settle: () => Promise<any>): Promise<any> => {
  for (let attempt = 1; ; attempt++) {
    const answer = await settle()
    if (answer.success || !notYet.has(answer.errorReason) || attempt === 20) return answer
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

/** The two calls of a facilitator, as `soldOnce` makes them; a pending payment is settled again. */
export const facilitatorClient = ({ apiKey, facilitator }: Pick<SellerOptions, "apiKey" | "facilitator">) => {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const ask = async (
    route: "verify" | "settle",
    paymentPayload: unknown,
    paymentRequirements: unknown
  ): Promise<any> => {
    const response = await fetch(`${facilitator}/${route}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements })
    })
    return response.json()
  }
  return {
    url: facilitator,
    createAuthHeaders: async () => ({ headers }),
    verify: (payment: unknown, requirements: unknown) => ask("verify", payment, requirements),
    settle: (payment: unknown, requirements: unknown) => settleUntilKnown(() => ask("settle", payment, requirements))
  }
}

/** The goods as they are stored: JSON. */
export const jsonWork = (body: unknown) => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: encode(body)
})

/** Starts the seller; its one page is `/weather`. */
export const startSeller = async (options: SellerOptions): Promise<Seller> => {
  const { sell } = soldOnce({ store: options.store ?? memoryStore() })
  const client = facilitatorClient(options)
  const terms = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }

  const paymentRequired = (request: IncomingMessage, error: string) => ({
    x402Version: 2,
    error,
    resource: {
      url: new URL(request.url!, `http://${request.headers.host}`).href,
      description: "Weather of a city, once",
      mimeType: "application/json"
    },
    accepts: [terms],
    extensions: {
      catalog: {
        info: {
          input: { type: "http", method: "GET", queryParams: { city: "Riga" } },
          output: { type: "json", example: { celsius: 17 } }
        },
        schema: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          type: "object",
          properties: { input: { type: "object" }, output: { type: "object" } },
          required: ["input"]
        }
      }
    }
  })

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const refuse = (error: string, receipt?: unknown) => {
      const body = paymentRequired(request, error)
      response
        .writeHead(402, {
          "content-type": "application/json",
          "payment-required": encode(body),
          ...(receipt === undefined ? {} : { "payment-response": encode(receipt) })
        })
        .end(JSON.stringify(body))
    }
    const url = new URL(request.url!, "http://seller")
    if (request.method !== "GET" || url.pathname !== "/weather") return void response.writeHead(404).end()
    const header = request.headers["payment-signature"]
    if (typeof header !== "string") return refuse("payment required")
    const paymentPayload = decode(header)
    if (paymentPayload === undefined) return refuse("PAYMENT-SIGNATURE is not base64 of JSON")
    const sale = await sell({
      client,
      payment: paymentPayload,
      requirements: terms,
      request: `${url.pathname}${url.search}`,
      work: () => jsonWork({ city: url.searchParams.get("city") ?? "Riga", celsius: 17 })
    })
    if (!sale.released) return refuse(sale.reason, sale.receipt)
    const { body, headers, status } = sale.work
    response
      .writeHead(status, { ...headers, "payment-response": encode(sale.receipt) })
      .end(Buffer.from(body, "base64"))
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
  })
  return listen(server, options.port ?? 0)
}

export const listen = (server: Server, port: number): Promise<Seller> =>
  new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", () => {
      const address = server.address() as { port: number }
      resolve({
        url: `http://127.0.0.1:${address.port}`,
        close: () =>
          new Promise((closed) => {
            server.closeAllConnections()
            server.close(() => closed())
          })
      })
    })
  })

export const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")

export const decode = (header: string): unknown => {
  try {
    return JSON.parse(Buffer.from(header, "base64").toString("utf8"))
  } catch {
    return undefined
  }
}

/** A seller's options from its environment. */
export const sellerOptions = (): SellerOptions & { readonly port: number } => {
  const { AMOUNT, ASSET, FACILITATOR_URL, NETWORK, PAY_TO: payTo, PORT, SOLD } = process.env
  if (payTo === undefined) throw new Error("set PAY_TO to the account that is to be paid")
  return {
    facilitator: FACILITATOR_URL ?? "http://127.0.0.1:4022",
    payTo,
    asset: ASSET ?? "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    amount: AMOUNT ?? "10000",
    network: NETWORK ?? "ledger:testnet",
    port: Number(PORT ?? 0),
    ...(SOLD === undefined ? {} : { store: fileStore(SOLD) })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = sellerOptions()
  const seller = await startSeller(options)
  console.log(`Selling ${seller.url}/weather; payments go to ${options.payTo}`)
}
