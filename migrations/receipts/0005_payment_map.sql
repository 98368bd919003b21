-- The map from each payment to its one current leaf, whose root is in each checkpoint. A log without one is read into it
-- by its first checkpoints after this migration.
-- What blinds the map's keys; held by everyone who has a proof.
alter table receipts_epochs add column map_secret bytea;
-- Leaves that the map has.
alter table receipts_epochs add column map_size bigint not null default 0;
-- From when on each checkpoint has the map's root.
alter table receipts_epochs add column map_since timestamptz;

-- A row for each outcome; of one key the one with the highest index is current.
create table receipts_map (
  epoch integer not null,
  key bytea not null,
  index bigint not null,
  value bytea not null,
  primary key (epoch, key, index)
);

-- The 16 subtrees below a prefix (hex digits) that has more leaves than are hashed anew for each change. Versions that
-- the newest checkpoint does not need are deleted when the page is written again.
create table receipts_map_pages (
  epoch integer not null,
  prefix text not null,
  -- Leaves of the log when it was written.
  size bigint not null,
  subtrees bytea not null,
  primary key (epoch, prefix, size)
);
