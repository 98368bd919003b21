// A filter removes only resources that do not pass it: if an unfiltered response contains a passing resource, the
// filtered response is not empty. Random queries and filters over 500 resources; the test evaluates the filters on the
// resources themselves. Also uses sets of real listings and questions; search expands a query from its first hits, and
// few of them pass a filter.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { makeWorld } from "../../../bench/searchWorld.ts"
import type { Dataset } from "../../../relevance/dataset.ts"
import { type IngestedResource, ingest, listingsOf } from "../../../relevance/ingest.ts"
import { ownSet } from "../../../relevance/judged.ts"
import { untilIndexed } from "../../../relevance/untilIndexed.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../../support/facilitator.ts"

const queriesMax = 25
const { resources, world } = makeWorld(500, queriesMax)
const byName = new Map(resources.map((one) => [one.name, one]))

const randomFrom = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

type Filter = Readonly<Record<string, string>>

const passes = ({ options: [option], type }: IngestedResource, filter: Filter): boolean =>
  Object.entries(filter).every(([name, value]) => {
    if (name === "type") return type === value
    if (name === "maxPrice") return BigInt(option!.amount) <= BigInt(value)
    return option![name as "asset" | "payTo" | "scheme"] === value
  })

/** Filters that many, some and very few resources pass, and a filter that only this resource passes. */
const filtersFor = (one: IngestedResource, random: () => number): ReadonlyArray<Filter> => {
  const asset = `CASSET${Math.floor(random() * 3)}`
  return [
    { scheme: "exact", type: "http" },
    { type: "mcp" },
    { asset, maxPrice: String(Math.floor(random() * 500)) },
    { asset, scheme: "upto", type: random() < 0.5 ? "http" : "mcp" },
    { payTo: one.options[0]!.payTo }
  ]
}

interface Found {
  readonly resources: ReadonlyArray<{ readonly name: string }>
  readonly partialResults: boolean
  readonly pagination: { readonly cursor: string | null }
}

const ask = (facilitator: Facilitator, parameters: Filter) =>
  Effect.map(facilitator.ask(`/discovery/search?${new URLSearchParams(parameters)}`), ({ json, status }) => {
    // Without a model, a semantic mode is answered by the enabled branches and marked partial.
    expect([status, json.partialResults], JSON.stringify(parameters)).toEqual([200, parameters["mode"] === "hybrid"])
    return json as Found
  })

/** Every page of a response. */
const namesOf = Effect.fnUntraced(function* (facilitator: Facilitator, parameters: Filter) {
  const names: Array<string> = []
  let cursor: string | null = ""
  while (cursor !== null) {
    const page: Found = yield* ask(facilitator, { ...parameters, limit: "200", ...(cursor === "" ? {} : { cursor }) })
    names.push(...page.resources.map(({ name }) => name))
    cursor = page.pagination.cursor
  }
  return names
})

describe.each(databaseKinds)("a filter on %s", (database) => {
  it(
    "a filter never empties a response that holds a passing resource",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, channels: 1 })
            yield* facilitator.publishedBy(ingest(facilitator.sql, resources))
            yield* untilIndexed(facilitator, resources.length)
            const seed = Number(process.env["TOLLKEEPER_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32))
            const random = randomFrom(seed)
            let answered = 0
            for (const mode of ["lexical", "hybrid"]) {
              for (const { query } of world.questions) {
                const all = yield* namesOf(facilitator, { query, mode })
                expect(all.length, query).toBeGreaterThan(0)
                const one = byName.get(all[Math.floor(random() * all.length)]!)!
                for (const filter of filtersFor(one, random)) {
                  const wanted = all.filter((name) => passes(byName.get(name)!, filter))
                  const { resources } = yield* ask(facilitator, { query, mode, ...filter })
                  const message = `seed ${seed}: ${JSON.stringify({ query, mode, ...filter })} lost ${wanted.join(", ")}`
                  expect(resources.length > 0 || wanted.length === 0, message).toBe(true)
                  expect(resources.every(({ name }) => passes(byName.get(name)!, filter))).toBe(true)
                  answered += wanted.length === 0 ? 0 : 1
                }
              }
            }
            expect(answered).toBeGreaterThan(2 * queriesMax)
          })
        ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
      ),
    240_000
  )
})

/** A set's listings, each with its own recipient. */
const ofOwnRecipients = (set: Dataset): ReadonlyArray<IngestedResource> =>
  listingsOf(set).map((one, at) => ({
    ...one,
    options: one.options.map((option) => ({ ...option, payTo: `GOWN${at}` }))
  }))

describe.each(["second", "third", "fourth"] as const)("filtering the %s set by recipient", (name) => {
  it(
    "a narrow filter keeps its matches from the unfiltered response",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const set = ownSet(name)
            const listings = ofOwnRecipients(set)
            const facilitator = yield* startFacilitator({ channels: 1 })
            yield* facilitator.publishedBy(ingest(facilitator.sql, listings))
            yield* untilIndexed(facilitator, listings.length)
            let answered = 0
            for (const { query } of set.queries) {
              const all = yield* ask(facilitator, { query })
              for (const { name } of all.resources.slice(0, 3)) {
                const { payTo } = listings.find((one) => one.name === name)!.options[0]!
                const found = yield* ask(facilitator, { query, payTo })
                expect([query, found.resources.map((one) => one.name)]).toEqual([query, [name]])
                answered += 1
              }
            }
            expect(answered).toBeGreaterThan(2 * set.queries.length)
          })
        ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
      ),
    240_000
  )
})
