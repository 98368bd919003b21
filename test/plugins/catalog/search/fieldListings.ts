// A small catalog of many fields, one listing each: enough for search to separate an answer from a merely nearest
// listing.
import type { IngestedResource } from "../../../relevance/ingest.ts"

const fields =
  "weather forecast, currency rates, speech to text, flight delays, recipe ideas, tide tables, stock quotes, tax rules, " +
  "football scores, chess moves, bird songs, soil samples, ship positions, train times, patent search, court rulings, " +
  "star charts, road works, wine ratings, film reviews, job offers, house prices, parcel tracking, company registers"

/** Each has its own owner, from `GOWNER0` on. */
export const fieldListings: ReadonlyArray<IngestedResource> = fields.split(", ").map((field, at) => ({
  name: field,
  type: "http",
  url: `https://example.com/${at}`,
  toolName: "",
  description: `Gives ${field} for a place or a name`,
  serviceName: field,
  tags: [],
  info: { input: { type: "http", method: "GET" } },
  options: [{ scheme: "exact", network: "ledger:testnet", asset: "CASSET", amount: "5", payTo: `GOWNER${at}` }]
}))
