-- The index in memory ranks: no statement counts or looks up the names and tags separately. A replica of the version
-- before still writes the count, so the column stays until the next version drops it.
drop index search_lexical_documents_naming;
alter table search_lexical_terms alter column naming set default 0;
