// Parses price words in a query: "under $0.002 a call" becomes a filter, "cheapest" and a leading "free" become a
// preference that orders equals. Such words do not describe a service: the rest of the query is searched for, and the
// answer shows the parsed intent. The caller's own filter takes precedence over the words. An amount that no call costs
// is about something else ("flights under $200"), and a query with nothing but a price stays unchanged. Pure.
import type { Filters } from "../contract.ts"
import { atomicAmount, isPaidIn, type PricedAsset } from "../pricing.ts"

/** No call costs more than this of its currency: such an amount is part of the query. */
const callPriceMax = 10

export interface Intent {
  /** The text that is searched for. */
  readonly query: string
  readonly filters: Filters
  /** Equally relevant hits are ordered by price. */
  readonly prefersCheap: boolean
  /** The words that were understood as a price. */
  readonly words: ReadonlyArray<string>
}

const currencies: Readonly<Record<string, string>> = {
  $: "USD",
  "€": "EUR",
  usd: "USD",
  dollar: "USD",
  dollars: "USD",
  cent: "USD",
  cents: "USD",
  eur: "EUR",
  euro: "EUR",
  euros: "EUR"
}

/** Spelled-out amounts. */
const amounts: Readonly<Record<string, string>> = { "half a": "0.5", "half an": "0.5", a: "1", an: "1", one: "1" }

const bound =
  "under|below|less than|cheaper than|at most|up to|no more than|not more than|maximum(?: of)?|max|within|<=?|≤|" +
  "unter|weniger als|höchstens|maximal|moins de|menos de|meno di|máximo"
const lead = "(?:for|priced|costs?|costing|für|pour|por|per)\\s+"
const budget = "(?:with\\s+)?(?:a\\s+)?budget(?:\\s+cap)?\\s+of"
const after = "or (?:less|cheaper|under|below)|max(?:imum)?|at (?:the )?most"
const per = "(?:\\s*(?:per|an?|each|\\/)\\s*(?:call|request|query|use|lookup|message|image|page))?"
/** "$10 billion" is not a price of a call, and neither is "5MB". */
const large = "(?:\\s*(?:thousand|million|billion|trillion|bn|[kmb])\\b)"
const cheapest = [
  "cheapest",
  "lowest[- ]priced?",
  "least expensive",
  "free of charge",
  "for free",
  "at no cost",
  "gratis",
  "gratuit(?:[aeo]?s?)",
  "(?:kostenlos|günstigst|billigst)(?:e[mnrs]?)?"
]
const cheap = new RegExp(`\\b(?:${cheapest.join("|")})\\b|^\\s*free\\s+(?=\\S)`, "gi")

/** Price limits: how one begins or ends, a sign or a unit of these assets, and no more behind it. */
const limitsOf = (assets: ReadonlyArray<PricedAsset>): ReadonlyArray<RegExp> => {
  const words = Object.keys(currencies).filter((unit) => /^[a-z]/.test(unit))
  const units = [...words, ...assets.map(({ symbol }) => symbol)].join("|")
  const number = "\\d{1,9}(?:\\.\\d{1,12})?|\\.\\d{1,12}|half an?|an?|one"
  const amount = `([$€])?\\s*(${number})(?:\\s*([$€]|(?:${units})\\b))?`
  const end = `(?!${large})${per}(?![\\w%]|\\.\\d)`
  const start = "(?<![\\p{L}\\p{N}])"
  return [
    `(?:${lead})?(?:${start}(?:${bound})|${budget})\\s*${amount}${end}`,
    `(?:${lead})?${start}between\\s+[$€]?\\s*[\\d.]+\\s*(?:[$€]|${units})?\\s+and\\s+${amount}${end}`,
    `(?:${lead})?(?<![\\p{L}\\p{N}.])${amount}${per}\\s+(?:${after})(?![\\p{L}\\p{N}])`
  ].map((source) => new RegExp(source, "iu"))
}

/** Made once for the assets of a process: it costs as much as reading a query. */
const limits = new WeakMap<ReadonlyArray<PricedAsset>, ReadonlyArray<RegExp>>()
const limitsIn = (assets: ReadonlyArray<PricedAsset>): ReadonlyArray<RegExp> => {
  const known = limits.get(assets) ?? limitsOf(assets)
  limits.set(assets, known)
  return known
}

interface Limit {
  readonly currency: string
  readonly text: string
  readonly isCents: boolean
}

/** The limit that a phrase names; undefined if it names something else. */
const readLimit = ([, sign, digits = "", unit = ""]: ReadonlyArray<string | undefined>): Limit | undefined => {
  const word = unit.toLowerCase()
  if (sign === undefined && word === "") return undefined
  const currency = sign === undefined ? (currencies[word] ?? unit.toUpperCase()) : currencies[sign]!
  const text = amounts[digits.toLowerCase()] ?? (digits.startsWith(".") ? `0${digits}` : digits)
  const isCents = word.startsWith("cent")
  return Number(text) > (isCents ? 100 * callPriceMax : callPriceMax) ? undefined : { currency, text, isCents }
}

/** The asset of this ledger that a currency can be paid in. */
export const assetOf = (currency: string, assets: ReadonlyArray<PricedAsset>): PricedAsset | undefined =>
  assets.find(({ symbol }) => isPaidIn(currency, symbol))

/** Whole atomic units at most; finer parts of a limit buy nothing. */
const unitsOf = (text: string, decimals: number): bigint | undefined => {
  const [whole = "", fraction = ""] = text.split(".")
  const units = atomicAmount(fraction === "" ? whole : `${whole}.${fraction.slice(0, decimals) || "0"}`, decimals)
  return units === undefined ? undefined : BigInt(units)
}

/** The filter that a phrase means, of an asset that this ledger has. */
const filterOf = (match: ReadonlyArray<string | undefined>, assets: ReadonlyArray<PricedAsset>) => {
  const reported = readLimit(match)
  const asset = reported === undefined ? undefined : assetOf(reported.currency, assets)
  if (reported === undefined || asset === undefined) return undefined
  const maxPrice = unitsOf(reported.text, reported.isCents ? asset.decimals - 2 : asset.decimals)
  return maxPrice === undefined ? undefined : { asset: asset.contract, maxPrice }
}

export const readIntent = (query: string, filters: Filters, assets: ReadonlyArray<PricedAsset>): Intent => {
  const isOpen = filters.asset === undefined && filters.maxPrice === undefined
  const match = isOpen
    ? limitsIn(assets)
        .map((limit) => limit.exec(query))
        .find((match) => match !== null)
    : undefined
  const maxPrice = match === undefined ? undefined : filterOf(match, assets)
  const limits = maxPrice === undefined ? [] : [match![0]]
  const rest = limits[0] === undefined ? query : query.replace(limits[0], " ")
  const wishes = rest.match(cheap) ?? []
  const probed = rest.replace(cheap, " ").replace(/\s+/g, " ").trim()
  // A query that consists only of a price is searched for unchanged.
  if (!/\p{L}/u.test(probed)) return { query, filters, prefersCheap: false, words: [] }
  return {
    query: probed,
    filters: { ...filters, ...maxPrice },
    prefersCheap: wishes.length > 0,
    words: [...limits, ...wishes].map((words) => words.trim())
  }
}
