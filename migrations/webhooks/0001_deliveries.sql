-- What receivers are owed: one row for each event and receiver, written in the transaction that moves the cursor over
-- the journal. A row is `due` until the receiver has taken it or its time is over.
create table webhooks_deliveries (
  id bigint generated always as identity primary key,
  -- Name of the receiver in the settings.
  receiver text not null,
  -- The event: its position in the journal and what it tells of which settlement.
  position bigint not null,
  type text not null,
  settlement uuid not null,
  told_at timestamptz not null,
  state text not null default 'due' check (state in ('due', 'delivered', 'given_up')),
  -- Since when it is due; moved by an operator's replay.
  queued_at timestamptz not null default clock_timestamp(),
  due_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  -- Who sends it has it until then; a holder with an older fence has lost it.
  leased_until timestamptz,
  fence bigint not null default 0,
  -- Of the last attempt: an HTTP status, or a word.
  last_answer text,
  ended_at timestamptz,
  constraint webhooks_deliveries_event unique (receiver, position)
);
create index webhooks_deliveries_due on webhooks_deliveries (receiver, due_at) where state = 'due';
create index webhooks_deliveries_order on webhooks_deliveries (receiver, settlement, position) where state = 'due';
create index webhooks_deliveries_ended on webhooks_deliveries (ended_at) where state <> 'due';
