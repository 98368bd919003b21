-- Whether `origins` are of those with evidence alone (twenty or more), as of the last refresh.
alter table search_lexical_state add column proven boolean not null default false;
