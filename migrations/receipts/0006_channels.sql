-- Who deposited into a channel, and so may read the receipts of its claims.
create table receipts_channels (
  channel bytea not null,
  payer text not null,
  primary key (channel, payer)
);
