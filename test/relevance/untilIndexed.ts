// The indexes follow the catalog with a delay, so we wait before searching.
import { Effect } from "effect"
import type { Facilitator } from "../support/facilitator.ts"

/** Waits until every resource is in every index. */
export const untilIndexed = Effect.fnUntraced(function* (facilitator: Facilitator, count: number) {
  while (true) {
    const [lexical] = yield* facilitator.sql<{
      written: number
      changed: number
    }>`select (select count(*) from search_lexical_documents)::int as written,
      (select changed from search_lexical_state limit 1) as changed`
    const [semantic] = yield* facilitator.sql<{ due: number }>`select count(*)::int as due from search_semantic_jobs`
    const [facts] = yield* facilitator.sql<{ waiting: boolean }>`select exists (
      select 1 from kernel_facts f, kernel_fact_cursors c where c.consumer in ('search-semantic', 'search-embedded') and
        coalesce(f.position > c.position, true)) as waiting`
    const { json } = yield* facilitator.ask("/health/ready")
    const isReady = Object.values(json.search).every((one) => one !== "degraded")
    if (lexical!.written >= count && lexical!.changed === 0 && semantic!.due === 0 && !facts!.waiting && isReady) return
    yield* Effect.sleep("100 millis")
  }
})
