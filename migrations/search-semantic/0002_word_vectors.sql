-- Vectors of resources by the table of words that the plugin brings along: no provider, no generations. Another revision of the table
-- or of the way from texts to vectors writes all of them again.
create table search_semantic_word_vectors (
  -- The catalog's resource id.
  id bigint primary key,
  embedding bytea not null,
  xid xid8 not null default pg_current_xact_id()
);
create index search_semantic_word_vectors_xid on search_semantic_word_vectors (xid);

create table search_semantic_words (
  revision text primary key,
  -- The last resource id of the first run over the catalog, and whether it was the last one there was.
  scanned bigint not null default 0,
  complete boolean not null default false
);
