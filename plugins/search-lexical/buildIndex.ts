// Keeps the lexical index in step with the catalog: a first build over all resources, taken up again where it was left, and from
// then on the catalog's facts. Both read the resource as it is now, so their order does not matter. When the build is complete,
// its language begins to answer and the one before is removed.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Facts } from "../../kernel/Facts.ts"
import { reconciler } from "../../kernel/Actor.ts"
import { Catalog, changedFact } from "../catalog/contract.ts"
import { LexicalStore } from "./LexicalStore.ts"

const batchMax = 500

export const startIndexing = Effect.gen(function*() {
  const catalog = yield* Catalog
  const store = yield* LexicalStore
  const facts = yield* Facts
  const sql = yield* SqlClient.SqlClient

  const build = Effect.gen(function*() {
    let { complete, scanned } = yield* store.state
    while (!complete) {
      const documents = yield* catalog.scan({ after: scanned, limit: batchMax })
      yield* store.write(documents)
      scanned = documents.at(-1)?.id ?? scanned
      complete = documents.length < batchMax
      // Counted before it answers: without its statistics every word would look unknown.
      yield* store.refresh
      yield* store.scannedTo(scanned, complete)
      if (!complete) continue
      yield* store.retire
      yield* Effect.logInfo("search_ready").pipe(Effect.annotateLogs({ event: "search_ready", branch: "lexical", language: store.language }))
    }
  })
  const statistics = yield* reconciler({ id: "search-lexical-index", every: "30 seconds", turn: Effect.andThen(build, store.refresh) })

  yield* facts.consume({
    consumer: "search-lexical",
    batchMax,
    handle: Effect.fnUntraced(function*(batch) {
      const ids = [...new Set(batch.filter(({ type }) => type === changedFact).map(({ subject }) => BigInt(subject)))]
      if (ids.length === 0) return
      yield* store.write(yield* catalog.documents(ids))
      // Earlier, the turn would not see what this transaction has written, and the next one comes in half a minute.
      yield* sql.afterCommit(statistics.wake)
    })
  })
})
