-- The action of a transaction that is not a direct payment, with its channel and the totals that it claims, for receipts.
alter table kernel_settlements add column action jsonb;
