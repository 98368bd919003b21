// The paths in origins' documents. We keep them so that no other recipient's template resolves for them. A probe writes
// them when the documents' paths have changed. A path that has been absent for a month is deleted.
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { loosePath } from "../declaration/resourceUrl.ts"
import { originsMax } from "./OriginDocuments.ts"

/** Maximum paths of one origin. */
const pathsMax = 2_000
/** Interval between two writes of an unchanged path. */
const againMillis = 86_400_000

export const keepNamedPaths = (sql: SqlClient.SqlClient, isFull: Effect.Effect<boolean, SqlError.SqlError>) => {
  const written = new LruCache<string, { readonly text: string; readonly at: number }>({
    name: "named-paths",
    capacity: originsMax
  })
  return Effect.fnUntraced(function* (origin: string, named: ReadonlyArray<string>, now: Date) {
    const concrete = named.filter((resource) => !/[:*{[]/.test(resource.slice(origin.length)))
    const paths = [...new Set(concrete.map((resource) => loosePath(resource.slice(origin.length))))].slice(0, pathsMax)
    const text = paths.join("\n")
    const isWritten = (before: { readonly text: string; readonly at: number }) =>
      before.text === text && now.getTime() - before.at < againMillis
    if (paths.length === 0 || written.get(origin, isWritten) !== undefined || (yield* isFull)) return
    yield* sql`insert into catalog_named_paths (origin, path, at)
      select ${origin}, value, ${now} from jsonb_array_elements_text(${JSON.stringify(paths.toSorted())}::jsonb)
      on conflict (origin, path) do update set at = excluded.at`
    written.set(origin, { text, at: now.getTime() })
  })
}
