// A repeated search over HTTP: its order is cached while the index is unchanged, its bodies are current, and newly
// listed resources are found.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { makeWorld } from "../../../../bench/searchWorld.ts"
import { ingest } from "../../../../relevance/ingest.ts"
import { untilIndexed } from "../../../../relevance/untilIndexed.ts"
import { databaseKinds } from "../../../../support/databases.ts"
import { eventually } from "../../../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../../../support/facilitator.ts"

const { resources } = makeWorld(60, 1)
const [later, ...early] = resources.map((one, at) => ({ ...one, description: `${one.description} lighthouse ${at}` }))
const query = "lighthouse"

const namesOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask(`/discovery/search?query=${query}&mode=lexical&limit=100`), ({ json, status }) => {
    expect([status, json.partialResults]).toEqual([200, false])
    return (json.resources as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name)
  })

describe.each(databaseKinds)("a repeated search on %s", (database) => {
  it("a repeated search keeps its order until the catalog changes", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, channels: 1 })
          const { publishedBy, sql } = facilitator
          yield* publishedBy(ingest(sql, early))
          yield* untilIndexed(facilitator, early.length)
          const names = yield* namesOf(facilitator)
          expect(names.length).toBe(early.length)
          const many = (count: number) =>
            eventually(Effect.map(namesOf(facilitator), (found) => found.length === count))
          // A resource that leaves the index without a notification keeps its place.
          const isKept = Effect.gen(function* () {
            for (const _ of [1, 2]) expect(yield* namesOf(facilitator)).toEqual(names)
            yield* sql`create table forgotten as select * from search_lexical_documents order by id limit 1`
            yield* sql`update search_lexical_documents set document = '' where id in (select id from forgotten)`
            if ((yield* namesOf(facilitator)).length === names.length) return true
            yield* sql`update search_lexical_documents d set document = f.document from forgotten f where d.id = f.id`
            yield* sql`drop table forgotten`
            return false
          })
          // After a second the index is asked whether it changed, so the result is not immediate.
          yield* eventually(isKept)
          const hide = (state: string) =>
            sql`update catalog_resources set state = ${state} where id = (select max(id) from catalog_resources)`
          yield* hide("quarantined")
          expect((yield* namesOf(facilitator)).length).toBe(names.length - 1)
          yield* hide("active")
          expect(yield* namesOf(facilitator)).toEqual(names)
          yield* sql`update search_lexical_state set changed = changed + 1`
          yield* many(names.length - 1)
          yield* publishedBy(ingest(sql, [later!]))
          yield* many(names.length)
        })
      ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
    ))
})
