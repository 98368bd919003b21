-- How common a word is counts by origins, so that the thousand listings of one seller make none of its words common. The origin of
-- each document, as a hash, is read again; the documents answer as they are meanwhile.
alter table search_lexical_documents add column origin bigint;
-- Origins of which a listing, drawn by its id, holds the lexeme.
alter table search_lexical_terms add column origins integer not null default 0;
alter table search_lexical_state add column origins integer not null default 0;
update search_lexical_state set scanned = 0, complete = false;
