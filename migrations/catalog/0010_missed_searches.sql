-- Words that were looked for and not found, for the operator: what is missing from the catalog. No caller, and no word that could name
-- one; a session is a hash that changes with the day, as in catalog_impressions. Kept for as long as the settings say.
create table catalog_missed_searches (
  day date not null,
  words text not null,
  session text not null,
  times bigint not null,
  last_at timestamptz not null,
  primary key (day, words, session)
);
