-- What searches have shown, for telling which of them led to payments. No query text and no caller: a session is a hash that changes
-- with the day. Kept for as long as the settings say.
create table catalog_impressions (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  session text not null,
  mode text not null check (mode in ('lexical', 'semantic', 'hybrid')),
  -- Position of the first resource shown, from 0.
  first_position integer not null,
  -- Resources in the order shown.
  resource_ids bigint[] not null,
  milliseconds integer not null,
  -- Branches that were asked and did not answer.
  missing text[] not null,
  reranking text not null check (reranking in ('off', 'used', 'failed'))
);
create index catalog_impressions_at on catalog_impressions (at);
