-- The full-text index of the catalog. Rows are kept per language of the text search configuration, so that a change of language
-- builds the new rows beside the old ones and the old ones answer until the new are complete. No table refers to another owner's.
create table search_lexical_documents (
  language text not null,
  -- The catalog's resource id.
  id bigint not null,
  -- The resource's version that was indexed: an older one never replaces a newer one.
  version integer not null,
  -- Identifiers A, description and parameter names B, tags C, examples D.
  document tsvector not null,
  primary key (language, id)
);
-- Without a pending list: a search after a burst of writes costs what it always costs.
create index search_lexical_documents_gin on search_lexical_documents using gin (document) with (fastupdate = off);
-- Names and tags alone: of a common word, only the resources that it names are looked at.
create index search_lexical_documents_naming on search_lexical_documents using gin (ts_filter(document, '{a,c}')) with (fastupdate = off);

-- In how many documents a lexeme stands. Refreshed from the documents now and then; a ranking does not need the exact number.
create table search_lexical_terms (
  language text not null,
  lexeme text collate "C" not null,
  documents integer not null,
  -- And in how many names or tags.
  naming integer not null,
  -- Three-letter pieces of the lexeme between blanks, for words that were mistyped.
  grams text[] not null,
  primary key (language, lexeme)
);
create index search_lexical_terms_grams on search_lexical_terms using gin (grams) with (fastupdate = off);

create table search_lexical_state (
  language text primary key,
  -- The last resource id of the first build; what is above is still to be read.
  scanned bigint not null default 0,
  complete boolean not null default false,
  -- As of the last refresh of the terms.
  documents integer not null default 0,
  average_lexemes double precision not null default 1,
  -- Documents written since then.
  changed integer not null default 0,
  refreshed_at timestamptz not null default 'epoch'
);
