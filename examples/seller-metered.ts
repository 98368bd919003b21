// A seller that charges for usage: a page of words, at a price per word. The 402 asks for a maximum; after the work
// the seller settles the words actually served, at most that maximum, and nothing when there were none; a payment that
// comes again is settled for the words that were computed first. It holds no key and opens no ledger; it reads the
// contract and facilitator that its buyers sign for from the facilitator's /supported when it starts.
//
//   PAY_TO=G… node examples/seller-metered.ts
import { fileURLToPath } from "node:url"
import { jsonWork, listenPage, type Seller, type SellerOptions } from "./seller-http.ts"
import { facilitatorAt } from "./seller/outcome.mjs"
import { memoryStore, soldOnce } from "./seller/soldOnce.mjs"

export interface MeteredOptions extends Omit<SellerOptions, "amount"> {
  /** Maximum price of one page, and price of one word, in atomic units. */
  readonly max: bigint
  readonly perWord: bigint
}

const story = "Once a traveller came to a river and asked the ferryman what it costs to cross"

/** Starts the seller; its one page is `/story?words=N`. Rejects when the facilitator does not offer the scheme. */
export const startMeteredSeller = async (options: MeteredOptions): Promise<Seller> => {
  const network = options.network ?? "ledger:testnet"
  const headers: Record<string, string> =
    options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }
  const supported: any = await (await fetch(`${options.facilitator}/supported`, { headers })).json()
  const kind = supported.kinds.find((one: any) => one.scheme === "upto" && one.network === network)
  if (kind === undefined) throw new Error(`${options.facilitator} does not offer upto on ${network}`)
  const { counters, sell } = soldOnce({ ...options, service: "story", store: options.store ?? memoryStore() })
  const terms = {
    scheme: "upto",
    network,
    asset: options.asset,
    amount: String(options.max),
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: kind.extra
  }
  const required = (url: string, error: string) => ({
    x402Version: 2,
    error,
    resource: { url, description: "A story by the word", mimeType: "application/json" },
    accepts: [terms]
  })
  const work = (url: URL) => {
    // The maximum limits the work.
    const affordable = Number(options.max / options.perWord)
    const words = story.split(" ").slice(0, Math.min(Number(url.searchParams.get("words") ?? 5), affordable))
    const amount = String(BigInt(words.length) * options.perWord)
    return { ...jsonWork({ story: words.join(" "), words: words.length }), amount }
  }
  const client = facilitatorAt(options.facilitator, options.apiKey)
  const seller = await listenPage("/story", { client, required, sell, terms, work }, options.port ?? 0)
  return { ...seller, counters }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const payTo = process.env["PAY_TO"]
  if (payTo === undefined) throw new Error("set PAY_TO to the account that is to be paid")
  const seller = await startMeteredSeller({
    facilitator: process.env["FACILITATOR_URL"] ?? "http://127.0.0.1:4022",
    payTo,
    asset: process.env["ASSET"] ?? "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    max: BigInt(process.env["MAX"] ?? 100_000),
    perWord: BigInt(process.env["PER_WORD"] ?? 1_000),
    port: Number(process.env["PORT"] ?? 0)
  })
  console.log(`Selling ${seller.url}/story?words=5; payments go to ${payTo}`)
}
