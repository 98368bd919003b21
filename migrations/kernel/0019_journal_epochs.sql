-- Epochs of the journal of facts. A server that lost its last commits (a standby that was promoted, a backup that was
-- restored, a snapshot) gives positions again that clients have read before. So a position means something only within
-- an epoch: whenever the database is served by another server process, database or timeline than the newest epoch was
-- made on, the journal begins a new one before it gives a position or leases a channel (kernel/facts/FactsEpoch.ts).
create table kernel_journal_epochs (
  -- When it was made, in microseconds since 1970; above every epoch before it.
  epoch bigint primary key,
  -- The journal's end then: up to here it has all of its positions in common with the epochs before it.
  begins_after bigint not null,
  -- What served the database when it was made.
  server text not null
);

-- Database, start of the server process, and timeline. A standby that is promoted, a restored dump, backup or snapshot
-- each change at least one of them; so does a mere restart, which costs nothing but an epoch.
create function kernel_server_identity() returns text language plpgsql stable as $body$
declare
  timeline text := '';
begin
  begin
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  exception when others then
    -- A service that does not show its log.
    timeline := '';
  end;
  return concat_ws(' ', (select oid from pg_database where datname = current_database()),
    extract(epoch from pg_postmaster_start_time()), timeline);
end
$body$;

-- A channel whose number must be read from the ledger before it is leased again, however it is known.
alter table kernel_channels add column reread boolean not null default false;

-- What was lost with the last commits may have used numbers: every channel is read anew, and a lease that was lost with
-- them, whose fence will be given again, holds nothing.
create function kernel_channels_of_new_epoch() returns trigger language plpgsql as $body$
begin
  update kernel_channels set reread = true,
    fence = fence + case when settlement is null then 1000000 else 0 end
    where state <> 'retired';
  return null;
end
$body$;
create trigger kernel_channels_of_new_epoch after insert on kernel_journal_epochs
  for each row execute function kernel_channels_of_new_epoch();

insert into kernel_journal_epochs (epoch, begins_after, server)
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    coalesce((select max(position) from kernel_facts), 0), kernel_server_identity();

-- Settlements that were built again on another channel, because the number of their first one was used by another
-- transaction: attempts up to this number can never land.
alter table kernel_settlements add column attempts_void integer not null default 0;

-- Hashes that callers were given before a settlement was built again.
create table kernel_rebuilds (
  settlement uuid not null references kernel_settlements (id) on delete cascade,
  inner_hash text not null,
  rebuilt_at timestamptz not null default clock_timestamp(),
  primary key (settlement, inner_hash)
);
create index kernel_rebuilds_inner_hash on kernel_rebuilds (inner_hash);
