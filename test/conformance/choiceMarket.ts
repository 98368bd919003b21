// Sixty listings of seven origins, and purchase tasks for an agent. Each of twenty subjects is offered three times:
// plain; more expensive, with a feature late in its description; and either with another feature or, cheaper and with
// the same text, by an origin without proof. Every seller answers with the name of the sold offer.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { once } from "node:events"
import { facilitatorClient } from "../../examples/seller-http.ts"
import { bodyDeclaration, queryDeclaration } from "../plugins/catalog/support.ts"
import type { Json } from "../plugins/mcp-tools/support.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"

interface Subject {
  readonly slug: string
  /** Words that each of its offers has. */
  readonly words: string
  /** A longer description. */
  readonly more: string
  /** Features of the second and third offers. */
  readonly features: readonly [string, string]
}

const subjects: ReadonlyArray<Subject> = [
  ["air", "Air quality index of a city", "measured at ground stations", "with hourly history", "with pollen counts"],
  ["currency", "Currency conversion at the daily rate", "for national currencies", "with historical rates", "in bulk"],
  ["tides", "Tide times of a harbour", "high and low water from gauges", "with wave heights", "with moon phases"],
  ["flights", "Flight status by number", "departure and arrival from airports", "with gate changes", "with delays"],
  ["translate", "Translation of a text", "between common languages", "with formal tone", "with glossaries"],
  ["geocode", "Geocoding of a street address", "to coordinates", "with building outlines", "with time zones"],
  ["ocr", "Text recognition in a scanned page", "printed letters of any script", "with handwriting", "with tables"],
  ["spam", "Spam check of a message", "a score from zero to one", "with phishing links", "with sender reputation"],
  ["stocks", "Stock quotes of a company", "delayed by a quarter of an hour", "with dividends", "with insider trades"],
  ["dns", "DNS lookup of a domain", "records of every type", "with registration dates", "with mail servers"],
  ["tax", "Sales tax rate of a postal code", "by goods and by service", "with customs duties", "with exemptions"],
  ["recipes", "Recipes for given ingredients", "steps and quantities", "with calories", "with allergens"],
  ["football", "Football scores of a league", "live and final", "with player statistics", "with line-ups"],
  ["holidays", "Public holidays of a country", "by year and region", "with school terms", "with bank closures"],
  ["email", "Email address validation", "syntax and mailbox", "with disposable providers", "with typo corrections"],
  ["news", "News headlines about a topic", "from agencies and papers", "with sentiment", "with author names"],
  ["trains", "Train departures of a station", "as the board shows them", "with platform numbers", "with seat maps"],
  ["soil", "Soil moisture of a field", "from satellites", "with irrigation advice", "with frost warnings"],
  ["patents", "Patent search by keyword", "of all offices", "with citations", "with legal status"],
  ["colors", "Color palette of an image", "five dominant colors", "with contrast grades", "with paint names"]
].map(([slug = "", words = "", more = "", second = "", third = ""]) => ({
  slug,
  words,
  more,
  features: [second, third] as const
}))

/** A filler of typical length, so that a feature after it is cut from a line. */
const filler =
  "answered as JSON within a second, from sources that are named in each answer, under one price for every call"

export interface Offer {
  readonly id: string
  /** Index of its origin; the last origin is unproven. */
  readonly origin: number
  readonly path: string
  readonly description: string
  readonly amount: number
}

export const originsProven = 6

const offersOf = ({ features, more, slug, words }: Subject, at: number): ReadonlyArray<Offer> => {
  const plain = `${words}: ${more}, ${filler}`
  const third = isCopied(at)
    ? { origin: originsProven, description: plain, amount: 100 + at }
    : { origin: (at + 4) % originsProven, description: `${plain}, ${features[1]}`, amount: 900 + 10 * at }
  return [
    { id: `${slug}-plain`, origin: at % originsProven, path: `/${slug}`, description: plain, amount: 400 + 10 * at },
    {
      id: `${slug}-second`,
      origin: (at + 2) % originsProven,
      path: `/${slug}/more`,
      description: `${plain}, ${features[0]}`,
      amount: 700 + 10 * at
    },
    { id: `${slug}-third`, path: `/${slug}/other`, ...third }
  ]
}

/** True if a subject's third offer is a copy of the first, by the origin without proof. */
const isCopied = (at: number): boolean => at % 3 === 0

export const offers: ReadonlyArray<Offer> = subjects.flatMap(offersOf)

export interface Task {
  /** The agent's search query. */
  readonly query: string
  /** Words that the purchased offer must have. */
  readonly words: ReadonlyArray<string>
  readonly expected: string
}

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[a-z]{3,}/g) ?? []

/** Each subject plain, and with the feature of its second or third offer; copied offers are skipped. */
export const tasks: ReadonlyArray<Task> = subjects.flatMap(({ features, slug, words }, at) => {
  const featured = (which: 0 | 1, expected: string): Task => {
    const query = `${words} ${features[which]}`
    return { query, words: wordsOf(query), expected: `${slug}-${expected}` }
  }
  const plain: Task = { query: words, words: wordsOf(words), expected: `${slug}-plain` }
  if (at % 2 === 0) return [plain, featured(0, "second")]
  return isCopied(at) ? [plain] : [plain, featured(1, "third")]
})

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")

export interface Market {
  /** Payments by a customer that get each offer listed. */
  readonly listings: ReadonlyArray<{ readonly url: string; readonly accepted: Json; readonly payload: Json }>
  readonly close: () => void
}

/** The origin without proof only accepts POST, which no probe sends. */
export const isProven = ({ origin }: Offer): boolean => origin < originsProven

/** Opens every origin. */
export const openMarket = async (facilitator: string, payTo: string): Promise<Market> => {
  const client = facilitatorClient({ facilitator })
  const termsOf = ({ amount }: Offer): Json => ({
    scheme: "exact",
    network: "ledger:testnet",
    asset: testnetUsdc,
    amount: String(amount),
    payTo,
    maxTimeoutSeconds: 300,
    extra: { areFeesSponsored: true }
  })
  const declarationOf = (offer: Offer): Json =>
    isProven(offer)
      ? queryDeclaration({
          input: { of: "Riga" },
          inputSchema: { properties: { of: { type: "string" } }, required: ["of"] }
        })
      : bodyDeclaration("POST")
  const resourceOf = (offer: Offer, url: string) => ({
    url,
    description: offer.description,
    mimeType: "application/json"
  })

  const answer = async (offer: Offer, request: IncomingMessage, response: ServerResponse) => {
    const url = `http://${request.headers.host}${offer.path}`
    const header = request.headers["payment-signature"]
    const refuse = (error: string) => {
      const accepts = [termsOf(offer)]
      const extensions = { catalog: declarationOf(offer) }
      const required = { x402Version: 2, error, resource: resourceOf(offer, url), accepts, extensions }
      const headers = { "content-type": "application/json", "payment-required": encode(required) }
      response.writeHead(402, headers).end(JSON.stringify(required))
    }
    if (typeof header !== "string") return refuse("payment required")
    const payment = JSON.parse(Buffer.from(header, "base64").toString("utf8")) as Json
    const settled = await client.settle(payment, termsOf(offer))
    if (settled.success !== true) return refuse(String(settled.errorReason))
    response
      .writeHead(200, { "content-type": "application/json", "payment-response": encode(settled) })
      .end(JSON.stringify({ sold: offer.id }))
  }

  const servers = await Promise.all(
    Array.from({ length: originsProven + 1 }, async (_, origin) => {
      const own = new Map(offers.filter((offer) => offer.origin === origin).map((offer) => [offer.path, offer]))
      const server = createServer((request, response) => {
        const offer = own.get((request.url ?? "").split("?")[0]!)
        const isAsked = offer !== undefined && (isProven(offer) || request.method === "POST")
        if (isAsked) void answer(offer, request, response)
        else response.writeHead(404).end()
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return server
    })
  )
  const originOf = ({ origin }: Offer) => `http://127.0.0.1:${(servers[origin]!.address() as AddressInfo).port}`
  return {
    listings: offers.map((offer) => {
      const url = originOf(offer) + offer.path
      const extensions = { catalog: declarationOf(offer) }
      return { url, accepted: termsOf(offer), payload: { resource: resourceOf(offer, url), extensions } }
    }),
    close: () => {
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
    }
  }
}
