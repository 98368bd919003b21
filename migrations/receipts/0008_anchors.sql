-- The checkpoint whose hash a transaction of the sponsor has as its memo: stored before it is sent, and since when.
alter table receipts_epochs add column anchoring text;
alter table receipts_epochs add column anchored_at timestamptz;
-- The newest one that landed: account, transaction, ledger, checkpoint.
alter table receipts_epochs add column anchor jsonb;
