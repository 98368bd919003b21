// The operators' reports on search, as Schemas: the answers below /analytics/v1/search are typed by them, and
// /openapi.json describes them with the same (S168–S177). Counts that grow without end are decimal text.
import { Schema } from "effect"
import { text, time, units, whole } from "../../../../kernel/http/wireSchema.ts"

const health = Schema.Literals(["ready", "degraded", "disabled"])
const weight = Schema.Finite.annotate({ description: "Weight of its rank in the fused rank." })
const candidates = whole("Hits it hands to fusion.")
const indexed = whole("Resources in the index that answers.")
const share = Schema.Finite.annotate({ description: "From 0 to 1." })
const moment = time("UTC.")

const Generation = Schema.Struct({
  provider: Schema.String,
  model: Schema.String,
  revision: Schema.String,
  dimension: whole("Numbers in a vector."),
  pooling: Schema.String,
  normalization: Schema.String,
  status: Schema.Literals(["building", "active", "retired", "failed"]),
  created_at: moment,
  activated_at: Schema.NullOr(moment),
  retired_at: Schema.NullOr(moment)
}).annotate({ identifier: "SearchGeneration" })

export const SearchStatus = Schema.Struct({
  lexical: Schema.Struct({
    provider: Schema.String,
    language: text("Text search configuration of PostgreSQL."),
    weight,
    candidate_count: candidates,
    ranking: Schema.String,
    health
  }),
  embedded: Schema.Struct({ provider: Schema.String, weight, candidate_count: candidates, health, indexed }),
  semantic: Schema.Struct({
    provider: text("`none` without embeddings."),
    model: Schema.NullOr(Schema.String),
    revision: Schema.NullOr(Schema.String),
    dimension: Schema.NullOr(whole("Numbers in a vector.")),
    weight,
    vector_support: Schema.Boolean,
    health,
    candidate_count: candidates,
    detail: Schema.NullOr(text("Why it is degraded."))
  }),
  reranking: Schema.Struct({
    provider: text("`none` when the fused order is kept."),
    model: Schema.NullOr(Schema.String),
    top_k: whole("Hits that are reranked."),
    fallback: Schema.String
  }),
  rrf_k: whole("Constant of reciprocal rank fusion."),
  minimum_relevance_score: Schema.Finite,
  active_generation: Schema.NullOr(Generation),
  index_coverage: Schema.Struct({
    resources: whole("In the catalog."),
    lexical: Schema.Struct({ indexed, share }),
    semantic: Schema.Struct({ indexed, share })
  }),
  worker: Schema.Struct({
    status: Schema.Literals(["idle", "working", "waiting", "disabled"]),
    queue_depth: whole("Documents waiting to be embedded."),
    dead_letters: whole("Documents given up after the last attempt.")
  })
}).annotate({ identifier: "SearchStatus" })

const pagination = Schema.Struct({
  limit: whole("Applied limit."),
  offset: whole("Applied offset."),
  total: whole("Total rows.")
})

export const SearchGenerations = Schema.Struct({ items: Schema.Array(Generation), pagination }).annotate({
  identifier: "SearchGenerations"
})

export const MissedSearches = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      words: text("In lower case and truncated; possible personal data and secrets are replaced by `…`."),
      sessions: units("Callers of a day, added over days."),
      times: units("Times it was asked."),
      last_at: moment
    })
  ),
  pagination
}).annotate({ identifier: "MissedSearches" })

const count = units("A count.")
const millis = Schema.NullOr(Schema.Finite)

export const SearchConversion = Schema.Struct({
  hours: whole("Period of the report, up to now."),
  attribution: text("How a payment is attributed to a search."),
  attribution_window_hours: whole("Maximum time between a search and its payment."),
  impressions: units(
    "Pages of results that were shown, empty ones included; of a caller without a key each once a day, 20 at most."
  ),
  impressions_without_results: count,
  sessions: count,
  verified_impressions: units("Resources shown to a session and then paid for, verified; counted once per session."),
  settled_impressions: units("The same, counting settled payments."),
  settlements_attributed: units("Settled payments, once for each session that saw their resource before."),
  settlements_at_1: units("Those for the result shown first, at the best position of the session."),
  settlements_at_3: count,
  settlements_at_5: count,
  byMode: Schema.Record(
    Schema.String,
    Schema.Struct({
      impressions: count,
      latency_ms: Schema.Struct({ p50: millis, p95: millis }),
      semantic_fallbacks: units("Answered without the semantic branch."),
      reranker_fallbacks: units("Answered in the fused order.")
    })
  )
}).annotate({ identifier: "SearchConversion" })
