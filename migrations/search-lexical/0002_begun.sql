-- When a process last began with this language. Only what was begun earlier is removed: the settings that came last decide.
alter table search_lexical_state add column begun_at timestamptz not null default 'epoch';
