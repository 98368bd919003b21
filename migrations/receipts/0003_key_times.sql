-- A key that was replaced may be reinstated: it has several times, each a row.
alter table receipts_keys drop constraint receipts_keys_pkey;
alter table receipts_keys add primary key (kid, valid_from);
-- When a process was last seen that has the key as its first; null after one that stopped.
alter table receipts_keys add column preferred_at timestamptz default clock_timestamp();
-- What the log says of its keys is shown with each proof.
create index receipts_leaves_public on receipts_leaves (epoch, index) where salt is null;
