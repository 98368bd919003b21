// Which price conditions are read from a query, and which are not.
import { describe, expect, it } from "vitest"
import { readIntent } from "../../../../plugins/catalog/search/readIntent.ts"

const assets = [
  { network: "ledger:testnet", contract: "CXLM", symbol: "XLM", decimals: 7 },
  { network: "ledger:testnet", contract: "CUSDC", symbol: "USDC", decimals: 7 }
]
const read = (query: string) => {
  const { filters, prefers, query: rest, words } = readIntent(query, {}, assets)
  return [rest, filters.asset, filters.maxPrice, prefers.includes("cheap"), words] as const
}

describe("the price in a query", () => {
  it.each([
    ["currency conversion under $0.001", "currency conversion", "CUSDC", 10_000n, "under $0.001"],
    ["stock quotes under $0.002 per request", "stock quotes", "CUSDC", 20_000n, "under $0.002 per request"],
    ["weather below 0.5 USDC a call please", "weather please", "CUSDC", 5_000_000n, "below 0.5 USDC a call"],
    ["weather for less than 2 cents", "weather", "CUSDC", 200_000n, "for less than 2 cents"],
    ["max 3 xlm translation", "translation", "CXLM", 30_000_000n, "max 3 xlm"],
    ["under $0.01 weather", "weather", "CUSDC", 100_000n, "under $0.01"],
    ["news at most $.01", "news", "CUSDC", 100_000n, "at most $.01"],
    ["weather <$0.01", "weather", "CUSDC", 100_000n, "<$0.01"],
    ["weather <= 0.01$", "weather", "CUSDC", 100_000n, "<= 0.01$"],
    ["$0.01 or less per page news", "per page news", "CUSDC", 100_000n, "$0.01 or less"],
    ["news for 2 cents a call max", "news", "CUSDC", 200_000n, "for 2 cents a call max"],
    ["tides at most one cent", "tides", "CUSDC", 100_000n, "at most one cent"],
    ["tides for less than half a cent", "tides", "CUSDC", 50_000n, "for less than half a cent"],
    ["weather under a dollar", "weather", "CUSDC", 10_000_000n, "under a dollar"],
    ["weather between $0.001 and $0.01", "weather", "CUSDC", 100_000n, "between $0.001 and $0.01"],
    ["Wetter unter 1 cent", "Wetter", "CUSDC", 100_000n, "unter 1 cent"],
    ["weather between 1 and 2 cents", "weather", "CUSDC", 200_000n, "between 1 and 2 cents"],
    ["weather 1-2 cents", "weather", "CUSDC", 200_000n, "1-2 cents"],
    ["Wetter zwischen 1 und 2 Cent", "Wetter", "CUSDC", 200_000n, "zwischen 1 und 2 Cent"],
    ["weather 0,002 $", "weather", "CUSDC", 20_000n, "0,002 $"],
    ["Wetter unter 0,2 Cent", "Wetter", "CUSDC", 20_000n, "unter 0,2 Cent"],
    ["clima por 1 centavo", "clima", "CUSDC", 100_000n, "por 1 centavo"],
    ["clima por menos de un céntimo", "clima", "CUSDC", 100_000n, "por menos de un céntimo"],
    ["météo à moins de 2 centimes", "météo", "CUSDC", 200_000n, "à moins de 2 centimes"],
    ["weather for two cents", "weather", "CUSDC", 200_000n, "for two cents"],
    ["weather two cents", "weather", "CUSDC", 200_000n, "two cents"],
    ["$0.01 weather", "weather", "CUSDC", 100_000n, "$0.01"],
    ["weather under USD 0.01", "weather", "CUSDC", 100_000n, "under USD 0.01"],
    ["weather under 2¢", "weather", "CUSDC", 200_000n, "under 2¢"],
    ["markdown with a budget cap of $0.005.", "markdown .", "CUSDC", 50_000n, "with a budget cap of $0.005"]
  ])("a price filter is read from %j", (query, rest, asset, maxPrice, words) => {
    expect(read(query)).toEqual([rest, asset, maxPrice, false, [words]])
  })

  it.each([
    "flights under $200",
    "flat under $1,000",
    "flat under 1.000 $",
    "laptop under 1,299.00 dollars",
    "weather at least $1",
    "weather at least 1 cent",
    "weather more than 2 cents",
    "exchange rate for 1 dollar",
    "send 0.5 xlm",
    "convert 0.5 usd to eur",
    "companies with revenue under $5 billion",
    "startups under 5 million",
    "rooms under 3 stars",
    "more than $1",
    "up to a point",
    "a $5 hotel max verstappen",
    "within one day",
    "10 pages max",
    "between 5 and 10 pages",
    "under an hour",
    "pdf up to 5 pages",
    "files under 5MB",
    "convert $5 to euros",
    "under $0.01",
    "regex-free parser",
    "sugar free recipes",
    "duty-free shops"
  ])("no price filter is read from %j", (query) => {
    expect(read(query)).toEqual([query, undefined, undefined, false, []])
  })

  it("cheapest and a leading free are ranking hints, not search terms", () => {
    expect(read("cheapest image generation")).toEqual(["image generation", undefined, undefined, true, ["cheapest"]])
    expect(read("free regex tester")).toEqual(["regex tester", undefined, undefined, true, ["free"]])
    expect(read("kostenloses Wetter")).toEqual(["Wetter", undefined, undefined, true, ["kostenloses"]])
    expect(read("météo gratuite")).toEqual(["météo", undefined, undefined, true, ["gratuite"]])
    expect(read("weather for free")).toEqual(["weather", undefined, undefined, true, ["for free"]])
    expect(read("cheapest")).toEqual(["cheapest", undefined, undefined, false, []])
  })

  it("price words yield to the caller's filters and to unknown assets", () => {
    const own = { asset: "CXLM", maxPrice: 5n }
    expect(readIntent("weather under $0.01", own, assets)).toMatchObject({ query: "weather under $0.01", filters: own })
    for (const price of ["under €0.01", "EUR 0.01", "€0.01"])
      expect(readIntent(`weather ${price}`, {}, assets)).toMatchObject({
        query: "weather",
        filters: {},
        words: [price]
      })
    const euro = { network: "ledger:testnet", contract: "CEURC", symbol: "EURC", decimals: 7 }
    const filters = { asset: "CEURC", maxPrice: 100_000n }
    expect(readIntent("weather EUR 0.01", {}, [...assets, euro])).toMatchObject({ query: "weather", filters })
    expect(readIntent("weather under $0.01", { type: "mcp" }, assets).filters).toEqual({
      type: "mcp",
      asset: "CUSDC",
      maxPrice: 100_000n
    })
  })
})
