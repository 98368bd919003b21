-- Payment channels of sellers that keep no state of their own. A row is one seller's view of one channel; amounts are
-- atomic units of the channel's token. What a seller charges is decided by one statement over one row.
create table batch_store_channels (
  -- Owner: the seller's key.
  principal text not null,
  network text not null,
  -- 64 hex digits.
  channel_id text not null,
  -- The channel's immutable terms, as the buyer sent them.
  config jsonb not null,
  receiver text not null,
  token text not null,
  -- Seconds.
  withdraw_delay bigint not null,
  -- Whether its receiver's authorizer is the store's key for this seller: then the claimer claims it.
  delegated boolean not null default false,
  -- Charged in all: the base of the next voucher.
  charged numeric(39) not null,
  -- The newest voucher that was charged, or that a refund was asked with.
  signed_max numeric(39) not null,
  signature text not null,
  -- What the ledger holds, and when that was read.
  balance numeric(39) not null default 0,
  total_claimed numeric(39) not null default 0,
  -- Unix seconds; 0 while the payer has started no withdrawal.
  withdraw_requested_at bigint not null default 0,
  refund_nonce numeric(39) not null default 0,
  synced_at timestamptz,
  requested_at timestamptz not null default clock_timestamp(),
  -- Since when something is charged and not claimed.
  unclaimed_since timestamptz,
  -- The claim that has it, until that ends.
  claim bigint,
  -- Claimed by itself, after a claim of several channels failed.
  claim_alone boolean not null default false,
  -- Not claimed again before, after a claim failed.
  claim_after timestamptz,
  -- The request that has reserved the channel, until it is charged or released, or this time has passed.
  pending_payment text,
  pending_max numeric(39),
  pending_signature text,
  pending_until timestamptz,
  primary key (principal, network, channel_id)
);
create index batch_store_channels_unclaimed on batch_store_channels (unclaimed_since) where unclaimed_since is not null;
create index batch_store_channels_claim on batch_store_channels (claim) where claim is not null;

-- What each request was charged, so that the same request is charged once.
create table batch_store_charges (
  principal text not null,
  network text not null,
  channel_id text not null,
  payment text not null,
  amount numeric(39) not null,
  -- The channel's total after it.
  charged numeric(39) not null,
  charged_at timestamptz not null default clock_timestamp(),
  primary key (principal, network, channel_id, payment)
);
create index batch_store_charges_age on batch_store_charges (charged_at);

-- When a seller's channels of one token are claimed.
create table batch_store_policies (
  principal text not null,
  network text not null,
  token text not null,
  claim_every_seconds bigint not null check (claim_every_seconds > 0),
  -- Claimed as soon as this much is unclaimed in one channel; null: by time alone.
  claim_at numeric(39),
  primary key (principal, network, token)
);

-- Claims and settles of the claimer, recorded before they are submitted: a crash submits the same again.
create table batch_store_claims (
  id bigint generated always as identity primary key,
  principal text not null,
  network text not null,
  kind text not null check (kind in ('claim', 'settle')),
  receiver text not null,
  token text not null,
  -- The payload that is submitted, the same each time.
  payload jsonb not null,
  state text not null default 'open' check (state in ('open', 'settled', 'failed')),
  attempts integer not null default 0,
  transaction text,
  reason text,
  begun_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz
);
create index batch_store_claims_open on batch_store_claims (id) where state = 'open';
create index batch_store_claims_ended on batch_store_claims (ended_at) where state <> 'open';
