// How texts become words, and how an index's texts are read.
import { describe, expect, it } from "vitest"
import { documentText } from "../../../plugins/search-lexical/documentText.ts"
import { readVector } from "../../../plugins/search-lexical/postings/readVector.ts"
import {
  boundedText,
  currencyWords,
  editsBetween,
  gramsOf,
  isMistyped,
  queryWords,
  urlNames,
  wordsOf
} from "../../../plugins/search-lexical/words.ts"
import { resourceDocument } from "./resourceDocument.ts"

describe("words", () => {
  it("identifiers of every kind are split into words", () => {
    expect(wordsOf("getLedgerEntry lookup_transaction_receipt HTTPServer v2Price").words).toEqual([
      "get",
      "ledger",
      "entry",
      "lookup",
      "transaction",
      "receipt",
      "http",
      "server",
      "v2",
      "price"
    ])
  })

  it("vowel signs stay in their word, pictographs are no words", () => {
    expect(wordsOf("टमाटर का भाव").words).toEqual(["टमाटर", "का", "भाव"])
    expect(wordsOf("☁️ weather ❤️").words).toEqual(["weather"])
  })

  it("a compound of two words is kept whole beside its parts", () => {
    expect(wordsOf("e-mail and linkedIn")).toEqual({
      words: ["e", "mail", "and", "linked", "in"],
      joined: ["email", "linkedin"]
    })
    expect(wordsOf("pay-as-you-go").joined).toEqual([])
  })

  it("diacritics are removed from Latin letters only", () => {
    expect(wordsOf("Übersetzer ŁÓDŹ Straße pronóstico Đà smørrebrød").words).toEqual(
      "ubersetzer lodz strasse pronostico da smorrebrod".split(" ")
    )
    expect(wordsOf("ёлка йод άλφα 한국어 が").words).toEqual("ёлка йод άλφα 한국 국어 が".split(" "))
  })

  it("a text of capital letters takes no longer than any other", () => {
    const from = performance.now()
    // Each is four letters once it is normalized.
    expect(wordsOf("\u2167".repeat(8_192)).words).toEqual([])
    expect(wordsOf("XYZZYAbc HTTPServer XMLHttp").words).toEqual("xyzzy abc http server xml http".split(" "))
    expect(performance.now() - from).toBeLessThan(200)
  })

  it("a normalized text is truncated too", () => {
    expect(wordsOf("\ufdfa ".repeat(4_096)).words.length).toBeLessThan(2_000)
  })

  it("pieces of words in any script are whole characters", () => {
    for (const word of ["𞤀𞤁𞤂", "𐌰b𐌲"]) expect(gramsOf(word).every((gram) => gram.isWellFormed())).toBe(true)
    expect(gramsOf("𞤀𞤁")).toEqual(["  𞤀", " 𞤀𞤁", "𞤀𞤁 "])
  })

  it("overlong words are dropped and overlong texts are truncated", () => {
    expect(wordsOf(`ok ${"x".repeat(41)}`).words).toEqual(["ok"])
    expect(wordsOf("word ".repeat(10_000)).words.length).toBeLessThanOrEqual(1_639)
  })

  it("a repeated word counts a bounded number of times", () => {
    expect(boundedText(["weather weather Weather", "weather rain"], { timesMax: 2, wordsMax: 10 })).toBe(
      "weather weather rain"
    )
    expect(boundedText(["a b c d e"], { timesMax: 1, wordsMax: 3 })).toBe("a b c")
  })

  it("a URL's words are its host without top-level domain and its path", () => {
    expect(urlNames("https://www.api.Weather-Co.com:8443/v1/forecast/{cityName}?x=1")).toEqual([
      "api",
      "Weather-Co",
      "forecast",
      "{cityName}"
    ])
    expect(urlNames("mcp://tools.example/search")).toEqual(["tools", "search"])
    expect(urlNames("not a url")).toEqual([])
    expect(urlNames("https://a.example/%zz")).toEqual(["a", "%zz"])
  })

  it.each([
    ["漢字にふりがなを振る", "漢字 ふり りが がな"],
    ["漢字のふりがな", "漢字 ふり りが がな"],
    ["ふりがな", "ふり りが がな"],
    ["いちごの値段", "いち ちご 値段"],
    ["東京のおすすめのレストラン", "東京 レス スト トラ ラン"],
    ["明日の天気を知りたい", "明日 天気"],
    ["近くで空いている駐車場", "駐車 車場"],
    ["荷物がどこにあるか", "荷物"]
  ])("nouns in Hiragana are words of %s, endings and particles are not", (query, words) => {
    expect(queryWords(query, "english").words.join(" ")).toBe(words)
  })

  it("English framing is dropped unless the query has nothing else", () => {
    expect(queryWords("I need to find weather data", "english").words).toEqual(["i", "to", "weather", "data"])
    expect(queryWords("A list of companies", "english").words).toEqual(["a", "companies"])
    expect(queryWords("sanctions list", "english").words).toEqual(["sanctions", "list"])
    expect(queryWords("list of", "english").words).toEqual(["list", "of"])
    expect(queryWords("find", "english").words).toEqual(["find"])
    expect(queryWords("find weather", "simple").words).toEqual(["find", "weather"])
  })

  it("typos differ from other words", () => {
    expect(isMistyped("wether", "weather")).toBe(true)
    expect(isMistyped("trnaslate", "translate")).toBe(true)
    expect(isMistyped("weather", "leather")).toBe(false)
    expect(isMistyped("cat", "cut")).toBe(true)
    expect(isMistyped("price", "print")).toBe(false)
    expect(editsBetween("abc", "abcdef", 2)).toBe(3)
    expect(gramsOf("ab")).toEqual(["  a", " ab", "ab "])
  })
})

describe("a resource's text", () => {
  it("a resource's text has parameter names and descriptions, no payment terms", () => {
    const text = documentText(
      resourceDocument({
        serviceName: "CityWeather",
        resource: "https://weather.example/v1/now/{city}",
        description: "Current conditions.",
        tags: ["air-quality"],
        operations: [
          {
            method: "GET",
            info: {
              input: { type: "http", method: "GET", queryParams: { unitSystem: "metric" } },
              output: { type: "json", example: { temp: 3, sky: "cloudy" } }
            },
            schema: {
              properties: {
                input: {
                  properties: {
                    queryParams: {
                      properties: { unitSystem: { type: "string", description: "Imperial or metric units" } }
                    }
                  }
                }
              }
            }
          }
        ],
        options: [{ scheme: "exact", network: "ledger:testnet", asset: "CASSET", amount: 1n, payTo: "GPAYTO" }]
      })
    )
    expect(text).toEqual({
      a: "city weather cityweather weather now city",
      b: "current conditions unit system unitsystem temp sky imperial or metric units",
      c: "air quality airquality",
      d: "metric cloudy"
    })
  })

  it("a resource's text is bounded for any declaration", () => {
    const deep = (depth: number): unknown => (depth === 0 ? "x" : { [`key${depth}`]: deep(depth - 1) })
    const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`name${at}`, "value"]))
    const text = documentText(
      resourceDocument({
        description: "spam ".repeat(5_000),
        operations: [{ method: "GET", info: { input: deep(500) as {}, wide }, schema: undefined }]
      })
    )
    expect(text.b.split(" ").length).toBeLessThanOrEqual(600)
    expect(text.b.split(" ").filter((word) => word === "spam")).toHaveLength(3)
    expect(text.d.split(" ").length).toBeLessThanOrEqual(200)
  })
})

it("a tsvector's lexemes are read with their frequencies and positions", () => {
  const read: Array<unknown> = []
  const text = String.raw`'''' '\\':4B 'it''s':1A,3 'plain' 'wett''\\er':2C,300,16383D`
  readVector(text, (lexeme, frequency, positions) => read.push([lexeme, frequency, [...positions]]))
  expect(read).toEqual([
    ["'", 1, []],
    ["\\", 4, [4]],
    ["it's", 9, [1, 3]],
    ["plain", 1, []],
    ["wett'\\er", 8, [2, 300, 16_383]]
  ])
})

it("codes and currency signs are read as the words they denote", () => {
  expect(currencyWords("usd to eur")).toEqual(["dollar", "euro", "currency"])
  for (const query of ["€ to $", "EURUSD", "eur usd rate", "$/€"])
    expect(currencyWords(query).toSorted(), query).toEqual(["currency", "dollar", "euro"])
  for (const query of ["convert GBP/JPY now", "jpy", "JPY rate today", "100 jpy in euros to jpy"])
    expect(currencyWords(query), query).toEqual(
      query.startsWith("100") ? [] : expect.arrayContaining(["yen", "currency"])
    )
  expect(currencyWords("btc to usd")).toEqual(["bitcoin", "dollar", "crypto", "price"])
  expect(currencyWords("history of xlm")).toEqual(["stellar", "lumens", "crypto", "price"])
  for (const query of ["pdf to png", "how to get to the sea", "price of gold in usd", "a usd to b", "xusd to eur"])
    expect(currencyWords(query), query).toEqual([])
  for (const query of ["all cad files", "try all", "weather under $5", "$0.01", "cad to stl", "top gel"])
    expect(currencyWords(query), query).toEqual([])
})
