// The resources that searches show are requested to be probed, behind the searches.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { Search } from "../../../plugins/catalog/contract.ts"
import { startShownProbes } from "../../../plugins/catalog/search/probeShown.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { describeDatabases } from "../../support/databases.ts"
import { layerTest } from "../../support/layerTest.ts"
import { addResources } from "./addResources.ts"

type Watcher = Parameters<Search["Service"]["observe"]>[0]

/** A search that shows ids, and the ids that are due for a free probe since the last call. */
const started = Effect.fnUntraced(function* (probeOrigins: boolean) {
  const sql = yield* SqlClient.SqlClient
  yield* addResources(40)
  const watchers: Array<Watcher> = []
  let asked = 0
  yield* startShownProbes.pipe(
    Effect.provide([
      Supervisor.layer,
      Layer.succeed(Config, { probeOrigins, probePauseSeconds: 0 } as CatalogValues),
      layerTest(Search, { observe: (watcher) => Effect.sync(() => void watchers.push(watcher)) as never }),
      layerTest(Changes, { asked: Effect.sync(() => void (asked += 1)) })
    ])
  )
  const show = (...ids: ReadonlyArray<number>) =>
    Effect.forEach(watchers, (watcher) => watcher({ ids: ids.map(BigInt) } as never), { discard: true })
  const due = Effect.gen(function* () {
    yield* TestClock.adjust("1 minute")
    const rows = yield* sql<{ id: bigint }>`select resource_id as id from catalog_probes where free order by 1`
    return rows.map(({ id }) => Number(id))
  })
  return { asked: () => asked, due, show, watchers }
})

describeDatabases(
  "probes of shown resources",
  (database) => {
    layer(database, { timeout: "240 seconds" })((it) => {
      it.effect("are requested within a minute, free, and once for each", () =>
        Effect.gen(function* () {
          const { asked, due, show } = yield* started(true)
          expect(yield* due).toEqual([])
          yield* show(3, 5, 3)
          yield* show(7)
          expect([yield* due, asked()]).toEqual([[3, 5, 7], 1])
        }).pipe(Effect.scoped)
      )

      it.effect("are none where origins are not probed", () =>
        Effect.gen(function* () {
          const { watchers } = yield* started(false)
          expect(watchers).toEqual([])
        }).pipe(Effect.scoped)
      )
    })
  },
  ["kernel", "catalog"]
)
