-- A success is delivered in three states: undelivered; given, when a process has claimed it for a caller; confirmed, when
-- that process has seen the whole answer leave through its socket. A success that a process gave, did not confirm, and
-- can no longer confirm because it is dead, is undelivered again. Replicas of the previous version write `delivered_at`
-- alone: without `delivered_by` it is confirmed. They read a success that a dead process gave as delivered.
alter table kernel_settlements
  -- The process that gave it, and the number of its claim: only this claim confirms it, or gives it back.
  add column delivered_by text,
  add column delivered_claim bigint,
  -- SHA-256 in hex of the Idempotency-Key that the caller sent with it.
  add column delivered_key text,
  add column confirmed_at timestamptz;

-- Processes that live. A row is renewed every two seconds, except beside an embedded database, which has one process. Another
-- process deletes a row that it has seen unchanged for ten seconds, while it renewed its own.
create table kernel_processes (
  id text primary key,
  beat_at timestamptz not null default clock_timestamp()
);

-- Deliveries that a process remembers and its database lost, with the record: known again when the record is adopted.
create table kernel_lost_deliveries (
  network text not null,
  scheme text not null,
  authorization_key text not null,
  principal text not null,
  delivered_key text,
  noted_at timestamptz not null default clock_timestamp(),
  primary key (network, scheme, authorization_key, principal)
);
