// The catalog as a plugin: it observes payments, lists what sellers declare, asks origins who owns what, and serves
// discovery. It provides the contract that search, analytics and others build on. A fault in it never touches a
// payment.
import { Context, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { httpContract, paymentContract } from "../../kernel/drivers.ts"
import { Facts, factsContract } from "../../kernel/Facts.ts"
import { reconciler } from "../../kernel/Actor.ts"
import { describe } from "../../kernel/http/OpenApi.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Outbound } from "../../kernel/platform/Outbound.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { addAdministrationRoutes } from "./administration/AdministrationRoutes.ts"
import { explainListing } from "./administration/explainListing.ts"
import { makeRecords } from "./administration/makeRecords.ts"
import { moveResource } from "./administration/moveResource.ts"
import { Config } from "./Config.ts"
import { Catalog, CatalogRecords } from "./contract.ts"
import { described } from "./description.ts"
import { makeBrowse } from "./discovery/browse.ts"
import { addDiscoveryRoutes } from "./discovery/DiscoveryRoutes.ts"
import { makeCatalog } from "./discovery/makeCatalog.ts"
import { makeCounts } from "./discovery/makeCounts.ts"
import { cursorSecrets, makeCursors } from "./discovery/makeCursors.ts"
import { makeResolve } from "./discovery/resolve.ts"
import { makeObserver } from "./observePayments.ts"
import { makeApplyVerdict } from "./ownership/applyVerdict.ts"
import { makeAskOrigin } from "./ownership/askOrigin.ts"
import { startProbes } from "./ownership/reconcileProbes.ts"
import { search } from "./search/layer.ts"
import { Searcher } from "./search/Searcher.ts"
import { makeJournal } from "./store/Journal.ts"
import { makeRecorder } from "./store/recordDeclaration.ts"
import { startAge } from "./store/reconcileAge.ts"

const layer = Layer.effectContext(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const facts = yield* Facts
    const crypto = yield* Crypto
    const config = yield* Config
    const extensions = yield* Extensions
    const outbound = yield* Outbound
    const scope = yield* Effect.scope

    const cursors = makeCursors(yield* cursorSecrets(sql, crypto, config), crypto, config.cursorMinutes)
    const catalog = makeCatalog(sql, config, cursors)
    const { changed, count } = makeCounts({ sql, config, facts, scope })
    const browse = makeBrowse(sql, config, catalog, count)
    const searching = yield* Effect.provideService(Layer.build(search), Catalog, catalog)
    const recorder = makeRecorder({ sql, facts, crypto, config })
    const journal = makeJournal({ sql, facts, crypto })
    const observer = makeObserver({ config, crypto, recorder, journal, changed })
    const moved = () => {
      observer.forget()
      changed()
    }

    if (config.autoCatalog) yield* extensions.register(observer.extension)
    yield* addDiscoveryRoutes({
      browse,
      resolve: makeResolve(sql, config, crypto),
      search: Context.get(searching, Searcher).search
    })
    yield* addAdministrationRoutes({ moved, before: Effect.ignore(journal.flush) })
    yield* reconciler({ id: "journal", every: "1 second", turn: journal.flush })
    // What has gathered is stored before the database under it closes.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(journal.flush, "2 seconds")))
    yield* startAge({ sql, facts, config, changed: moved })
    if (config.probeOrigins) {
      yield* startProbes({
        sql,
        ask: makeAskOrigin(config, outbound),
        apply: makeApplyVerdict({ sql, facts, config, recorder }),
        changed: moved
      })
    }
    return Context.make(Catalog, catalog).pipe(
      Context.add(CatalogRecords, makeRecords(sql, crypto)),
      Context.merge(searching)
    )
  })
)

export const plugin = define({
  id: "catalog",
  summary: "What sellers declare, listed truthfully: cataloging, ownership and public discovery.",
  boot: "required",
  needs: [settingsContract, supervisorContract, httpContract, databaseContract, factsContract, paymentContract],
  migrations: "folder",
  layer: Layer.merge(layer, describe(described)).pipe(Layer.provide(Layer.merge(Config.layer, FetchHttpClient.layer)))
})

/** What the command line does without a running facilitator, over the database alone. */
export const administration = { explainListing, moveResource }
