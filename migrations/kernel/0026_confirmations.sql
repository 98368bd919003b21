-- How many RPC endpoints showed a settlement's outcome. Null while it is open, for outcomes of earlier versions and for
-- those that an operator stored. `watch_after` is the ledger as of which a failed settlement's authorization was
-- unspent: it may be used until its last ledger, and a later use corrects the outcome. Null where nothing is watched.
alter table kernel_settlements add column confirmations smallint, add column watch_after bigint;
alter table kernel_settlements add constraint kernel_settlements_confirmations_check
  check (confirmations in (1, 2)) not valid;

-- Failed settlements of the last day: their authorizations may still live.
update kernel_settlements set watch_after = recorded_ledger
  where state = 'failed' and reason = 'settle_ledger_transaction_failed' and resolved_at > now() - interval '1 day';

create index kernel_settlements_watched on kernel_settlements (network) where watch_after is not null;
