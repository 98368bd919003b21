// Ranked search as the catalog carries it, in one Layer: the registry of branches, their ranking, the pages, and the
// operators' reports on it.
import { Effect, Layer } from "effect"
import { Settings } from "../../../kernel/config/Settings.ts"
import { SearchSettings } from "../contract.ts"
import { RareFilters } from "./rank/RareFilters.ts"
import { Ranker } from "./rank/Ranker.ts"
import { startMissedSearches } from "./report/missedSearches.ts"
import { startImpressions } from "./report/recordImpressions.ts"
import { startShownProbes } from "./probeShown.ts"
import { Reranker } from "./rank/Reranker.ts"
import { ResourceSignals } from "./rank/ResourceSignals.ts"
import { Searcher } from "./Searcher.ts"
import { Observers, searchRegistry } from "./SearchRegistry.ts"
import { addSearchReports } from "./report/SearchReports.ts"
import { searchSection } from "./searchSection.ts"

const settings = Layer.effect(
  SearchSettings,
  Effect.flatMap(Settings, (values) => values.section(searchSection))
)

const started = Layer.effectDiscard(
  Effect.all([addSearchReports, startImpressions, startMissedSearches, startShownProbes], { discard: true })
)

/** Gives `Search`, `SearchSettings` and `Searcher`, over the catalog's reads. */
export const search = Layer.merge(Searcher.layer, started).pipe(
  Layer.provide(Ranker.layer),
  Layer.provide(Layer.mergeAll(RareFilters.layer, Reranker.layer, ResourceSignals.layer)),
  Layer.provideMerge(searchRegistry),
  Layer.provide(Observers.layer),
  Layer.provideMerge(settings)
)
