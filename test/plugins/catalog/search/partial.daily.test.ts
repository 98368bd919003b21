// A response is marked partial if the requested mode lacks a provider and another branch answers. The default mode uses
// the enabled branches, and is complete.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { ingest } from "../../../relevance/ingest.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import { startFacilitator } from "../../../support/facilitator.ts"
import { fieldListings } from "./fieldListings.ts"

/** The plugins enabled with the catalog, and the modes without a provider. */
const compositions = [
  ["search-lexical,search-semantic", ["semantic", "hybrid"]],
  ["search-lexical", ["semantic", "hybrid"]],
  ["search-semantic", ["lexical", "semantic", "hybrid"]]
] as const

describe.each(databaseKinds)("without a model's provider, on %s", (database) => {
  it.live.each(compositions)(
    "a response of %s is partial for modes %j on each page",
    ([branches, lacking]) =>
      Effect.gen(function* () {
        const set = [`plugins=[ledger-local,x402-exact,catalog,${branches}]`]
        const facilitator = yield* startFacilitator({ database, set, channels: 1 })
        yield* facilitator.publishedBy(ingest(facilitator.sql, fieldListings))
        const found = (more: string) =>
          Effect.map(facilitator.ask(`/discovery/search?query=wine%20film&limit=1${more}`), ({ json, status }) => ({
            status,
            partial: json.partialResults as boolean,
            names: json.resources.map(({ name }: any) => name) as ReadonlyArray<string>,
            cursor: json.pagination.cursor as string | null
          }))
        yield* eventually(found(""), ({ names }) => /^(wine|film) /.test(names[0] ?? ""))
        for (const mode of ["", "lexical", "semantic", "hybrid"]) {
          const asked = mode === "" ? "" : `&mode=${mode}`
          const isLacking = (lacking as ReadonlyArray<string>).includes(mode)
          // A repeated search is answered from the cache, and is partial too.
          for (let time = 0; time < 3; time++) {
            const { partial, status } = yield* found(asked)
            expect([mode, status, partial]).toEqual([mode, 200, isLacking])
          }
          const { cursor, names } = yield* found(asked)
          // Lexical search is not confident about half a query: it finds nothing, so a second page does not exist.
          expect([mode, cursor === null]).toEqual([mode, names.length === 0])
          if (cursor === null) continue
          const second = yield* found(`${asked}&cursor=${cursor}`)
          expect([mode, second.status, second.partial]).toEqual([mode, 200, isLacking])
        }
      }).pipe(Effect.scoped),
    240_000
  )
})
