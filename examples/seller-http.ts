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
import { type Client, encode, facilitatorAt, settleUntilKnown } from "./seller/outcome.mjs"
import { answerWithheld, readPayment, type Work } from "./seller/sales.mjs"
import { fileStore, memoryStore, soldOnce, type Store } from "./seller/soldOnce.mjs"

export interface SellerOptions {
  /** Base URL of the facilitator. */
  readonly facilitator: string
  /** The payee: `G…` or `C…`, able to hold the asset. */
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
  /** Gets one line for each cause for which the facilitator gave no answer; default the console. */
  readonly log?: (line: string) => void
  /** Milliseconds for which an unanswered settle is repeated before the buyer gets 503; default 15 s. */
  readonly patience?: number
}

export interface Seller {
  readonly url: string
  readonly close: () => Promise<void>
  /** Calls that the facilitator did not answer, by cause. */
  readonly counters?: Readonly<Record<string, number>>
}

export type Sell = ReturnType<typeof soldOnce>["sell"]

export interface Page {
  readonly sell: Sell
  readonly client: Client
  readonly terms: { readonly amount: string; readonly network: string }
  /** The body of a 402. */
  readonly required: (url: string, error: string) => unknown
  readonly work: (url: URL) => Work
}

/** The answer to one request of a page: the 402, the page, or why neither is known yet. */
export const servePage = async (
  { client, required, sell, terms, work }: Page,
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  const url = new URL(request.url!, `http://${request.headers.host}`)
  const refuse = (error: string, receipt?: unknown) => {
    const body = required(url.href, error)
    response
      .writeHead(402, {
        "content-type": "application/json",
        "cache-control": "no-store",
        "payment-required": encode(body),
        ...(receipt === undefined ? {} : { "payment-response": encode(receipt) })
      })
      .end(JSON.stringify(body))
  }
  const header = request.headers["payment-signature"]
  if (typeof header !== "string") return refuse("payment required")
  const read = readPayment(header)
  if (read === undefined) return refuse("PAYMENT-SIGNATURE is not base64 of a payment")
  const sold = await sell({
    ...{ client, requirements: terms, ...read },
    request: { method: request.method!, url: url.href },
    work: () => work(url)
  })
  if (!sold.released) {
    const withheld = answerWithheld(sold, read.payment)
    if (withheld === undefined) return refuse(sold.reason, sold.receipt)
    return void response.writeHead(withheld.status, withheld.headers).end(JSON.stringify(withheld.body))
  }
  const { body, headers, status } = sold.work
  response
    .writeHead(status, { ...headers, "cache-control": "private, no-store", "payment-response": encode(sold.receipt) })
    .end(Buffer.from(body, "base64"))
}

/** A server of one page. */
export const listenPage = (path: string, page: Page, port: number): Promise<Seller> => {
  const server = createServer((request, response) => {
    const isPage = request.method === "GET" && URL.parse(request.url!, "http://seller")?.pathname === path
    if (!isPage) return void response.writeHead(404).end()
    servePage(page, request, response).catch((error) => {
      console.error(error)
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  })
  return listen(server, port)
}

/**
 * The two calls of a facilitator for other callers, such as a claimer: a settle is repeated until its end is known, and
 * answered as pending after a while. A sale uses `soldOnce`, which does the same.
 */
export const facilitatorClient = ({ apiKey, facilitator }: Pick<SellerOptions, "apiKey" | "facilitator">) => {
  const client = facilitatorAt(facilitator, apiKey)
  return {
    ...client,
    settle: async (payment: any, requirements: any, key?: string): Promise<any> =>
      (await settleUntilKnown(client, payment, requirements, key)).receipt
  }
}

/** The goods in stored form: JSON. */
export const jsonWork = (body: unknown) => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: encode(body)
})

/** Starts the seller; its one page is `/weather`. */
export const startSeller = async (options: SellerOptions): Promise<Seller> => {
  const { counters, sell } = soldOnce({ ...options, service: "weather", store: options.store ?? memoryStore() })
  const terms = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { input: { type: "object" }, output: { type: "object" } },
    required: ["input"]
  }
  const info = {
    input: { type: "http", method: "GET", queryParams: { city: "Riga" } },
    output: { type: "json", example: { celsius: 17 } }
  }
  const required = (url: string, error: string) => ({
    x402Version: 2,
    error,
    resource: { url, description: "Weather of a city, once", mimeType: "application/json" },
    accepts: [terms],
    extensions: { catalog: { info, schema } }
  })
  const work = (url: URL) => jsonWork({ city: url.searchParams.get("city") ?? "Riga", celsius: 17 })
  const client = facilitatorAt(options.facilitator, options.apiKey)
  const seller = await listenPage("/weather", { client, required, sell, terms, work }, options.port ?? 0)
  return { ...seller, counters }
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
