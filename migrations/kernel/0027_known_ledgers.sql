-- The last ledger of each network that this facilitator has seen, with its hash: a network whose ledger of that number
-- has another hash, or whose lower ledgers close later, was reset.
create table kernel_known_ledgers (
  network text primary key,
  passphrase text not null,
  ledger bigint not null,
  hash text not null,
  closed_at timestamptz not null,
  noted_at timestamptz not null default clock_timestamp()
);
