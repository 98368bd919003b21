-- The journal of what happened, written in the transaction that made it happen. Consumers read in the order (xid, id) and
-- only below the oldest open transaction: a row with a lower id can commit later than one with a higher id.
create table kernel_facts (
  id bigint generated always as identity primary key,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default clock_timestamp(),
  type text not null,
  version integer not null check (version > 0),
  subject text not null,
  data jsonb not null
);
create index kernel_facts_order on kernel_facts (xid, id);

create table kernel_fact_cursors (
  consumer text primary key,
  xid xid8 not null default '0',
  id bigint not null default 0,
  updated_at timestamptz not null default clock_timestamp()
);
