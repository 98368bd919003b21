// Ranked search as the catalog carries it, in one Layer: the registry of branches, their ranking, the pages, and what
// operators are told of it.
import { Effect, Layer } from "effect"
import { Settings } from "../../../kernel/config/Settings.ts"
import { SearchSettings } from "../contract.ts"
import { RareFilters } from "./RareFilters.ts"
import { Ranker } from "./Ranker.ts"
import { startMissedSearches } from "./missedSearches.ts"
import { startImpressions } from "./recordImpressions.ts"
import { Reranker } from "./Reranker.ts"
import { ResourceSignals } from "./ResourceSignals.ts"
import { Searcher } from "./Searcher.ts"
import { Observers, searchRegistry } from "./SearchRegistry.ts"
import { addSearchReports } from "./SearchReports.ts"
import { searchSection } from "./searchSection.ts"

const settings = Layer.effect(
  SearchSettings,
  Effect.flatMap(Settings, (values) => values.section(searchSection))
)

const started = Layer.effectDiscard(
  Effect.all([addSearchReports, startImpressions, startMissedSearches], { discard: true })
)

/** Gives `Search`, `SearchSettings` and `Searcher`, over the catalog's reads. */
export const search = Layer.merge(Searcher.layer, started).pipe(
  Layer.provide(Ranker.layer),
  Layer.provide(Layer.mergeAll(RareFilters.layer, Reranker.layer, ResourceSignals.layer)),
  Layer.provideMerge(searchRegistry),
  Layer.provide(Observers.layer),
  Layer.provideMerge(settings)
)
