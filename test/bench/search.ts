// Search over HTTP with eight clients: 100,000 resources on PostgreSQL, by words and by words and vectors of 384 numbers together, and
// 10,000 on the embedded database. The texts are made up with the word frequencies of natural language, the queries are drawn from
// them, and the embedding provider answers once a query: what is measured is search besides the provider. Prints how
// long indexing took and whether the bars are reached. `RESOURCES=20000` in the environment makes it smaller.
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { Agent, request } from "node:http"
import process from "node:process"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { startEmbeddings } from "../relevance/embeddings.ts"
import { ingest, type IngestedResource } from "../relevance/ingest.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { startPostgres } from "../support/postgres.ts"

const RESOURCES = Number(process.env["RESOURCES"] ?? 100_000)
const EMBEDDED_RESOURCES = Math.min(RESOURCES, 10_000)
const CLIENTS = 8
const SECONDS = 6
const DIMENSION = 384
const QUERIES = 500

/** A small generator with a fixed seed: every run measures the same. */
const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}
const random = randomFrom(7)

const syllables = "ba ce di fo gu la me ni po ru sa te vi xo zu kar len mit nor pel qua ris sol tan ver wex yor zin".split(" ")
const vocabulary = Array.from({ length: 20_000 }, (_, at) => {
  let word = ""
  for (let rest = at + 30; rest > 0; rest = Math.floor(rest / syllables.length)) word += syllables[rest % syllables.length]
  return `${word}k`
})
// Zipf and Mandelbrot's law: the commonest word stands in one text of six, most words in a few.
const cumulative: Array<number> = []
for (let at = 0; at < vocabulary.length; at++) cumulative.push((cumulative[at - 1] ?? 0) + 1 / (at + 50))
const word = (): string => {
  const drawn = random() * cumulative.at(-1)!
  let [low, high] = [0, cumulative.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (cumulative[middle]! < drawn) low = middle + 1
    else high = middle
  }
  return vocabulary[low]!
}
const words = (count: number) => Array.from({ length: count }, word)

const makeResource = (at: number): IngestedResource => ({
  name: `resource-${at}`,
  type: at % 10 === 0 ? "mcp" : "http",
  url: `https://seller-${at % 5_000}.example/v1/${word()}/${at}`,
  toolName: at % 10 === 0 ? `${word()}_${word()}` : "",
  serviceName: words(3).join(" "),
  description: words(10 + Math.floor(random() * 50)).join(" "),
  tags: words(3),
  info: { input: { type: "http", method: "GET" } },
  options: [{ scheme: at % 4 === 0 ? "upto" : "exact", network: "ledger:testnet", asset: `CASSET${at % 3}`, amount: String(at % 1_000), payTo: `GPAYTO${at % 5_000}` }]
})

const makeQuery = (resource: IngestedResource): string => {
  const all = [...resource.serviceName.split(" "), ...resource.tags, ...resource.description.split(" ")]
  return Array.from({ length: 2 + Math.floor(random() * 6) }, () => all[Math.floor(random() * all.length)]).join(" ")
}

/** A vector of the text's words: texts that share words are near each other. */
const embed = (text: string): ReadonlyArray<number> => {
  const vector = new Float64Array(DIMENSION)
  for (const token of text.toLowerCase().split(/[^a-z]+/).slice(0, 24)) {
    let hash = 2_166_136_261
    for (let at = 0; at < token.length; at++) hash = Math.imul(hash ^ token.charCodeAt(at), 16_777_619)
    for (let at = 0; at < 24; at++) {
      hash = Math.imul(hash ^ (hash >>> 13), 0x5bd1e995)
      vector[(hash >>> 8) % DIMENSION]! += (hash & 1) === 0 ? 1 : -1
    }
  }
  vector[0]! += 1
  return Array.from(vector)
}

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
const get = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    request(url, { agent }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("end", () => response.statusCode === 200 ? resolve(Buffer.concat(chunks).toString()) : reject(new Error(`${response.statusCode}`)))
    }).once("error", reject).end()
  })

const quantile = (sorted: ReadonlyArray<number>, q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

interface Bar {
  readonly p50: number
  readonly p99?: number
}

/** Eight clients, one question after another each; every question has been asked once before. */
const measure = async (name: string, urls: ReadonlyArray<string>, bar: Bar, clients = CLIENTS): Promise<boolean> => {
  for (const url of urls) await get(url)
  const times: Array<number> = []
  const until = performance.now() + SECONDS * 1_000
  let turn = 0
  await Promise.all(Array.from({ length: clients }, async () => {
    while (performance.now() < until) {
      const from = performance.now()
      await get(urls[turn++ % urls.length]!)
      times.push(performance.now() - from)
    }
  }))
  times.sort((a, b) => a - b)
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
  const holds = p50 <= bar.p50 && p99 <= (bar.p99 ?? Infinity)
  const bars = `bar p50 ${bar.p50} ms${bar.p99 === undefined ? "" : `, p99 ${bar.p99} ms`}`
  console.log(`  ${name.padEnd(34)} p50 ${p50.toFixed(1).padStart(6)} ms   p99 ${p99.toFixed(1).padStart(6)} ms   ${Math.round(times.length / SECONDS).toString().padStart(5)}/s   ${bars}: ${holds ? "held" : "NOT held"}`)
  return holds
}

const progress = (what: string, done: number, all: number) => {
  const filled = Math.round(30 * Math.min(1, done / all))
  const line = `  ${what.padEnd(10)} [${"#".repeat(filled)}${".".repeat(30 - filled)}] ${done}/${all}`
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${done >= all ? "\n" : ""}`)
  else if (done >= all || Math.floor(10 * done / all) > Math.floor(10 * (done - 1_000) / all)) console.log(line)
}

/** Waits until both indexes hold everything; prints how far they are and how long it took. */
const untilIndexed = (facilitator: Facilitator, count: number, semantic: boolean) =>
  Effect.gen(function*() {
    const startedAt = performance.now()
    while (true) {
      const [row] = yield* facilitator.sql<{ lexical: number; due: number; generation: bigint | null }>`select (select count(*) from search_lexical_documents)::int as lexical,
        (select count(*) from search_semantic_jobs)::int as due, (select max(id) from search_semantic_generations where status = 'active') as generation`
      const vectors = !semantic || row!.generation === null ? 0
        : (yield* facilitator.sql<{ count: number }>`select count(*)::int as count from ${facilitator.sql(`search_semantic_vectors_${row!.generation}`)}`)[0]!.count
      progress("words", row!.lexical, count)
      if (semantic) progress("vectors", vectors, count)
      if (row!.lexical >= count && (!semantic || vectors >= count)) break
      yield* Effect.sleep("3 seconds")
    }
    console.log(`  indexed ${count} in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s after the last was stored`)
  })

const populate = (facilitator: Facilitator, count: number, semantic: boolean) =>
  Effect.gen(function*() {
    const resources = Array.from({ length: count }, (_, at) => makeResource(at))
    const startedAt = performance.now()
    yield* ingest(facilitator.sql, resources, (stored) => stored % 10_000 === 0 && progress("stored", stored, count))
    console.log(`  stored ${count} in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
    yield* untilIndexed(facilitator, count, semantic)
    for (const table of ["catalog_resources", "catalog_options", "catalog_activity", "search_lexical_documents", "search_lexical_terms"]) {
      yield* facilitator.sql`vacuum analyze ${facilitator.sql(table)}`.unprepared
    }
    return Array.from({ length: QUERIES }, (_, at) => makeQuery(resources[(at * 7_919) % count]!))
  })

const urls = (facilitator: Facilitator, queries: ReadonlyArray<string>, mode: string, more = "") =>
  queries.map((query) => `${facilitator.url}/discovery/search?query=${encodeURIComponent(query)}&mode=${mode}${more}`)

const onPostgres = Effect.gen(function*() {
  const postgres = yield* Effect.acquireRelease(Effect.promise(startPostgres), ({ stop }) => Effect.promise(stop))
  const endpoint = yield* startEmbeddings(embed)
  const facilitator = yield* startFacilitator({
    database: Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(postgres.url) }) }),
    channels: 1,
    closeMillis: 5_000,
    set: [
      "catalog_security.probe_origins=false", "search.semantic.provider=openai", `search.semantic.url=${endpoint.url}`, "search.semantic.model=words",
      `search.semantic.dimension=${DIMENSION}`, "search.semantic.batch_size=128"
    ]
  })
  const { json } = yield* facilitator.ask("/health/ready")
  console.log(`search: ${RESOURCES} resources on ${postgres.description}, pgvector ${json.search.vectorSupport ? "there" : "not there"}, ${CLIENTS} clients`)
  const queries = yield* populate(facilitator, RESOURCES, true)
  const lexical = yield* Effect.promise(() => measure("words", urls(facilitator, queries, "lexical"), { p50: 10, p99: 50 }))
  const filtered = yield* Effect.promise(() => measure("words, filtered by scheme and type", urls(facilitator, queries, "lexical", "&scheme=exact&type=http"), { p50: 10, p99: 50 }))
  const hybrid = yield* Effect.promise(() => measure("words and vectors", urls(facilitator, queries, "hybrid"), { p50: 25 }))
  yield* Effect.promise(() => measure("words, one client alone", urls(facilitator, queries, "lexical"), { p50: 10, p99: 50 }, 1))
  return lexical && filtered && hybrid
})

const onEmbedded = Effect.gen(function*() {
  const facilitator = yield* startFacilitator({ channels: 1, closeMillis: 5_000, set: ["catalog_security.probe_origins=false"] })
  console.log(`search: ${EMBEDDED_RESOURCES} resources on the embedded database, one client`)
  const queries = yield* populate(facilitator, EMBEDDED_RESOURCES, false)
  return yield* Effect.promise(() => measure("words", urls(facilitator, queries, "lexical"), { p50: 25 }, 1))
})

export const bench = async (): Promise<boolean> => {
  const part = process.argv[3]
  const run = (program: typeof onPostgres | typeof onEmbedded) => Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<boolean>)
  const embedded = part === "postgres" ? true : await run(onEmbedded)
  const server = part === "embedded" ? true : await run(onPostgres)
  const holds = embedded && server
  console.log(`search: ${holds ? "every bar held" : "a bar was NOT held"}`)
  return holds
}
