-- Transactions of ours whose records were lost, each with the principal that an operator has found to be its owner.
create table kernel_lost_settlements (
  network text not null,
  transaction text not null,
  principal text not null,
  note text not null,
  given_at timestamptz not null default clock_timestamp(),
  primary key (network, transaction)
);
