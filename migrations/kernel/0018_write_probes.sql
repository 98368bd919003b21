-- Whether the database accepts writes is found out by a write: each replica replaces its row every two seconds. A row
-- fills a page of its own (fillfactor), so the probe needs new space on the disk, as payments do.
create table kernel_write_probes (
  id bigint generated always as identity primary key,
  replica text not null,
  probed_at timestamptz not null default clock_timestamp(),
  filler text not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
alter table kernel_write_probes alter column filler set storage plain;
