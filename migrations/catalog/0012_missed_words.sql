-- The words of catalog_missed_searches, counted over everything that is kept, so that a look at all of it reads the
-- most asked and not half a million rows. Whoever writes or prunes a search, a replica of before too, counts here in
-- the same statement; the rows stay, for looks at fewer days.
create table catalog_missed_words (
  words text primary key,
  sessions bigint not null,
  times bigint not null,
  last_at timestamptz not null
);
create index catalog_missed_words_asked on catalog_missed_words (sessions desc, times desc, words);

create function catalog_count_missed_words() returns trigger language plpgsql as $body$
begin
  -- One at a time: two that meet in several words would wait for each other.
  perform pg_advisory_xact_lock(724402405);
  if tg_op = 'INSERT' then
    insert into catalog_missed_words as t (words, sessions, times, last_at)
      select words, count(*), sum(times), max(last_at) from fresh group by words
      on conflict (words) do update set sessions = t.sessions + excluded.sessions, times = t.times + excluded.times,
        last_at = greatest(t.last_at, excluded.last_at);
  elsif tg_op = 'UPDATE' then
    update catalog_missed_words t set times = t.times + d.times, last_at = greatest(t.last_at, d.last_at)
      from (
        select words, sum(times) as times, max(last_at) as last_at
        from (select words, times, last_at from fresh union all select words, -times, last_at from gone) c
        group by words
      ) d
      where d.words = t.words;
  else
    update catalog_missed_words t set sessions = t.sessions - d.sessions, times = t.times - d.times
      from (select words, count(*) as sessions, sum(times) as times from gone group by words) d
      where d.words = t.words;
    delete from catalog_missed_words t using gone where t.words = gone.words and t.sessions = 0;
  end if;
  return null;
end
$body$;
create trigger catalog_missed_words_asked after insert on catalog_missed_searches
  referencing new table as fresh for each statement execute function catalog_count_missed_words();
create trigger catalog_missed_words_asked_again after update on catalog_missed_searches
  referencing old table as gone new table as fresh for each statement execute function catalog_count_missed_words();
create trigger catalog_missed_words_left after delete on catalog_missed_searches
  referencing old table as gone for each statement execute function catalog_count_missed_words();

-- Writers wait from the first trigger on until this has committed. Of a day at most 20,000 rows are kept.
insert into catalog_missed_words (words, sessions, times, last_at)
  select words, count(*), sum(times), max(last_at) from catalog_missed_searches group by words;
