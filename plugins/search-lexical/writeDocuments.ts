// Documents into the index of every language there is: while the language changes, any replica may be the one that
// hears of a change. An older version never replaces a newer one.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ResourceDocument } from "../catalog/contract.ts"
import { documentText } from "./documentText.ts"
import { stemmedAs } from "./words.ts"

export const writeDocuments = Effect.fn("LexicalStore.write")(function* (documents: ReadonlyArray<ResourceDocument>) {
  if (documents.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = documents.map((document) => {
    const text = documentText(document)
    const english = stemmedAs(Object.values(text).join(" "), "english")
    return { id: String(document.id), version: document.version, english, ...text }
  })
  yield* sql`with written as (
      insert into search_lexical_documents as old (language, id, version, document)
      select s.language, id, version, setweight(to_tsvector(l.stems, a), 'A') || setweight(to_tsvector(l.stems, b), 'B')
        || setweight(to_tsvector(l.stems, c), 'C') || setweight(to_tsvector(l.stems, d), 'D')
      from search_lexical_state s, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id bigint, version
        integer, english text, a text, b text, c text, d text),
        lateral (select (case s.language when 'english' then r.english else s.language end)::regconfig as stems) l
      order by s.language, id
      on conflict (language, id) do update set version = excluded.version, document = excluded.document
      where old.version < excluded.version or (old.version = excluded.version
        and old.document <> excluded.document)
      returning language
    )
    update search_lexical_state s set changed = changed + w.count
    from (select language, count(*)::int as count from written group by language order by language) w
      where s.language = w.language`
})
