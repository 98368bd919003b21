// Writes documents into the index of every language: while the language changes, any replica may receive a change. An
// older version never replaces a newer one. A listing in another language than the index's own is stemmed as that
// language, and its lexemes bear its mark (`languages.ts`).
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { ResourceDocument } from "../catalog/contract.ts"
import { documentText, type WeightedText } from "./documentText.ts"
import { foreignOf } from "./languages.ts"
import { stemmedAs } from "./words.ts"

/** Stems the texts of a document for the index of a language, without the text's own function words. */
const stemmed = (text: WeightedText, language: string) => {
  const words = Object.values(text).join(" ").split(" ")
  const foreign = foreignOf(words, language)
  if (foreign === undefined) return { stems: stemmedAs(words.join(" "), language), ending: "", ...text }
  const discriminative = (field: string) =>
    field
      .split(" ")
      .filter((word) => !foreign.smallWords.has(word))
      .join(" ")
  const { ending, stems } = foreign
  return {
    stems,
    ending,
    a: discriminative(text.a),
    b: discriminative(text.b),
    c: discriminative(text.c),
    d: discriminative(text.d)
  }
}

/**
 * A field's lexemes. Lexemes of another language get its mark; words are letters and digits, so none needs an escape.
 */
const vectorOf = (field: "a" | "b" | "c" | "d"): string => `setweight(case when ending = ''
  then to_tsvector(stems::regconfig, ${field})
  else (select coalesce(string_agg(format('''%s'':%s', lexeme || ending, array_to_string(positions, ',')), ' '), '')
    ::tsvector from unnest(to_tsvector(stems::regconfig, ${field}))) end, '${field.toUpperCase()}')`

const vectors = (["a", "b", "c", "d"] as const).map(vectorOf).join(" || ")

export const writeDocuments = Effect.fn("LexicalStore.write")(function* (documents: ReadonlyArray<ResourceDocument>) {
  if (documents.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const languages = yield* sql<{ language: string }>`select language from search_lexical_state`
  const rowsOf = (document: ResourceDocument) => {
    const text = documentText(document)
    return languages.map(({ language }) => ({
      language,
      id: String(document.id),
      version: document.version,
      origin: Option.getOrElse(document.origin, () => document.resource),
      ...stemmed(text, language)
    }))
  }
  // Other work runs between two documents: the largest ones take milliseconds each.
  const rows = yield* Effect.forEach(documents, (document) => Effect.map(Effect.yieldNow, () => rowsOf(document)))
  yield* sql`with written as (
      insert into search_lexical_documents as old (language, id, version, origin, document)
      select r.language, id, version, hashtextextended(origin, 0), ${sql.literal(vectors)}
      from jsonb_to_recordset(${JSON.stringify(rows.flat())}::jsonb) as r (language text, id bigint, version integer,
        origin text, stems text, ending text, a text, b text, c text, d text)
      join search_lexical_state s using (language)
      order by r.language, id
      on conflict (language, id) do update set version = excluded.version, document = excluded.document,
        origin = excluded.origin
      where old.version < excluded.version or (old.version = excluded.version
        and (old.document <> excluded.document or old.origin is distinct from excluded.origin))
      returning language
    )
    update search_lexical_state s set changed = changed + w.count
    from (select language, count(*)::int as count from written group by language order by language) w
      where s.language = w.language`
})
