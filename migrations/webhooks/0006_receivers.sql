-- Receivers in the settings of each replica, renewed every minute. All replicas share one cursor over the journal, so each
-- queues events for the receivers of all, while their settings differ. Unlogged: a crash loses a minute of renewals.
create unlogged table webhooks_receivers (
  receiver text not null,
  -- Empty for all settlements.
  principal text not null,
  seen_at timestamptz not null default clock_timestamp(),
  primary key (receiver, principal)
);
-- The owner of the settlement: a receiver whose name the settings gave to another key gets nothing of it. Null for
-- deliveries of an earlier version.
alter table webhooks_deliveries add column principal text;
