// Which price conditions are read from a query, and which are not.
import { describe, expect, it } from "vitest"
import { readIntent } from "../../../../plugins/catalog/search/readIntent.ts"

const assets = [
  { network: "ledger:testnet", contract: "CXLM", symbol: "XLM", decimals: 7 },
  { network: "ledger:testnet", contract: "CUSDC", symbol: "USDC", decimals: 7 }
]
const read = (query: string) => {
  const { filters, prefersCheap, query: rest, words } = readIntent(query, {}, assets)
  return [rest, filters.asset, filters.maxPrice, prefersCheap, words] as const
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
    ["markdown with a budget cap of $0.005.", "markdown .", "CUSDC", 50_000n, "with a budget cap of $0.005"]
  ])("a price filter is read from %j", (query, rest, asset, maxPrice, words) => {
    expect(read(query)).toEqual([rest, asset, maxPrice, false, [words]])
  })

  it.each([
    "flights under $200",
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
    expect(readIntent("weather under €0.01", {}, assets).filters).toEqual({})
    expect(readIntent("weather under $0.01", { type: "mcp" }, assets).filters).toEqual({
      type: "mcp",
      asset: "CUSDC",
      maxPrice: 100_000n
    })
  })
})
