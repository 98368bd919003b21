// The benefit of each cache: its hit rate over the questions of two relevance sets, each asked once, and over a day of
// a small service (questions by Zipf's law, a third with a filter, an occasional change of a listing; verified and
// settled payments; browsed pages). Then the CPU time of the same questions with and without each cache of a search,
// alternating. Delete a cache if its removal costs less than 5 %. Prints figures without a bar.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import process from "node:process"
import { LruCache, readCaches } from "../../kernel/cache/LruCache.ts"
import { objectSlot } from "../../kernel/cache/objectSlot.ts"
import { ingest, listingsOf } from "../relevance/ingest.ts"
import { ownSet } from "../relevance/judged.ts"
import { untilIndexed } from "../relevance/untilIndexed.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"

/** The caches of one search. */
const ofSearch = [
  "rankings",
  "fits",
  "rare-filters",
  "common-filters",
  "resource-signals",
  "feedback",
  "word-lexemes",
  "word-substitutes",
  "similar-words",
  "session-marks",
  "filter-fingerprints"
]
/** CACHES lists some of them, separated by commas. */
const compared = process.env["CACHES"]?.split(",") ?? ofSearch
const questionsPerRound = Number(process.env["QUESTIONS"] ?? 120)
const rounds = Number(process.env["ROUNDS"] ?? 4)
const payments = 40
const pages = 60

/** Names of the caches that are disabled now. */
const off = new Set<string>()
const lookup = LruCache.prototype.get
LruCache.prototype.get = function (key, isValid) {
  return off.has(this.name) ? undefined : lookup.call(this, key, isValid)
}

/** The same numbers in each run. */
const makeRandom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return seed / 2_147_483_648
}

const sets = [ownSet("second"), ownSet("fourth")]
const queries = sets.flatMap(({ queries }) => queries)
const pathOf = (query: string, filters: Readonly<Record<string, string>>) =>
  `/discovery/search?${new URLSearchParams({ query, limit: "10", ...filters })}`

/** Questions of a day: a few are asked often. */
const dayOf = (count: number, seed: number): ReadonlyArray<string> => {
  const random = makeRandom(seed)
  return Array.from({ length: count }, () => {
    const at = Math.floor(queries.length ** random()) - 1
    return pathOf(queries[at]!.query, random() < 1 / 3 ? { type: random() < 0.5 ? "http" : "mcp" } : {})
  })
}

const askAll = (facilitator: Facilitator, paths: ReadonlyArray<string>, every = Infinity) =>
  Effect.forEach(
    paths,
    (path, at) =>
      Effect.gen(function* () {
        if (at % every === every - 1) yield* facilitator.publishedBy(ingest(facilitator.sql, [changed(at)]))
        const { status, text } = yield* facilitator.ask(path)
        if (status !== 200) return yield* Effect.die(new Error(`${path}: ${status} ${text.slice(0, 200)}`))
      }),
    { discard: true }
  )

let listed = 0
const [template] = listingsOf(sets[0]!)
const changed = (at: number) => {
  listed += 1
  return { ...template!, name: `changed-${listed}`, description: `${template!.description} number ${at}` }
}

const table = (title: string, before: ReturnType<typeof readCaches>) => {
  console.log(title)
  for (const { entries, hits, misses, name } of readCaches()) {
    const past = before.find((one) => one.name === name)
    const [found, missed] = [hits - (past?.hits ?? 0), misses - (past?.misses ?? 0)]
    const share = found + missed === 0 ? "" : `${((100 * found) / (found + missed)).toFixed(1)} %`
    if (found + missed > 0)
      console.log(
        `  ${name.padEnd(22)} ${String(found + missed).padStart(7)} lookups ${share.padStart(8)} hits` +
          ` ${String(entries).padStart(6)} entries`
      )
  }
}

const counted = <A, E, R>(title: string, work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const before = readCaches()
    return Effect.tap(work, () => Effect.sync(() => table(title, before)))
  })

/** Payments of a few payers for one resource: each verified twice and settled. */
const pay = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payTo = (yield* facilitator.account()).publicKey()
  const payers = yield* Effect.forEach([1, 2, 3, 4], () => facilitator.account())
  for (let at = 0; at < payments; at++) {
    const { body } = yield* facilitator.payment({ payer: payers[at % payers.length]!, payTo, amount: 10n + BigInt(at) })
    for (const _ of [1, 2]) yield* facilitator.verify(body)
    yield* facilitator.settle(body)
  }
})

const browse = (facilitator: Facilitator) =>
  askAll(
    facilitator,
    Array.from({ length: pages }, (_, at) => `/discovery/resources?limit=${[20, 50][at % 2]}&offset=${(at % 3) * 20}`)
  )

const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}

const median = (some: ReadonlyArray<number>) => some.toSorted((a, b) => a - b)[Math.floor(some.length / 2)]!

/** CPU milliseconds of a question, with and without a cache, alternating. */
const compare = Effect.fnUntraced(function* (facilitator: Facilitator, name: string) {
  const times: Record<"with" | "without", Array<number>> = { with: [], without: [] }
  for (let round = 0; round < rounds; round++)
    for (const how of round % 2 === 0 ? (["with", "without"] as const) : (["without", "with"] as const)) {
      off.clear()
      if (how === "without") off.add(name)
      const from = cpuMillis()
      yield* askAll(facilitator, dayOf(questionsPerRound, round + 7), 40)
      times[how].push((cpuMillis() - from) / questionsPerRound)
    }
  off.clear()
  const [less, more] = [median(times.with), median(times.without)]
  console.log(
    `  ${name.padEnd(22)} with ${less.toFixed(2)} ms, without ${more.toFixed(2)} ms: ` +
      `saves ${((100 * (more - less)) / more).toFixed(1)} %`
  )
})

/** CPU microseconds of a parsed object that three readers each write once and read twice. */
const notesOf = (
  make: () => Pick<WeakMap<object, number>, "get"> & { set: (key: object, value: number) => unknown }
) => {
  const notes = [make(), make(), make()]
  const objects = 400_000
  const from = cpuMillis()
  for (let at = 0; at < objects; at++) {
    const one = JSON.parse(`{"x":1,"y":{"z":[1,2,3]},"t":"a text as long as one of a payment"}`) as object
    for (const note of notes) {
      note.set(one, at)
      if (note.get(one) !== at || note.get(one) !== at) throw new Error("a note was lost")
    }
  }
  return (1_000 * (cpuMillis() - from)) / objects
}

const compareNotes = () => {
  const times: Record<"slot" | "weak", Array<number>> = { slot: [], weak: [] }
  for (let round = 0; round < 7; round++) {
    times.slot.push(notesOf(() => objectSlot<object, number>()))
    times.weak.push(notesOf(() => new WeakMap<object, number>()))
  }
  const [slot, weak] = [median(times.slot), median(times.weak)]
  console.log(`three notes on an object: slots ${slot.toFixed(2)} µs, weak maps ${weak.toFixed(2)} µs`)
}

export const bench = (): Promise<boolean> =>
  Effect.gen(function* () {
    compareNotes()
    const facilitator = yield* startFacilitator({
      database: "pglite",
      channels: 3
    })
    const resources = sets.flatMap((set) => listingsOf(set))
    yield* facilitator.publishedBy(ingest(facilitator.sql, resources))
    yield* untilIndexed(facilitator, resources.length)
    const once = queries.map(({ filters, query }) => pathOf(query, filters))
    yield* counted(`${once.length} questions, each once`, askAll(facilitator, once))
    yield* counted("a day's questions", askAll(facilitator, dayOf(3 * questionsPerRound, 1), 40))
    yield* counted(`${payments} payments: two verifies and a settle each`, pay(facilitator))
    yield* counted(`${pages} pages browsed`, browse(facilitator))
    console.log(`CPU time of a question, over ${rounds} rounds of ${questionsPerRound}, with and without a cache`)
    for (const name of compared) yield* compare(facilitator, name)
    return true
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.runPromise)
