-- What was charged and can be claimed no more: its payer has withdrawn it, seen or unseen.
alter table batch_store_channels
  add column lost numeric(39) not null default 0,
  add column lost_at timestamptz;
create index batch_store_channels_lost on batch_store_channels (network) where lost > 0;
