-- Refused payments by UTC day, reason and principal, counted behind the answers. The journal does not hold them.
create table analytics_refusals (
  day date not null,
  operation text not null check (operation in ('verify', 'settle')),
  reason text not null,
  -- `key:` and a label, `anonymous`, or `none` where no listed key was sent.
  principal text not null,
  refused bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The newest few, newest first: no signature, no key.
  samples jsonb not null,
  primary key (day, operation, reason, principal)
);
