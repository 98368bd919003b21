-- The store's own name, given at its first start: a part of each seller's authorizer key, so that two stores never share
-- a channel. A backup keeps it, because a restored store continues with its channels.
create table batch_store_identity (
  one boolean primary key default true check (one),
  id uuid not null default gen_random_uuid()
);
