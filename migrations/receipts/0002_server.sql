-- What serves the log, across restarts: database, timeline and cluster. A dump that is restored into a fresh cluster has
-- the database's number and the timeline of where it came from, and another cluster.
create function receipts_server() returns text language plpgsql stable as $body$
declare
  cluster text := '';
begin
  begin
    cluster := (select system_identifier::text from pg_control_system());
  exception when others then
    -- A service that does not show its control data.
    cluster := '';
  end;
  return split_part(kernel_server_identity(), ' ', 1) || ' ' || split_part(kernel_server_identity(), ' ', 3)
    || ' ' || cluster;
end
$body$;

-- The same server as before this migration, under its longer name.
update receipts_epochs set server = receipts_server()
where server = split_part(kernel_server_identity(), ' ', 1) || ' ' || split_part(kernel_server_identity(), ' ', 3);
