// Keeps the lexical index in step with the catalog: a first build over all resources, resumed where it stopped, and
// then the catalog's facts. Both read the current state of the resource, so their order does not matter. When the build
// is complete, its language begins to answer; the previous one is removed a little later, when searches on all replicas
// have stopped reading it.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Facts } from "../../kernel/facts/Facts.ts"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { Catalog, changedResources } from "../catalog/contract.ts"
import { LexicalStore } from "./LexicalStore.ts"

const batchMax = 500
/** How long a replaced language stays: longer than replicas cache which one answers, and than a search takes. */
const retireAfterMillis = 60_000

export const startIndexing = Effect.gen(function* () {
  const catalog = yield* Catalog
  const store = yield* LexicalStore
  const facts = yield* Facts
  const sql = yield* SqlClient.SqlClient

  const build = Effect.gen(function* () {
    const state = yield* store.state
    // Nothing that would have to be counted: a turn that finds nothing to do is one statement.
    if (state.complete && state.changed === 0) return
    let { complete, scanned } = state
    while (!complete) {
      const documents = yield* catalog.scan({ after: scanned, limit: batchMax })
      yield* store.write(documents)
      scanned = documents.at(-1)?.id ?? scanned
      complete = documents.length < batchMax
      // Statistics come first: without them every word would be unknown.
      yield* store.refresh
      yield* store.scannedTo(scanned, complete)
      if (!complete) continue
      yield* Effect.logInfo("search_ready").pipe(
        Effect.annotateLogs({ event: "search_ready", branch: "lexical", language: store.language })
      )
    }
    yield* store.refresh
  })

  let completeSince: number | undefined
  let isRetired = false
  /** Once for the life of the process. */
  const retire = Effect.gen(function* () {
    const now = yield* monotonicMillis
    completeSince ??= now
    if (isRetired || now - completeSince < retireAfterMillis) return
    yield* store.retire
    isRetired = true
  })
  const statistics = yield* reconciler({
    id: "search-lexical-index",
    every: "30 seconds",
    turn: Effect.andThen(build, retire)
  })

  yield* facts.consume({
    consumer: "search-lexical",
    batchMax,
    handle: Effect.fnUntraced(function* (batch) {
      const ids = changedResources(batch)
      if (ids.length === 0) return
      yield* store.write(yield* catalog.documents(ids))
      // An earlier turn would not see this transaction's writes, and the next one comes in half a minute.
      yield* sql.afterCommit(statistics.wake)
    })
  })
})
