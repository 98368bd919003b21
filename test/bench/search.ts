// Search and discovery over HTTP: 100,000 resources on PostgreSQL and 10,000 on the embedded database. The measure is
// processor time of this process per request; PostgreSQL's share is printed separately, and wall time only with a
// single client. Cases: browsing, one resource, words, the default configuration (words and the table of word vectors),
// that and an embedding model together, rare filters, and deliberately expensive queries. The embedding provider is
// asked once per query before the measurement. First the answers are checked; an error, a partial or an empty answer
// fails the run. The bars of searches are for new queries, drawn from the words of one listing each. Also measured are
// the same kind of queries with three of ten repeating an earlier one, and repeated ones, which caches answer.
// `RESOURCES=20000` makes it smaller. The server's folder is kept (`searchFill.ts`), or TOLLKEEPER_TEST_DATABASE_URL
// names a database to use and to keep. `-- search postgres` and `-- search embedded` run one half, and `-- search
// postgres browse` its cases with that word in their name.
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import process from "node:process"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { type EmbeddingsEndpoint, startEmbeddings } from "../relevance/embeddings.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { type Bar, barLine } from "./rig/bars.ts"
import { checkFound, checkRecall } from "./searchChecks.ts"
import { measureCopy, untilLoaded } from "./searchCopy.ts"
import { populate, startKept } from "./searchFill.ts"
import { type Kind, type Measured, measure, searchPath } from "./searchMeasure.ts"
import { DIMENSION, embedWords, type World } from "./searchWorld.ts"

const RESOURCES = Number(process.env["RESOURCES"] ?? 100_000)
const EMBEDDED_RESOURCES = Math.min(RESOURCES, 10_000)
const CLIENTS = 8

const settings = ["catalog_security.probe_origins=false"]

const semanticSettings = (url: string) => [
  ...settings,
  "search.semantic.provider=openai",
  "search.semantic.hybrid_wait_ms=5000",
  `search.semantic.url=${url}`,
  "search.semantic.model=words",
  `search.semantic.dimension=${DIMENSION}`,
  "search.semantic.batch_size=128"
]

/** Few resources match: 20, 200, 1,700, none, 2,700, and 5,400, slightly more than are ranked individually. */
const rareFilters = (at: number): string =>
  [
    `&payTo=GPAYTO${at % 5_000}`,
    "&asset=CASSET1&maxPrice=5",
    "&asset=CASSET1&maxPrice=50",
    "&extensions=payment-identifier",
    "&asset=CASSET1&maxPrice=80",
    "&asset=CASSET1&maxPrice=160"
  ][at % 6]!

/** Of ten consecutive questions, these repeat an earlier one: a natural share, as in search logs. */
const repeating: ReadonlyArray<number> = [3, 6, 9]

/** The same number of paths; some repeat an earlier one. */
const withRepeats = (paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const asked: Array<string> = []
  let fresh = 0
  for (let at = 0; at < paths.length; at++)
    asked.push(repeating.includes(at % 10) ? asked[(at * 7_919) % asked.length]! : paths[fresh++]!)
  return asked
}

const plainOf = (questions: World["questions"]): NonNullable<Kind["plain"]> => ({
  queries: questions.map(({ query }) => query),
  timesMax: 1.5
})

/** A mode's new questions, with their bars, and others that partly repeat. */
const asFirst = (
  name: string,
  mode: string,
  [fresh, others]: readonly [World["questions"], World["questions"]],
  bars: Pick<Kind, "cpuMax" | "databaseMax" | "p95Max">
): ReadonlyArray<Kind> => {
  const pathsOf = (questions: World["questions"]) => questions.map(({ query }) => searchPath(query, mode))
  const kind = { clients: CLIENTS, isFirst: true }
  return [
    { name: `${name}, never asked before`, paths: pathsOf(fresh), plain: plainOf(fresh), ...kind, ...bars },
    { name: `${name}, three of ten repeat`, paths: withRepeats(pathsOf(others)), ...kind }
  ]
}

/** Cases with every branch enabled. */
const withProvider = ({ fresh, questions }: World): ReadonlyArray<Kind> => {
  const paths = (mode: string, more = "") => questions.map(({ query }) => searchPath(query, mode, more))
  return [
    ...asFirst("words", "lexical", [fresh[0]!, fresh[1]!], { cpuMax: 5, databaseMax: 10, p95Max: 120 }),
    ...asFirst("hybrid", "hybrid", [fresh[2]!, fresh[3]!], { cpuMax: 8, databaseMax: 12, p95Max: 120 }),
    { name: "words", paths: paths("lexical"), clients: CLIENTS, cpuMax: 1 },
    {
      name: "words, filtered by scheme and type",
      paths: paths("lexical", "&scheme=exact&type=http"),
      clients: CLIENTS,
      cpuMax: 1
    },
    { name: "hybrid with a provider", paths: paths("hybrid"), clients: CLIENTS, cpuMax: 3 }
  ]
}

/** The default configuration. */
const withoutProvider = (world: World, cursors: ReadonlyArray<string>): ReadonlyArray<Kind> => {
  const { fresh, mistyped, questions, unknown, urls } = world
  const browsing = { clients: CLIENTS, cpuMax: 0.4 }
  const found = `"resources":[`
  return [
    ...asFirst("offline", "", [fresh[4]!, fresh[5]!], { cpuMax: 10, databaseMax: 12, p95Max: 120 }),
    {
      name: "offline default",
      paths: questions.map(({ query }) => searchPath(query, "")),
      clients: CLIENTS,
      cpuMax: 2.5
    },
    { name: "browse", paths: ["/discovery/resources"], ...browsing, holds: `"items":[{` },
    { name: "browse by cursor", paths: cursors, ...browsing, holds: `"items":[{` },
    {
      name: "one resource",
      paths: urls.map((url) => `/discovery/resource?type=http&url=${encodeURIComponent(url)}`),
      ...browsing,
      holds: `"resource":{`
    },
    {
      name: "offline default, rare filters",
      paths: fresh[6]!.map(({ query }, at) => searchPath(query, "", rareFilters(at))),
      clients: 1,
      isFirst: true,
      holds: found,
      p95Max: 50
    },
    {
      name: "73 unknown words",
      paths: unknown.slice(0, 100).map((query) => searchPath(query, "")),
      clients: 1,
      isFirst: true,
      holds: found,
      p95Max: 50
    },
    {
      name: "40 mistyped words",
      paths: mistyped.slice(0, 100).map((query) => searchPath(query, "")),
      clients: 1,
      isFirst: true,
      holds: found,
      p95Max: 50
    }
  ]
}

/** The second pages, and the ones after them. */
const cursorPaths = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const paths: Array<string> = []
  for (let at = 0, path = "/discovery/resources"; at < 50; at++) {
    const { json } = yield* facilitator.ask(path)
    path = `/discovery/resources?cursor=${json.pagination.cursor}`
    paths.push(path)
  }
  return paths
})

const measureAll = Effect.fnUntraced(function* (facilitator: Facilitator, kinds: ReadonlyArray<Kind>) {
  const measured: Array<Measured> = []
  const word = process.argv[4] ?? ""
  for (const kind of kinds.filter(({ name }) => name.includes(word))) measured.push(yield* measure(facilitator, kind))
  return measured
})

const checked = (bars: ReadonlyArray<Bar>): Measured => {
  console.log(`  ${bars.map(barLine).join(", ")}`)
  return { bars, isSound: true }
}

const onPostgres = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startKept(RESOURCES)),
    ({ stop }) => Effect.promise(stop)
  )
  const database = Layer.succeed(DatabaseSource, {
    open: Effect.succeed({ kind: "server" as const, url: Redacted.make(server.url) })
  })
  const started = (set: ReadonlyArray<string>) => startFacilitator({ database, channels: 1, closeMillis: 5_000, set })
  const endpoint: EmbeddingsEndpoint = yield* startEmbeddings(embedWords)
  const all = yield* Effect.scoped(
    Effect.gen(function* () {
      const facilitator = yield* started(semanticSettings(endpoint.url))
      const { json } = yield* facilitator.ask("/health/ready")
      console.log(
        `search: ${RESOURCES} resources on ${server.description}, pgvector ` +
          `${json.search.vectorSupport ? "there" : "not there"}`
      )
      const world = yield* populate(facilitator, RESOURCES, true)
      server.filled()
      yield* untilLoaded(facilitator, world.questions)
      const answers = [
        checked(yield* measureCopy(facilitator)),
        checked(yield* checkFound(facilitator, world.questions)),
        checked(yield* checkRecall(facilitator, world.questions))
      ]
      return { world, measured: [...answers, ...(yield* measureAll(facilitator, withProvider(world)))] }
    })
  )
  const facilitator = yield* started(settings)
  yield* untilLoaded(facilitator, all.world.questions)
  const offline = yield* measureAll(facilitator, withoutProvider(all.world, yield* cursorPaths(facilitator)))
  return [...all.measured, ...offline]
})

const onEmbedded = Effect.gen(function* () {
  const endpoint = yield* startEmbeddings(embedWords)
  const set = semanticSettings(endpoint.url)
  const facilitator = yield* startFacilitator({ channels: 1, closeMillis: 5_000, set })
  console.log(`search: ${EMBEDDED_RESOURCES} resources on the embedded database, in this process, one client`)
  const world = yield* populate(facilitator, EMBEDDED_RESOURCES, false)
  const paths = (mode: string) => world.questions.map(({ query }) => searchPath(query, mode))
  yield* untilLoaded(facilitator, world.questions)
  return [
    checked(yield* checkFound(facilitator, world.questions)),
    checked(yield* checkRecall(facilitator, world.questions)),
    ...(yield* measureAll(facilitator, [
      {
        name: "words, embedded, never asked before",
        paths: world.fresh[0]!.map(({ query }) => searchPath(query, "lexical")),
        clients: 1,
        isFirst: true
      },
      { name: "words, embedded", paths: paths("lexical"), clients: 1, p50Max: 25 },
      { name: "hybrid with a provider, embedded", paths: paths("hybrid"), clients: 1, p50Max: 25 }
    ]))
  ]
})

/** Prints the figures; returns whether every bar held. */
export const bench = async (): Promise<boolean> => {
  const part = process.argv[3]
  const run = (program: typeof onPostgres | typeof onEmbedded) =>
    Effect.runPromise(Effect.orDie(Effect.scoped(program)).pipe(Effect.provide(NodeServices.layer)))
  const measured = [
    ...(part === "postgres" ? [] : await run(onEmbedded)),
    ...(part === "embedded" ? [] : await run(onPostgres))
  ]
  const bars = measured.flatMap((one) => one.bars)
  const holds = measured.every(({ isSound }) => isSound) && bars.every((bar) => bar.holds)
  console.log(`search: ${holds ? "every bar held" : "a bar was NOT held"}: ${bars.map(barLine).join(", ")}`)
  return holds
}
