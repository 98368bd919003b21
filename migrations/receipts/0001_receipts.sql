-- Receipts of settled payments, and the append-only log of every outcome.
-- Every key that ever signed, with its time: a receipt of the past verifies after a rotation.
create table receipts_keys (
  -- Fragment of the DID: receipt-…, log-…, attestation-….
  kid text primary key,
  purpose text not null check (purpose in ('receipt', 'log', 'attestation')),
  public_key bytea not null,
  -- By the time an outcome was recorded.
  valid_from timestamptz not null,
  valid_until timestamptz
);

-- One unbroken life of the log each.
create table receipts_epochs (
  epoch integer primary key,
  -- What serves the database: a restored one, or a promoted standby, is another.
  server text not null,
  size bigint not null default 0,
  begun_at timestamptz not null default clock_timestamp(),
  reason text,
  -- The last checkpoint known of the epoch before.
  previous_size bigint,
  previous_root bytea,
  statement text
);

create table receipts_leaves (
  epoch integer not null,
  index bigint not null,
  entry bytea not null,
  -- The rest is of outcomes alone, and private.
  salt bytea,
  record text,
  transaction bytea,
  principal text,
  payer text,
  pay_to text,
  primary key (epoch, index)
);
create index receipts_leaves_transaction on receipts_leaves (transaction) where transaction is not null;

-- Hashes of level 8·level, each the root of 256 of the level below; those of level 0 follow from the entries.
create table receipts_nodes (
  epoch integer not null,
  level smallint not null,
  index bigint not null,
  hash bytea not null,
  primary key (epoch, level, index)
);

create table receipts_checkpoints (
  epoch integer not null,
  size bigint not null,
  root bytea not null,
  note text not null,
  signed_at timestamptz not null default clock_timestamp(),
  primary key (epoch, size)
);

-- One for each transaction, for ever the same bytes.
create table receipts_receipts (
  transaction bytea not null,
  network text not null,
  jws text not null,
  -- Canonical JSON of the draft's attestation, where it is on.
  attestation text,
  primary key (transaction, network)
);
