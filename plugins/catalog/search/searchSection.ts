// The settings of search: the fusion and the bounds of branches, and the resources that each branch may use. One
// section has one owner, so the catalog reads it and hands its values to the branches by its contract. Weights and
// constants are measured (`npm run relevance` prints the figures), not guessed; both halves of the queries agreed on
// each.
import {
  choice,
  fraction,
  group,
  integer,
  optionalText,
  section,
  text,
  type ValuesOf
} from "../../../kernel/config/Setting.ts"

const lexical = {
  language: text({
    default: "english",
    doc:
      "Text search configuration of PostgreSQL, for documents and queries alike; listings in another language are " +
      "stemmed as that where their small words show it. A change rebuilds the index beside the old one."
  }),
  weight: fraction({ default: 0.2, min: 0, max: 1 }, "Weight of the lexical rank in the fused rank."),
  candidate_count: integer({ default: 60, min: 10, max: 1_000 }, "Hits the lexical branch hands to fusion."),
  timeout_ms: integer({ default: 2_000, min: 10, max: 15_000, unit: "ms" }, "Timeout of the lexical branch.")
}

const embedded = {
  provider: choice(["words", "none"], {
    default: "words",
    doc: "Semantic search without a provider: the built-in table of word vectors, or none."
  }),
  weight: fraction(
    { default: 0.26, min: 0, max: 1 },
    "Weight of the embedded rank in the fused rank where the words find little; less where they find more."
  ),
  candidate_count: integer({ default: 60, min: 10, max: 1_000 }, "Hits the embedded branch hands to fusion."),
  timeout_ms: integer({ default: 2_000, min: 10, max: 15_000, unit: "ms" }, "Timeout of the embedded branch.")
}

const semantic = {
  provider: choice(["none", "openai"], {
    default: "none",
    doc: "Provider of embeddings: none, or an endpoint that speaks OpenAI's embeddings interface."
  }),
  url: text({ default: "http://127.0.0.1:11434/v1/embeddings", doc: "The embeddings endpoint." }),
  api_key_env: optionalText({ doc: "Environment variable with the endpoint's key, when it needs one." }),
  model: text({ default: "bge-m3", doc: "The model's name at the endpoint." }),
  revision: text({
    default: "1",
    doc: "A name for this state of the model; a change re-embeds everything while the old generation stays in use."
  }),
  dimension: integer(
    { default: 384, min: 8, max: 4_096 },
    "Numbers in one vector; an answer of another length is refused."
  ),
  send_dimension: choice(["no", "yes"], {
    default: "no",
    doc: "Whether to ask the endpoint for vectors of this dimension."
  }),
  pooling: text({ default: "model", doc: "The model's pooling; recorded only." }),
  query_prefix: text({ default: "", doc: "Prepended to each query, for models that need an instruction." }),
  document_prefix: text({ default: "", doc: "Prepended to each document." }),
  index: choice(["auto", "hnsw", "scan"], {
    default: "auto",
    doc:
      "How the nearest vectors are found: hnsw, by pgvector's index; scan, in this process's memory; auto, hnsw " +
      "where a server has pgvector. A change embeds everything anew beside the old generation."
  }),
  weight: fraction({ default: 0.8, min: 0, max: 1 }, "Weight of the semantic rank in the fused rank."),
  candidate_count: integer({ default: 60, min: 10, max: 1_000 }, "Hits the semantic branch hands to fusion."),
  timeout_ms: integer(
    { default: 5_000, min: 10, max: 60_000, unit: "ms" },
    "Timeout of one call for an embedding (S296)."
  ),
  hybrid_wait_ms: integer(
    { default: 300, min: 10, max: 15_000, unit: "ms" },
    "Maximum time a search that has other branches waits for an embedding; a slower provider is asked " +
      "in the background until it answers in time."
  ),
  batch_size: integer({ default: 32, min: 1, max: 512 }, "Documents embedded with one call."),
  attempts: integer({ default: 8, min: 1, max: 100 }, "Attempts for one document before it becomes a dead letter."),
  breaker_failures: integer(
    { default: 5, min: 1, max: 1_000 },
    "Consecutive failures after which the circuit breaker opens."
  ),
  breaker_ms: integer({ default: 10_000, min: 100, max: 600_000, unit: "ms" }, "How long the circuit stays open.")
}

const reranking = {
  provider: choice(["none", "cohere", "tei", "llamacpp", "http"], {
    default: "none",
    doc:
      "Provider of reranking: none, or the interface of Cohere, of text-embeddings-inference (TEI) or of llama.cpp; " +
      "http sends the fields of all of them, for servers that ignore unknown fields (Jina, vLLM)."
  }),
  url: text({ default: "http://127.0.0.1:8080/rerank", doc: "The reranking endpoint." }),
  api_key_env: optionalText({ doc: "Environment variable with the endpoint's key, when it needs one." }),
  model: text({ default: "bge-reranker-v2-m3", doc: "The model's name at the endpoint." }),
  top_k: integer({ default: 30, min: 2, max: 200 }, "Hits that are reranked; the rest keep their order behind them."),
  timeout_ms: integer(
    { default: 1_000, min: 10, max: 30_000, unit: "ms" },
    "Timeout of a request, after which the fused order is kept."
  )
}

const fields = {
  rrf_k: integer({ default: 5, min: 1, max: 1_000 }, "Constant of reciprocal-rank fusion: weight / (rrf_k + rank)."),
  minimum_relevance_score: fraction(
    { default: 0.05, min: 0, max: 1 },
    "Hits below this share of their branch's best hit are left out; 0 keeps all."
  ),
  evidence_margin: fraction(
    { default: 0.3, min: 0, max: 1 },
    "What payments merely claim precedes a listing with evidence (settled payers, its origin, " +
      "its recipient's key) that does not answer only " +
      "when it is more relevant by more than this share; 1 puts evidence first always."
  ),
  impressions_days: integer(
    { default: 90, min: 1, max: 3_650, unit: "days" },
    "How long impressions are kept for attribution. Callers without a key add at most 20,000 a day and replica, of " +
      "1 KB at most."
  ),
  missed_days: integer(
    { default: 30, min: 0, max: 365, unit: "days" },
    "How long the words of searches without a result are kept for operators, without the caller, links, addresses " +
      "and long numbers; 0 keeps none."
  ),
  lexical: group(lexical, { doc: "Full-text search." }),
  embedded: group(embedded, { doc: "Search by meaning, without a provider." }),
  semantic: group(semantic, { doc: "Search by meaning, with an embeddings provider." }),
  reranking: group(reranking, { doc: "Reranking of the best hits." })
}

export const searchSection = section("search", "Ranked search of the catalog.", fields)

export type SearchValues = ValuesOf<typeof fields>
