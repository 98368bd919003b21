-- Settlements, the channels that carry them, and what the sponsor may spend. A settlement is born here, in one transaction,
-- before anything is submitted; nothing of a payment is stored earlier.
create table kernel_settlements (
  id uuid primary key,
  network text not null,
  scheme text not null,
  -- Identity of the payer's authorization, opaque; it moves money at most once.
  authorization_key text not null,
  authorization_expires_ledger bigint not null,
  -- sha256 of the payment's canonical form.
  fingerprint text not null,
  principal text not null,
  identifier text,
  payer text not null,
  pay_to text not null,
  asset text not null,
  amount_max numeric(39, 0) not null check (amount_max >= 0),
  amount numeric(39, 0) not null check (amount >= 0),
  resource_url text,
  -- Hash of the transaction itself, stable when its fee is bumped.
  inner_hash text not null,
  sponsor text not null,
  channel text not null,
  channel_sequence bigint not null,
  resource_fee_stroops bigint not null,
  recorded_ledger bigint not null,
  recorded_at timestamptz not null default clock_timestamp(),
  -- Until when the first caller waits; an open settlement past it is `unknown` to readers.
  deadline_at timestamptz not null,
  budget_day date not null,
  budget_stroops bigint not null check (budget_stroops >= 0),
  budget_shard integer not null,
  budget_keyed boolean not null,
  state text not null default 'prepared'
    check (state in ('prepared', 'submitted', 'settled', 'failed', 'expired', 'unresolved')),
  resolved_at timestamptz,
  ledger bigint,
  closed_at timestamptz,
  moved numeric(39, 0),
  fee_charged_stroops bigint,
  reason text,
  reason_message text,
  -- Set once, when a caller was given the success.
  delivered_at timestamptz,
  constraint kernel_settlements_authorization unique (network, scheme, authorization_key),
  constraint kernel_settlements_inner_hash unique (network, inner_hash)
);
create unique index kernel_settlements_identifier on kernel_settlements (principal, pay_to, identifier) where identifier is not null;
create index kernel_settlements_open on kernel_settlements (recorded_at) where state in ('prepared', 'submitted');

-- Outer envelopes around the inner transaction, and cancelling no-ops, each recorded before it is sent.
create table kernel_attempts (
  settlement uuid not null references kernel_settlements (id),
  number integer not null check (number > 0),
  kind text not null check (kind in ('payment', 'cancel')),
  inner_hash text not null,
  outer_hash text not null,
  envelope bytea not null,
  inclusion_stroops bigint not null,
  recorded_ledger bigint not null,
  -- The last answer to sending it, and the newest ledger known then; null until it was sent.
  sent_status text,
  sent_ledger bigint,
  primary key (settlement, number)
);
create index kernel_attempts_outer_hash on kernel_attempts (outer_hash);

create table kernel_channels (
  address text primary key,
  network text not null,
  sponsor text not null,
  number integer not null,
  state text not null default 'wanted' check (state in ('wanted', 'ready', 'retired')),
  -- The last sequence number used; null while it must be read from the ledger.
  sequence bigint,
  -- The ledger as of which the sequence is known.
  sequence_ledger bigint not null default 0,
  -- Raised by each lease: a holder with an older fence has lost the channel.
  fence bigint not null default 0,
  leased_until timestamptz,
  -- The open settlement that holds the channel.
  settlement uuid references kernel_settlements (id),
  used_at timestamptz not null default clock_timestamp(),
  constraint kernel_channels_number unique (network, sponsor, number)
);

-- The sponsor's own transactions: creating and funding channels. Journaled before they are sent, followed like settlements.
create table kernel_sponsor_transactions (
  hash text primary key,
  network text not null,
  sponsor text not null,
  purpose text not null,
  envelope bytea not null,
  ledger_max bigint not null,
  recorded_at timestamptz not null default clock_timestamp(),
  state text not null default 'open' check (state in ('open', 'landed', 'failed', 'expired')),
  fee_charged_stroops bigint,
  ledger bigint
);
create index kernel_sponsor_transactions_open on kernel_sponsor_transactions (network, sponsor) where state = 'open';

-- Who does the work that one replica at a time does.
create table kernel_leases (
  name text primary key,
  holder text not null,
  fence bigint not null default 1,
  until timestamptz not null
);

-- What each principal's payments cost the sponsor on a UTC day, in stroops.
create table kernel_sponsor_budget (
  day date not null,
  principal text not null,
  reserved_stroops bigint not null default 0 check (reserved_stroops >= 0),
  committed_stroops bigint not null default 0 check (committed_stroops >= 0),
  primary key (day, principal)
);
-- The same over all principals, spread over shards so that no single row is hot.
create table kernel_sponsor_budget_total (
  day date not null,
  keyed boolean not null,
  shard integer not null,
  reserved_stroops bigint not null default 0,
  committed_stroops bigint not null default 0,
  primary key (day, keyed, shard)
);
