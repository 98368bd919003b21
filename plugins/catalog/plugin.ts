// The catalog as a plugin: it observes payments, lists declared resources, asks origins for the owner of a resource,
// and serves discovery. It provides the contract that search, analytics and others build on. An error in the plugin
// never affects a payment.
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { accountsContract } from "../../kernel/accounts/AccountSessions.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { httpContract, networkContract, paymentContract, settlementContract } from "../../kernel/drivers.ts"
import { factsContract } from "../../kernel/facts/Facts.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { listingReasons } from "./declaration/reasons.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { addAdministrationRoutes } from "./administration/AdministrationRoutes.ts"
import { explainListing } from "./administration/explainListing.ts"
import { moveResource } from "./administration/moveResource.ts"
import * as Records from "./administration/Records.ts"
import { addSellerRoutes } from "./administration/SellerRoutes.ts"
import { Config, declared } from "./Config.ts"
import { searchSection } from "./search/searchSection.ts"
import { Browse } from "./discovery/Browse.ts"
import { Counts } from "./discovery/Counts.ts"
import { Cursors } from "./discovery/Cursors.ts"
import { addDiscoveryRoutes } from "./discovery/DiscoveryRoutes.ts"
import { History } from "./discovery/History.ts"
import * as Reads from "./discovery/reads.ts"
import { Resolve } from "./discovery/Resolve.ts"
import { DeclarationValidator } from "./DeclarationValidator.ts"
import { Observer } from "./Observer.ts"
import { Challenges } from "./ownership/Challenges.ts"
import { Execution } from "./ownership/Execution.ts"
import { Hints, startHints } from "./ownership/Hints.ts"
import { startForeignCatalogs } from "./ownership/foreignCatalogs.ts"
import { OriginDocuments } from "./ownership/OriginDocuments.ts"
import { OriginMoves } from "./ownership/OriginMoves.ts"
import { OriginProbes } from "./ownership/OriginProbes.ts"
import { Origins } from "./ownership/Origins.ts"
import { PricedAssets } from "./ownership/PricedAssets.ts"
import { Recipients } from "./ownership/Recipients.ts"
import { startProbes } from "./ownership/reconcileProbes.ts"
import { Verdicts } from "./ownership/Verdicts.ts"
import { search } from "./search/layer.ts"
import { Changes } from "./store/Changes.ts"
import { startCircles } from "./store/findCircles.ts"
import { FirstListings } from "./store/FirstListings.ts"
import { Listings } from "./store/Listings.ts"
import { Quotas } from "./store/Quotas.ts"
import { startAge } from "./store/reconcileAge.ts"
import { Redeclarations } from "./store/Redeclarations.ts"
import { gather, Sightings } from "./store/Sightings.ts"
import { Versions } from "./store/Versions.ts"

export const writing = Layer.mergeAll(Listings.layer, Verdicts.layer).pipe(
  Layer.provide(Layer.merge(Redeclarations.layer, Execution.layer)),
  Layer.provideMerge(FirstListings.layer),
  Layer.provide(Layer.mergeAll(Quotas.layer, Versions.layer))
)

/** Services that read the catalog, for other plugins and for discovery. */
const reading = Layer.mergeAll(Browse.layer, History.layer, Records.layer).pipe(
  Layer.provideMerge(Resolve.layer),
  Layer.provideMerge(Reads.layer),
  Layer.provide(Layer.mergeAll(Cursors.layer, Counts.layer))
)

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* Config
    const extensions = yield* Extensions
    const { observe, recall } = yield* Observer
    const sightings = yield* Sightings
    if (config.autoCatalog) yield* extensions.register({ key: "catalog", observe, recall })
    yield* (yield* Schemes).describe(listingReasons)
    yield* addDiscoveryRoutes
    yield* addAdministrationRoutes
    yield* addSellerRoutes
    const journal = yield* reconciler({
      id: "journal",
      // A batch that could not be stored is retried.
      every: sightings.dueIn,
      gather,
      turn: sightings.flush
    })
    yield* sightings.onFirst(journal.wake)
    // Store pending sightings before the database layer closes.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(sightings.flush, "2 seconds")))
    yield* startAge
    yield* startCircles
    if (config.probeOrigins) yield* Effect.andThen(startProbes, startHints)
    if (config.foreignCatalogs.length > 0) yield* startForeignCatalogs
  })
)

const layer = started.pipe(
  Layer.provideMerge(search),
  Layer.provideMerge(reading),
  Layer.provide(Observer.layer.pipe(Layer.provideMerge(Sightings.layer), Layer.provide(DeclarationValidator.layer))),
  Layer.provide(Layer.merge(OriginProbes.layer, Challenges.layer)),
  Layer.provide(OriginMoves.layer.pipe(Layer.provide(Versions.layer))),
  Layer.provide(Layer.merge(writing, Origins.layer)),
  Layer.provide(OriginDocuments.layer),
  Layer.provide(Layer.mergeAll(Changes.layer, Hints.layer, PricedAssets.layer, Recipients.layer))
)

export const plugin = define({
  id: "catalog",
  summary: "Catalog of sellers' declarations: listing, ownership and public discovery.",
  boot: "required",
  needs: [
    settingsContract,
    supervisorContract,
    httpContract,
    databaseContract,
    factsContract,
    accountsContract,
    networkContract,
    paymentContract,
    settlementContract
  ],
  migrations: "folder",
  settings: [...declared, searchSection],
  layer: layer.pipe(Layer.provide(Layer.merge(Config.layer, FetchHttpClient.layer)))
})

/** The command line's operations without a running facilitator; they need only the database. */
export const administration = { explainListing, moveResource }

export { listingReasons as reasons } from "./declaration/reasons.ts"

export { metrics } from "./metrics.ts"
