-- Embedding generations and the work of filling them. A generation is all vectors of one model at one revision; its vectors lie in
-- a table of its own, `search_semantic_vectors_<id>`, which the plugin makes when the generation begins and drops some time after
-- it is retired. Exactly one generation is active; it becomes so only when it is complete.
create table search_semantic_generations (
  id bigint generated always as identity primary key,
  -- sha256 hex of everything that decides what a vector means.
  fingerprint text not null,
  provider text not null,
  url text not null,
  model text not null,
  revision text not null,
  dimension integer not null check (dimension > 0),
  pooling text not null,
  normalization text not null,
  query_prefix text not null,
  document_prefix text not null,
  -- `hnsw`: an index of pgvector; `scan`: quantized vectors in the memory of each process.
  method text not null check (method in ('hnsw', 'scan')),
  status text not null default 'building' check (status in ('building', 'active', 'retired', 'failed')),
  detail text,
  -- The last resource id that has been queued, and whether it was the last one there was.
  scanned bigint not null default 0,
  scan_complete boolean not null default false,
  created_at timestamptz not null,
  activated_at timestamptz,
  retired_at timestamptz,
  dropped boolean not null default false
);
create unique index search_semantic_generations_active on search_semantic_generations ((true)) where status = 'active';
create unique index search_semantic_generations_live on search_semantic_generations (fingerprint) where status in ('building', 'active');

-- What is still to be embedded. A row goes when its vector is stored; one that failed too often stays as a dead letter.
create table search_semantic_jobs (
  generation bigint not null references search_semantic_generations (id) on delete cascade,
  -- The catalog's resource id.
  id bigint not null,
  state text not null default 'due' check (state in ('due', 'dead')),
  attempts integer not null default 0,
  due_at timestamptz not null,
  -- Raised by each lease and each change of the resource: a late holder cannot finish the job.
  fence bigint not null default 0,
  leased_until timestamptz,
  error text,
  primary key (generation, id)
);
create index search_semantic_jobs_due on search_semantic_jobs (due_at) where state = 'due';
