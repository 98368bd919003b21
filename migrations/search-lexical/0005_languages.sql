-- Listings in other languages than the index's own are stemmed as those: the other languages that there are, as of the last
-- refresh, by their tags, those of most listings first. Every document is read again. The old ones answer meanwhile.
alter table search_lexical_state add column spoken text not null default '';
update search_lexical_state set scanned = 0, complete = false;
