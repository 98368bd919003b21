// A seller of one page over plain HTTP, in the neutral dialect. Without a payment it answers 402 and its terms, in the
// body and in the PAYMENT-REQUIRED header; with one it asks the facilitator to verify, does its work, asks it to
// settle, and only then hands the work over, with the receipt in PAYMENT-RESPONSE. It holds no key and opens no ledger.
//
//   PAY_TO=G… node examples/seller-http.ts
//
// FACILITATOR_URL, ASSET, AMOUNT, NETWORK (`stellar:testnet` for the official clients) and PORT may be set beside it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { fileURLToPath } from "node:url"

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
  /** Seconds a buyer's signature may stay good, default 60. */
  readonly maxTimeoutSeconds?: number
  /** Key for a facilitator that asks for one. */
  readonly apiKey?: string
  /** Default 0, a free port. */
  readonly port?: number
}

export interface Seller {
  readonly url: string
  readonly close: () => Promise<void>
}

/** Words with which a facilitator says "ask me again": the outcome is not known yet, or it is busy. */
const notYet = new Set([
  "settle_ledger_transaction_status_unknown",
  "settlement_pending",
  "settle_ledger_temporarily_unavailable"
])

/** Sending the identical settle again is always safe: one authorization is one settlement. */
export const settleUntilKnown = async (settle: () => Promise<any>): Promise<any> => {
  for (let attempt = 1; ; attempt++) {
    const answer = await settle()
    if (answer.success || !notYet.has(answer.errorReason) || attempt === 20) return answer
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

/** Payments that are remembered; one that is forgotten is no longer valid, and buys nothing. */
const soldMax = 10_000

/**
 * What each transaction has bought: a payment that comes again, at once or later, has that again and nothing else. The
 * facilitator tells of a success as often as it is asked under one identifier, so this is for the seller to hold.
 */
export class Sold {
  readonly #bought = new Map<string, string>()

  has(transaction: string, what: string): boolean {
    return this.#bought.get(transaction) === what
  }

  /** True for the first thing that is bought with a transaction, and for the same again. */
  take(transaction: string, what: string): boolean {
    const first = this.#bought.get(transaction) ?? what
    this.#bought.set(transaction, first)
    if (this.#bought.size > soldMax) this.#bought.delete(this.#bought.keys().next().value!)
    return first === what
  }
}

/** Starts the seller; its one page is `/weather`. */
export const startSeller = async (options: SellerOptions): Promise<Seller> => {
  const sold = new Sold()
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

  const ask = async (route: "verify" | "settle", paymentPayload: unknown): Promise<any> => {
    const response = await fetch(`${options.facilitator}/${route}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` })
      },
      body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: terms })
    })
    return response.json()
  }

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
    const verified = await ask("verify", paymentPayload)
    if (!verified.isValid) return refuse(verified.invalidReason)
    const work = { city: url.searchParams.get("city") ?? "Riga", celsius: 17 }
    const receipt = await settleUntilKnown(() => ask("settle", paymentPayload))
    if (!receipt.success) return refuse(receipt.errorReason, receipt)
    if (!sold.take(receipt.transaction, url.search)) return refuse("the payment has bought something else")
    response
      .writeHead(200, { "content-type": "application/json", "payment-response": encode(receipt) })
      .end(JSON.stringify(work))
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
  const { AMOUNT, ASSET, FACILITATOR_URL, NETWORK, PAY_TO: payTo, PORT } = process.env
  if (payTo === undefined) throw new Error("set PAY_TO to the account that is to be paid")
  return {
    facilitator: FACILITATOR_URL ?? "http://127.0.0.1:4022",
    payTo,
    asset: ASSET ?? "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    amount: AMOUNT ?? "10000",
    network: NETWORK ?? "ledger:testnet",
    port: Number(PORT ?? 0)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = sellerOptions()
  const seller = await startSeller(options)
  console.log(`Selling ${seller.url}/weather to whoever pays ${options.payTo}`)
}
