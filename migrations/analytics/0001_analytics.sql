-- What operators ask about payments: a row for each settlement, told by the kernel's facts, and rollups that are kept with it in the
-- same transaction. Everything but the counts of verifications can be made again from the journal. No table refers to another
-- owner's.
create table analytics_settlements (
  id uuid primary key,
  -- When it was recorded. It never changes, so what is learned later corrects the hour and day it happened in.
  occurred_at timestamptz not null,
  -- An open one is `unknown` from here on; until then its caller waits and nothing of it is shown.
  due_at timestamptz not null,
  -- Neutral spelling.
  network text not null,
  scheme text not null,
  asset text not null,
  payer text not null,
  pay_to text not null,
  amount_max numeric(39, 0) not null,
  -- What the settlement is meant to move.
  amount_meant numeric(39, 0) not null,
  -- What the ledger moved: 0 when it failed, null while that is not known.
  amount numeric(39, 0),
  fee_stroops bigint not null default 0,
  -- Inner hash.
  transaction_hash text not null,
  status text not null check (status in ('open', 'unknown', 'success', 'failed')),
  -- The replica that recorded it.
  facilitator_id text not null,
  -- The catalog's id.
  resource_id bigint,
  resource_origin text,
  resource_url text,
  error_reason text,
  -- Whether the recipient had not paid the payer before.
  organic boolean not null
);
create index analytics_settlements_newest on analytics_settlements (occurred_at desc, id desc) where status <> 'open';
create index analytics_settlements_payer on analytics_settlements (payer, occurred_at desc, id desc) where status <> 'open';
create index analytics_settlements_pay_to on analytics_settlements (pay_to, occurred_at desc, id desc) where status <> 'open';
create index analytics_settlements_pair on analytics_settlements (payer, pay_to, occurred_at);
create index analytics_settlements_asset on analytics_settlements (asset, occurred_at desc, id desc) where status <> 'open';
create index analytics_settlements_scheme on analytics_settlements (scheme, occurred_at desc, id desc) where status <> 'open';
create index analytics_settlements_status on analytics_settlements (status, occurred_at desc, id desc) where status in ('unknown', 'failed');
create index analytics_settlements_resource on analytics_settlements (resource_id, occurred_at desc, id desc) where resource_id is not null and status <> 'open';
create index analytics_settlements_hash on analytics_settlements (transaction_hash);
create index analytics_settlements_due on analytics_settlements (due_at) where status = 'open';

-- Settlements by what tells them apart, for each hour and each UTC day.
create table analytics_totals (
  width text not null check (width in ('hour', 'day')),
  starts_at timestamptz not null,
  network text not null,
  scheme text not null,
  asset text not null,
  status text not null,
  transactions bigint not null,
  amount numeric not null,
  fee_stroops numeric not null,
  organic_transactions bigint not null,
  organic_amount numeric not null,
  primary key (width, starts_at, network, scheme, asset, status)
);

-- Distinct payers and recipients of each hour and each UTC day.
create table analytics_attendance (
  width text not null check (width in ('hour', 'day')),
  starts_at timestamptz not null,
  role text not null check (role in ('buyer', 'seller')),
  members bigint not null,
  primary key (width, starts_at, role)
);

-- Everybody and everything that ever took part, with the last day of it.
create table analytics_members (
  kind text not null check (kind in ('buyer', 'seller', 'facilitator', 'network', 'resource')),
  name text not null,
  -- What a redacted answer calls an address.
  pseudonym text,
  last_day date not null,
  primary key (kind, name)
);
create index analytics_members_pseudonym on analytics_members (pseudonym) where pseudonym is not null;
-- How many of a kind took part last on a day. Since every window ends now, those who took part within one are the sum of its days.
create table analytics_member_days (
  kind text not null,
  last_day date not null,
  members bigint not null,
  primary key (kind, last_day)
);

-- What each payer and recipient did on a UTC day; on day -infinity, over all history.
create table analytics_participants (
  role text not null check (role in ('buyer', 'seller')),
  day date not null,
  address text not null,
  network text not null,
  scheme text not null,
  asset text not null,
  facilitator_id text not null,
  transactions bigint not null,
  successful bigint not null,
  failed bigint not null,
  amount numeric not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (role, day, address, network, scheme, asset, facilitator_id)
);
create index analytics_participants_address on analytics_participants (role, address, day);

-- Who paid whom, over all history.
create table analytics_pairs (
  payer text not null,
  pay_to text not null,
  asset text not null,
  transactions bigint not null,
  successful bigint not null,
  amount numeric not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (payer, pay_to, asset)
);
create index analytics_pairs_pay_to on analytics_pairs (pay_to, payer);

-- What was paid for each resource of the catalog, over all history.
create table analytics_resources (
  resource_id bigint not null,
  -- As the catalog has it; null for a symbolic name.
  origin text,
  asset text not null,
  transactions bigint not null,
  successful bigint not null,
  amount numeric not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (resource_id, asset)
);
create index analytics_resources_origin on analytics_resources (origin);

-- Verifications that were judged, counted behind the answers. The journal does not hold them.
create table analytics_verifications (
  day date primary key,
  valid bigint not null default 0,
  refused bigint not null default 0
);

-- The key of the pseudonyms, made once.
create table analytics_secrets (
  name text primary key,
  secret text not null
);
