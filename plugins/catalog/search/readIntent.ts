// Parses price words in a query: "under $0.002 a call" becomes a filter, "cheapest" and a leading "free" become a
// preference that orders equals, and so do some words of its frame (`readFrame.ts`). Such words do not describe a
// service: the rest of the query is searched for, and the answer shows the parsed intent. The caller's own filter takes
// precedence over the words. An amount that no call costs is about something else ("flights under $200"), a lower bound
// ("at least $1") filters nothing, and a query with nothing but a price stays unchanged. Pure.
import type { Filters } from "../contract.ts"
import { atomicAmount, isPaidIn, type PricedAsset } from "../pricing.ts"
import { isAboutMoney, type Preference, readFrame } from "./readFrame.ts"

/** No call costs more than this of its currency: such an amount is part of the query. */
const callPriceMax = 10
/** The same maximum for an amount without a word for a limit. */
const barePriceMax = 0.5

export interface Intent {
  /** The text that is searched for. */
  readonly query: string
  readonly filters: Filters
  /** Preferences that order equally relevant hits. */
  readonly prefers: ReadonlyArray<Preference>
  /** The words that were understood as a price, and the frame. */
  readonly words: ReadonlyArray<string>
}

const currencies: Readonly<Record<string, string>> = {
  $: "USD",
  us$: "USD",
  "€": "EUR",
  "¢": "USD",
  usd: "USD",
  dollar: "USD",
  dollars: "USD",
  cent: "USD",
  cents: "USD",
  centavo: "USD",
  centavos: "USD",
  centimo: "USD",
  centimos: "USD",
  centime: "USD",
  centimes: "USD",
  centesimo: "USD",
  centesimi: "USD",
  eur: "EUR",
  euro: "EUR",
  euros: "EUR"
}

/** Spelled-out amounts. */
const amounts: Readonly<Record<string, string>> = {
  "a tenth of a": "0.1",
  "a quarter of a": "0.25",
  "half a": "0.5",
  "half an": "0.5",
  "a couple of": "2",
  ...Object.fromEntries(
    [
      "a an one ein einen un une uno um um",
      "two zwei deux dos dois due",
      "three drei trois tres três tre",
      "four",
      "five"
    ]
      .concat(["six", "seven", "eight", "nine", "ten"])
      .flatMap((words, at) => words.split(" ").map((word) => [word, String(at + 1)]))
  )
}

const bound =
  "under|below|less than|cheaper than|at (?:the )?most|up to|no more than|not more than|not over|maximum(?: of)?|" +
  "max\\.?|within|<=?|≤|unter|bis(?: zu)?|weniger als|nicht mehr als|höchstens|maximal|(?:à )?moins de|au plus|" +
  "jusqu['’]à|menos de|hasta|como máximo|até|no máximo|(?:a )?meno di|fino a|al massimo|máximo|" +
  "до|не более|меньше|дешевле"
const lead = "(?:for|at|priced(?: at)?|costs?|costing|für|pour|por|per)\\s+"
const budget = "(?:with\\s+)?(?:a\\s+)?budget(?:\\s+cap)?\\s+of"
const after = "or (?:less|cheaper|under|below)|max(?:imum)?|at (?:the )?most|oder weniger|ou moins|o menos|ou menos"
const per = "(?:\\s*(?:per|an?|each|pro|par|por|\\/)\\s*(?:call|request|query|use|lookup|message|image|page))?"
/** "$10 billion" is not a price of a call, and neither is "5MB". */
const large = "(?:\\s*(?:thousand|million|billion|trillion|bn|[kmb])\\b)"
/** Words before an amount that make it a lower bound or a topic, not an upper limit. */
const lower =
  "(?:least|than|over|above|from|minimum|min|worth|mindestens|über|ab|als|menos|mínimo|plus de|más de|mais de|moins|" +
  "almeno|>=?|≥|[-–])"
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

interface LimitPattern {
  readonly pattern: RegExp
  /** The amount has no word for a limit, so only the price of a call counts. */
  readonly isBare: boolean
}

/** Price limits: how one begins or ends, a sign or a unit of these assets, and no more behind it. */
const limitsOf = (assets: ReadonlyArray<PricedAsset>): ReadonlyArray<LimitPattern> => {
  const words = Object.keys(currencies).filter((unit) => /^[a-z]+$/.test(unit))
  const units = [...words.map((word) => word.replace("centi", "c[eé]nti")), ...assets.map(({ symbol }) => symbol)]
    .toSorted((a, b) => b.length - a.length)
    .join("|")
  const spelled = Object.keys(amounts).toSorted((a, b) => b.length - a.length)
  const number = `\\d{1,9}(?:[.,]\\d{3})*(?:[.,]\\d{1,12})?|[.,]\\d{1,12}|(?:${spelled.join("|")})(?![\\p{L}\\p{N}])`
  const sign = "US\\$|[$€]|(?:USDC?|EURC?)(?=\\s*[\\d.,])"
  const amount = `(${sign})?\\s*(${number})(?:\\s*([$€¢]|(?:${units})\\b))?`
  const end = `(?!${large})${per}(?![\\p{L}\\p{N}_%]|[.,]\\d)`
  const start = "(?<![\\p{L}\\p{N}])"
  const open = `(?:${sign})?\\s*(?:${number})\\s*(?:[$€¢]|${units})?`
  const ranges = "(?:between|from|zwischen|von|entre|de|tra|fra)"
  const limit = (source: string, isBare = false): LimitPattern => ({ pattern: new RegExp(source, "iu"), isBare })
  return [
    limit(`(?:${lead})?(?:${start}(?:${bound})|${budget})\\s*${amount}${end}`),
    limit(`(?:${lead})?${start}${ranges}\\s+${open}\\s+(?:and|to|und|bis|et|à|y|e|a)\\s+${amount}${end}`),
    limit(`(?:${lead})?(?<![\\p{L}\\p{N}.,])${open}\\s*[-–]\\s*${amount}${end}`),
    limit(`(?:${lead})?(?<![\\p{L}\\p{N}.,])${amount}${per}\\s+(?:${after})(?![\\p{L}\\p{N}])`),
    limit(`${start}${lead}(?:(?:only|just|about|around)\\s+)?${amount}${end}`, true),
    limit(`(?<!${start}${lower}\\s*)(?:^|[\\s,(])(?<!${start}${lower}\\s*)${amount}${end}[\\s.?!)]*$`, true),
    limit(`^\\s*${amount}${end}\\s+(?!or more|and up|to\\b|in\\b)(?=\\p{L})`, true)
  ]
}

/** Made once for the assets of a process: it costs as much as reading a query. */
const limits = new WeakMap<ReadonlyArray<PricedAsset>, ReadonlyArray<LimitPattern>>()
const limitsIn = (assets: ReadonlyArray<PricedAsset>): ReadonlyArray<LimitPattern> => {
  const known = limits.get(assets) ?? limitsOf(assets)
  limits.set(assets, known)
  return known
}

interface Limit {
  readonly currency: string
  readonly text: string
  readonly isCents: boolean
}

/** An amount as decimal text; "1,000" and "1.000" are thousands. */
const decimalOf = (digits: string): string => {
  const word = amounts[digits.toLowerCase()]
  if (word !== undefined) return word
  const isGrouped = /^[1-9]\d{0,2}(?:[.,]\d{3})+(?:[.,]\d{1,2})?$/.test(digits)
  const plain = isGrouped ? digits.replace(/[.,](?=\d{3})/g, "").replace(",", ".") : digits.replace(",", ".")
  return plain.startsWith(".") ? `0${plain}` : plain
}

/** The limit that a phrase names; undefined if it names something else. */
const readLimit = (
  [, sign = "", digits = "", unit = ""]: ReadonlyArray<string | undefined>,
  isBare: boolean
): Limit | undefined => {
  const word = (unit || sign).toLowerCase().replace("é", "e")
  if (word === "") return undefined
  const text = decimalOf(digits)
  const isCents = word === "¢" || word.startsWith("cent")
  const most = isBare ? barePriceMax : callPriceMax
  if (Number(text) > (isCents ? 100 * most : most)) return undefined
  // The sign decides: "€0.01 cents" is of no currency.
  return { currency: currencies[sign.toLowerCase()] ?? currencies[word] ?? word.toUpperCase(), text, isCents }
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

/** The filter for a limit. Undefined if this ledger does not have an asset of the currency. */
const filterOf = ({ currency, isCents, text }: Limit, assets: ReadonlyArray<PricedAsset>): Filters => {
  const asset = assetOf(currency, assets)
  if (asset === undefined) return {}
  const maxPrice = unitsOf(text, isCents ? asset.decimals - 2 : asset.decimals)
  return maxPrice === undefined ? {} : { asset: asset.contract, maxPrice }
}

/** The first phrase of a query that is a price limit, and the query without it. */
const limitIn = (query: string, assets: ReadonlyArray<PricedAsset>) => {
  for (const { isBare, pattern } of limitsIn(assets)) {
    const match = pattern.exec(query)
    const limit = match === null ? undefined : readLimit(match, isBare)
    const rest = match === null ? query : query.replace(match[0], " ")
    if (limit !== undefined && !(isBare && isAboutMoney(rest))) return { limit, rest, words: match![0] }
  }
  return undefined
}

export const readIntent = (query: string, filters: Filters, assets: ReadonlyArray<PricedAsset>): Intent => {
  const isOpen = filters.asset === undefined && filters.maxPrice === undefined
  const found = isOpen ? limitIn(query, assets) : undefined
  const rest = found?.rest ?? query
  const wishes = rest.match(cheap) ?? []
  const probed = rest.replace(cheap, " ").replace(/\s+/g, " ").trim()
  // A query that consists only of a price is searched for unchanged.
  if (!/\p{L}/u.test(probed)) return { query, filters, prefers: [], words: [] }
  const framed = readFrame(probed)
  return {
    query: framed.query,
    filters: { ...filters, ...(found === undefined ? {} : filterOf(found.limit, assets)) },
    prefers: [...(wishes.length > 0 ? (["cheap"] as const) : []), ...framed.prefers],
    words: [...[...(found === undefined ? [] : [found.words]), ...wishes].map((words) => words.trim()), ...framed.words]
  }
}
