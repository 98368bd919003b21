-- A dump that is restored into the database that it came from, while its server runs on, leaves database, process and
-- timeline as they were. What it makes anew is the table itself: `pg_restore --clean` and a dropped schema give it
-- another number, and rows that are loaded after a TRUNCATE another file. VACUUM FULL and CLUSTER give it another file
-- too, and cost an epoch like a restart; pg_upgrade keeps both, and restarts. Looked up by name with each call, since
-- the number in a stored plan would be the old one.
create or replace function kernel_server_identity() returns text language plpgsql stable as $body$
declare
  timeline text := '';
  epochs oid := to_regclass('kernel_journal_epochs');
begin
  begin
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  exception when others then
    -- A service that does not show its log.
    timeline := '';
  end;
  return concat_ws(' ', (select oid from pg_database where datname = current_database()),
    extract(epoch from pg_postmaster_start_time()), timeline, epochs, pg_relation_filenode(epochs));
end
$body$;
