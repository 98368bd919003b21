-- Receivers that answered 410 Gone: no replica sends them anything until an operator enables them.
create table webhooks_disabled (
  receiver text primary key,
  disabled_at timestamptz not null default clock_timestamp()
);
