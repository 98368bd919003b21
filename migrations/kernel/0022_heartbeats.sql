-- Minutes in which a replica could write to the database, for availability over the last days; any replica's beat counts.
create table kernel_heartbeats (
  minute timestamptz primary key
);
