-- Limits that an operator set while the facilitator runs; every replica reads them every two seconds. Without a row the
-- setting counts. A limit of one key has its principal; the others have an empty text there.
create table kernel_limits (
  name text not null,
  principal text not null default '',
  value int8 not null check (value >= 0),
  changed_at timestamptz not null default clock_timestamp(),
  primary key (name, principal)
);
