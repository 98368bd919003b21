-- When the store first saw the channel: its age in operators' lists. Channels of before count from this migration.
alter table batch_store_channels add column opened_at timestamptz not null default now();
