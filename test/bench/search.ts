// Search over HTTP: 100,000 resources on PostgreSQL with eight clients, by words and by words and vectors of 384
// numbers together, and 10,000 on the embedded database with one. A PostgreSQL without pgvector answers from quantized
// vectors, the embedded one from an HNSW index. The embedding provider is asked once a query before the measurement:
// what is measured is search besides the provider. First the answers are checked (the resource that a query's words are
// of, and the exactly nearest vectors), and an answer that is an error, partial or empty fails the run.
// `RESOURCES=20000` makes it smaller; TOLLKEEPER_TEST_DATABASE_URL names a database to use and to keep, so that a
// second run need not fill it; `-- search postgres` and `-- search embedded` run one half.
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { loadavg } from "node:os"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { startEmbeddings } from "../relevance/embeddings.ts"
import { ingest } from "../relevance/ingest.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { startPostgres } from "../support/postgres.ts"
import type { LoadFigures, LoadJob } from "./searchLoad.ts"
import { DIMENSION, embedWords, makeWorld, type Question } from "./searchWorld.ts"

const RESOURCES = Number(process.env["RESOURCES"] ?? 100_000)
const EMBEDDED_RESOURCES = Math.min(RESOURCES, 10_000)
const CLIENTS = 8
const SECONDS = 8
const QUERIES = 500
/**
 * Of the queries, those that have the resource their words are of among the first 20; and of the exactly nearest 10,
 * those found.
 */
const FOUND_BAR = 0.9
const RECALL_BAR = 0.95
const RECALL_QUERIES = 25

interface Bar {
  readonly p50: number
  readonly p99?: number
}

/** Runs the clients in a process of their own. */
const runLoad = (job: LoadJob): Promise<LoadFigures> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", fileURLToPath(new URL("searchLoad.ts", import.meta.url))],
      { stdio: ["pipe", "pipe", "inherit"] }
    )
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()))
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve(JSON.parse(text) as LoadFigures) : reject(new Error(`the clients ended with ${code}`))
    )
    child.stdin.end(JSON.stringify(job))
  })

const quantile = (sorted: ReadonlyArray<number>, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

/** Milliseconds of processor time of this database's connections so far; NaN where the server is elsewhere. */
const databaseMillis = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.sql<{
      pid: number
    }>`select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`,
    (rows) => {
      try {
        return rows.reduce((sum, { pid }) => {
          const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ")
          return sum + 10 * (Number(fields[11]) + Number(fields[12]))
        }, 0)
      } catch {
        return Number.NaN
      }
    }
  )

/** Each client asks one question after another; every question has been asked once before. */
const measure = (facilitator: Facilitator, name: string, paths: ReadonlyArray<string>, bar: Bar, clients: number) =>
  Effect.gen(function* () {
    const port = Number(new URL(facilitator.url).port)
    for (const path of paths) yield* facilitator.ask(path)
    const [databaseBefore, serverBefore] = [yield* databaseMillis(facilitator), process.cpuUsage()]
    const { elapsedMillis, times, wrong } = yield* Effect.promise(() =>
      runLoad({ port, paths, clients, milliseconds: SECONDS * 1_000 })
    )
    const { system, user } = process.cpuUsage(serverBefore)
    const database = (yield* databaseMillis(facilitator)) - databaseBefore
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
    const faults = Object.entries(wrong).map(([what, count]) => `${count} ${what}`)
    const isFast = p50 <= bar.p50 && p99 <= (bar.p99 ?? Infinity)
    const holds = isFast && faults.length === 0 && times.length >= paths.length / 2
    const bars = `bar p50 ${bar.p50} ms${bar.p99 === undefined ? "" : `, p99 ${bar.p99} ms`}`
    const each = (millis: number) => (Number.isNaN(millis) ? "?" : (millis / times.length).toFixed(2))
    console.log(
      `  ${name.padEnd(34)} p50 ${p50.toFixed(1).padStart(6)} ms   p99 ${p99.toFixed(1).padStart(6)} ms   ${Math.round(
        (1_000 * times.length) / elapsedMillis
      )
        .toString()
        .padStart(5)}/s   ` +
        `processor ${each((system + user) / 1_000)} + ${each(database)} ms a search   load ` +
        `${loadavg()[0]!.toFixed(1)}   ${bars}: ` +
        `${holds ? "held" : "NOT held"}${faults.length === 0 ? "" : ` (${faults.join(", ")})`}`
    )
    return holds
  })

const printed = new Map<string, number>()
const progress = (what: string, done: number, all: number) => {
  const tenths = Math.floor(10 * Math.min(1, done / all))
  if (printed.get(what) === tenths && !process.stdout.isTTY) return
  printed.set(what, tenths)
  const filled = 3 * tenths
  const line = `  ${what.padEnd(10)} [${"#".repeat(filled)}${".".repeat(30 - filled)}] ${done}/${all}`
  process.stdout.write(process.stdout.isTTY ? `\r${line}${done >= all ? "\n" : ""}` : `${line}\n`)
}

const seconds = (from: number) => ((performance.now() - from) / 1_000).toFixed(0)

/** Waits until both indexes hold everything; prints how far they are and how long it took. */
const untilIndexed = (facilitator: Facilitator, count: number, semantic: boolean, storedFrom: number) =>
  Effect.gen(function* () {
    while (true) {
      const [row] = yield* facilitator.sql<{
        lexical: number
        changed: number
        due: number
        generation: bigint | null
      }>`select (select count(*) from search_lexical_documents)::int as lexical,
        (select changed from search_lexical_state limit 1) as changed, (select count(*)
          from search_semantic_jobs)::int as due,
        (select max(id) from search_semantic_generations where status = 'active') as generation`
      const vectors =
        !semantic || row!.generation === null
          ? 0
          : (yield* facilitator.sql<{
              count: number
            }>`select count(*)::int as count from ${facilitator.sql(`search_semantic_vectors_${row!.generation}`)}`)[0]!
              .count
      progress("words", row!.lexical, count)
      if (semantic) progress("vectors", vectors, count)
      // The last refresh of the statistics may wait for minutes while little has changed; a few documents do not
      // matter.
      if (row!.lexical >= count && row!.changed * 5 < count && (!semantic || (vectors >= count && row!.due === 0)))
        break
      yield* Effect.sleep("2 seconds")
    }
    console.log(
      `  stored and indexed ${count} in ${seconds(storedFrom)} s: ` +
        `${Math.round((1_000 * count) / (performance.now() - storedFrom))} a second`
    )
  })

const populate = (facilitator: Facilitator, count: number, semantic: boolean) =>
  Effect.gen(function* () {
    const { questions, resources } = makeWorld(count, QUERIES)
    const [known] = yield* facilitator.sql<{ count: number }>`select count(*)::int as count from catalog_resources`
    const startedAt = performance.now()
    if (known!.count === 0) {
      yield* ingest(facilitator.sql, resources, (stored) => progress("stored", stored, count))
      console.log(`  stored ${count} in ${seconds(startedAt)} s`)
      yield* untilIndexed(facilitator, count, semantic, startedAt)
    } else if (known!.count !== count)
      return yield* Effect.die(new Error(`the database holds ${known!.count} resources of another run`))
    for (const table of [
      "catalog_resources",
      "catalog_options",
      "catalog_activity",
      "search_lexical_documents",
      "search_lexical_terms"
    ]) {
      yield* facilitator.sql`vacuum analyze ${facilitator.sql(table)}`.unprepared
    }
    return questions
  })

const pathOf = (query: string, mode: string, more = "") =>
  `/discovery/search?query=${encodeURIComponent(query)}&mode=${mode}${more}`

/** The share of the questions that have the resource they are about among the first 20. */
const checkFound = (facilitator: Facilitator, questions: ReadonlyArray<Question>) =>
  Effect.gen(function* () {
    let found = 0
    for (const { about, query } of questions) {
      const { json, status } = yield* facilitator.ask(pathOf(query, "lexical"))
      if (
        status === 200 &&
        json.partialResults === false &&
        json.resources.some(({ name }: { name: string }) => name === about)
      )
        found += 1
    }
    const holds = found >= FOUND_BAR * questions.length
    console.log(
      `  words: ${found} of ${questions.length} queries find the resource that their words are of (bar ` +
        `${100 * FOUND_BAR} %): ${holds ? "held" : "NOT held"}`
    )
    return holds
  })

/** The share of the exactly nearest ten, by the stored vectors, among the first 20 of the semantic mode. */
const checkRecall = (facilitator: Facilitator, questions: ReadonlyArray<Question>) =>
  Effect.gen(function* () {
    const table = facilitator.sql(
      `search_semantic_vectors_${
        (yield* facilitator.sql<{ id: bigint }>`select id from search_semantic_generations
        where status = 'active'`)[0]!.id
      }`
    )
    const asked = questions.slice(0, RECALL_QUERIES).map(({ query }) => ({
      query,
      vector: embedWords(query),
      nearest: [] as Array<{ name: string; similarity: number }>
    }))
    let after = -1n
    while (true) {
      // Both kinds of vector as their text; the bytes of a bare PostgreSQL are little-endian floats.
      const rows = yield* facilitator.sql<{
        id: bigint
        name: string
        embedding: string
      }>`select v.id, r.key as name, v.embedding::text as embedding
        from ${table} v join catalog_resources r on r.id = v.id where v.id > ${after} order by v.id limit 2000`
      for (const { embedding, name } of rows) {
        const vector: ArrayLike<number> = embedding.startsWith("[")
          ? JSON.parse(embedding)
          : new Float32Array(Uint8Array.from(Buffer.from(embedding.slice(2), "hex")).buffer)
        for (const one of asked) {
          const similarity = one.vector.reduce((sum, part, at) => sum + part * vector[at]!, 0)
          if (one.nearest.length < 10 || similarity > one.nearest[9]!.similarity) {
            one.nearest = [...one.nearest, { name, similarity }]
              .sort((a, b) => b.similarity - a.similarity)
              .slice(0, 10)
          }
        }
      }
      if (rows.length < 2_000) break
      after = rows.at(-1)!.id
    }
    let found = 0
    let fused = 0
    for (const { nearest, query } of asked) {
      const names = (mode: string) =>
        Effect.map(
          facilitator.ask(pathOf(query, mode)),
          ({ json }) => new Set(json.resources.map(({ name }: { name: string }) => name))
        )
      const [semantic, hybrid] = [yield* names("semantic"), yield* names("hybrid")]
      found += nearest.filter(({ name }) => semantic.has(name)).length
      fused += nearest.slice(0, 5).filter(({ name }) => hybrid.has(name)).length
    }
    const [recall, inFused] = [found / (10 * asked.length), fused / (5 * asked.length)]
    const holds = recall >= RECALL_BAR && inFused >= RECALL_BAR
    console.log(
      `  vectors: ${(100 * recall).toFixed(1)} % of the exactly nearest ten are found, and ` +
        `${(100 * inFused).toFixed(1)} % of the nearest five in the fused answer (bar ${100 * RECALL_BAR} %): ` +
        `${holds ? "held" : "NOT held"}`
    )
    return holds
  })

const semanticSettings = (url: string) => [
  "catalog_security.probe_origins=false",
  "search.semantic.provider=openai",
  "search.semantic.hybrid_wait_ms=5000",
  `search.semantic.url=${url}`,
  "search.semantic.model=words",
  `search.semantic.dimension=${DIMENSION}`,
  "search.semantic.batch_size=128"
]

const allOf = (checks: ReadonlyArray<Effect.Effect<boolean, unknown>>) =>
  Effect.map(
    Effect.forEach(checks, (check) => check),
    (held) => held.every((one) => one)
  )

const onPostgres = Effect.gen(function* () {
  const postgres = yield* Effect.acquireRelease(Effect.promise(startPostgres), ({ stop }) => Effect.promise(stop))
  const endpoint = yield* startEmbeddings(embedWords)
  const facilitator = yield* startFacilitator({
    database: Layer.succeed(DatabaseSource, {
      open: Effect.succeed({ kind: "server" as const, url: Redacted.make(postgres.url) })
    }),
    channels: 1,
    closeMillis: 5_000,
    set: semanticSettings(endpoint.url)
  })
  const { json } = yield* facilitator.ask("/health/ready")
  console.log(
    `search: ${RESOURCES} resources on ${postgres.description}, pgvector ` +
      `${json.search.vectorSupport ? "there" : "not there"}, ${CLIENTS} clients`
  )
  const questions = yield* populate(facilitator, RESOURCES, true)
  const paths = (mode: string, more = "") => questions.map(({ query }) => pathOf(query, mode, more))
  return yield* allOf([
    checkFound(facilitator, questions),
    checkRecall(facilitator, questions),
    measure(facilitator, "words", paths("lexical"), { p50: 10, p99: 50 }, CLIENTS),
    measure(
      facilitator,
      "words, filtered by scheme and type",
      paths("lexical", "&scheme=exact&type=http"),
      { p50: 10, p99: 50 },
      CLIENTS
    ),
    measure(facilitator, "words and vectors", paths("hybrid"), { p50: 25 }, CLIENTS)
  ])
})

const onEmbedded = Effect.gen(function* () {
  const endpoint = yield* startEmbeddings(embedWords)
  const facilitator = yield* startFacilitator({ channels: 1, closeMillis: 5_000, set: semanticSettings(endpoint.url) })
  const { json } = yield* facilitator.ask("/health/ready")
  console.log(
    `search: ${EMBEDDED_RESOURCES} resources on the embedded database, pgvector ` +
      `${json.search.vectorSupport ? "there" : "not there"}, one client`
  )
  const questions = yield* populate(facilitator, EMBEDDED_RESOURCES, true)
  const paths = (mode: string) => questions.map(({ query }) => pathOf(query, mode))
  return yield* allOf([
    checkFound(facilitator, questions),
    checkRecall(facilitator, questions),
    measure(facilitator, "words", paths("lexical"), { p50: 25 }, 1),
    measure(facilitator, "words and vectors", paths("hybrid"), { p50: 25 }, 1)
  ])
})

/** Prints the figures and whether every bar held. */
export const bench = async (): Promise<boolean> => {
  const part = process.argv[3]
  const run = (program: typeof onPostgres | typeof onEmbedded) =>
    Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<boolean>)
  const embedded = part === "postgres" || (await run(onEmbedded))
  const server = part === "embedded" || (await run(onPostgres))
  console.log(`search: ${embedded && server ? "every bar held" : "a bar was NOT held"}`)
  return embedded && server
}
